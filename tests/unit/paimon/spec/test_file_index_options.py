from collections.abc import Mapping

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_index_kinds import ColumnIndex
from ingestd.paimon.spec.file_index_options import column_indexes, manifest_threshold
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema


def schema(options: Mapping[str, str]) -> TableSchema:
    types: tuple[tuple[str, object], ...] = (
        ("a", "INT"), ("s", "STRING"), ("d", "DECIMAL(5, 1)"),
        ("m", {"type": "MAP", "key": "STRING", "value": "INT"}),
        ("n", {"type": "MAP", "key": "INT", "value": "INT"}),
    )  # fmt: skip
    return new_schema([(name, parse_type(t)) for name, t in types], [], [], options, 0)


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


def test_a_version_that_bitmap_indexes_do_not_have_is_refused() -> None:
    options = {"file-index.bitmap.columns": "s", "file-index.bitmap.s.version": "3"}
    with pytest.raises(ConfigError, match="the versions are 1 and 2"):
        column_indexes(schema(options))


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
        ("bsi.columns", "s", "cannot have an index of type bsi"),
        ("bsi.a.version", "1", "expected file-index.bsi.columns$"),
        ("bitmap.columns", "x[k]", "unknown column 'x'"),
    ],
)
def test_wrong_options_are_named(name: str, value: str, message: str) -> None:
    options = {"file-index.bloom-filter.columns": "a", f"file-index.{name}": value}
    with pytest.raises(ConfigError, match=message):
        column_indexes(schema(options))


def test_indexes_of_keys_of_a_map() -> None:
    options = {
        "file-index.bloom-filter.columns": "m[a], m[b]",
        "file-index.bloom-filter.m.items": "7",
        "file-index.bloom-filter.m[b].items": "9",
        "file-index.range-bitmap.columns": "m[a]",
    }
    indexes = column_indexes(schema(options))
    assert indexes == (
        ColumnIndex("m", "bloom-filter", "a", items=7),
        ColumnIndex("m", "bloom-filter", "b", items=9),
        ColumnIndex("m", "range-bitmap", "a", block_size=16 * 1024),
    )
    assert [index.name for index in indexes] == ["m[a]", "m[b]", "m[a]"]
    for name in ("n[a]", "a[b]"):
        with pytest.raises(ConfigError, match="not of a MAP whose keys are texts"):
            column_indexes(schema({"file-index.bloom-filter.columns": name}))


def test_indexes_of_numbers_and_ranks() -> None:
    options = {
        "file-index.bsi.columns": "a,d",
        "file-index.range-bitmap.columns": "a,s",
        "file-index.range-bitmap.s.chunk-size": "1 kb",
        "file-index.bitmap.columns": "s",
        "file-index.bitmap.s.version": "1",
    }
    assert column_indexes(schema(options)) == (
        ColumnIndex("s", "bitmap", version=1),
        ColumnIndex("a", "bsi"),
        ColumnIndex("d", "bsi"),
        ColumnIndex("a", "range-bitmap", block_size=16 * 1024),
        ColumnIndex("s", "range-bitmap", block_size=1024),
    )
