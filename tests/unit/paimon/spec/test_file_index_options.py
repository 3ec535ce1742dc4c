from collections.abc import Mapping

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_index_options import (
    ColumnIndex,
    column_indexes,
    manifest_threshold,
)
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema


def schema(options: Mapping[str, str]) -> TableSchema:
    texts = (("a", "INT"), ("s", "STRING"), ("d", "DECIMAL(5, 1)"))
    return new_schema([(name, parse_type(text)) for name, text in texts], [], [], options, 0)


def test_columns_and_what_is_set_for_them() -> None:
    options = {
        "file-index.bloom-filter.columns": "a, s",
        "file-index.bloom-filter.a.items": "50",
        "file-index.bloom-filter.a.fpp": "0.01",
        "file-index.bitmap.columns": "s",
        "file-index.bitmap.s.index-block-size": "1 kb",
        "file-index.in-manifest-threshold": "2 kb",
    }
    assert column_indexes(schema(options)) == (
        ColumnIndex("a", "bloom-filter", items=50, fpp=0.01),
        ColumnIndex("s", "bloom-filter"),
        ColumnIndex("s", "bitmap", block_size=1024),
    )
    assert manifest_threshold(schema(options)) == 2048


def test_without_options_there_are_none() -> None:
    assert column_indexes(schema({})) == ()
    assert manifest_threshold(schema({})) == 500


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("bloom-filter.columns", "x", "unknown column 'x'"),
        ("bloom-filter.columns", "d", "cannot have an index"),
        ("bitmap.columns", "d", "cannot have an index"),
        ("bloom-filter.s.items", "5", "expected file-index.bloom-filter.columns"),
        ("bloom-filter.a.rate", "5", "expected"),
        ("bloom-filter.a.items", "0", "above 0"),
        ("bloom-filter.a.fpp", "1.5", "between 0 and 1"),
        ("bloom-filter.a.fpp", "x", "between 0 and 1"),
    ],
)
def test_wrong_options_are_named(name: str, value: str, message: str) -> None:
    options = {"file-index.bloom-filter.columns": "a", f"file-index.{name}": value}
    with pytest.raises(ConfigError, match=message):
        column_indexes(schema(options))


def test_what_is_not_implemented_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="single map keys"):
        column_indexes(schema({"file-index.bloom-filter.columns": "m[k]"}))
    options = {"file-index.bitmap.columns": "s", "file-index.bitmap.s.version": "1"}
    with pytest.raises(UnsupportedError, match="version"):
        column_indexes(schema(options))
