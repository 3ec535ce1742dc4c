"""Formats, compressions and statistics per level, and what files cannot hold."""

from typing import Any

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_options import changelog_style, data_file_styles, refuse_style
from ingestd.paimon.spec.options import core_options
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema


def table(options: dict[str, str], *types: Any) -> TableSchema:
    columns = [(f"c{i}", parse_type(t)) for i, t in enumerate(("INT", *types))]
    return new_schema(columns, ("c0",), (), options, 0)


def test_levels_have_what_they_are_given_and_else_what_the_table_has() -> None:
    options = core_options(
        table(
            {
                "file.format.per.level": "0:avro, 5:ORC",
                "file.compression.per.level": "5:zlib",
                "file.compression": "snappy",
                "metadata.stats-mode.per.level": "0:none",
            }
        )
    )
    found = {
        level: (own.file_format, own.file_compression, own.stats_mode("c0"))
        for level, own in ((n, options.at_level(n)) for n in (0, 1, 5))
    }
    assert found == {
        0: ("avro", "snappy", "none"),
        1: ("parquet", "snappy", "truncate(16)"),
        5: ("orc", "zlib", "truncate(16)"),
    }


def test_changelog_files_have_their_own_style() -> None:
    options = core_options(
        table({"changelog-file.format": "avro", "changelog-file.stats-mode": "none",
               "changelog-file.compression": "deflate", "file.format.per.level": "0:orc"})
    )  # fmt: skip
    own = options.for_changelog()
    assert (own.file_format, own.file_compression, own.stats_mode("c0")) == (
        "avro", "deflate", "none",
    )  # fmt: skip
    plain = core_options(table({"file.format.per.level": "0:orc"})).for_changelog()
    assert (plain.file_format, plain.file_compression) == ("orc", "zstd")


def test_a_file_name_may_show_the_compression() -> None:
    options = core_options(table({"file.suffix.include.compression": "true"}))
    assert options.file_extension == "zstd.parquet"
    assert core_options(table({})).file_extension == "parquet"


@pytest.mark.parametrize(
    ("name", "value"),
    [("file.format.per.level", "avro"), ("file.format.per.level", "x:avro"),
     ("file.compression.per.level", "1:"), ("metadata.stats-mode.per.level", "0:some")],
)  # fmt: skip
def test_values_that_mean_nothing_are_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"option '{name}'"):
        data_file_styles(table({name: value}))


@pytest.mark.parametrize(
    ("options", "column", "message"),
    [
        ({"file.format": "csv"}, "INT", "format 'csv'"),
        (
            {"file.format": "avro", "file.compression": "lz4"},
            "INT",
            "'lz4'.* for avro",
        ),
        (
            {"file.format": "orc", "file.compression": "gzip"},
            "INT",
            "'gzip'.* for orc",
        ),
        ({"file.compression": "lzo"}, "INT", "'lzo' is not supported for parquet"),
        ({"file.format": "avro"}, "TIMESTAMP(7)", r"column 'c1'.*avro.*TIMESTAMP\(7\)"),
        (
            {"file.format": "avro"},
            {"type": "MULTISET", "element": "INT"},
            "column 'c1'.*MULTISET",
        ),
        ({"file.format": "avro"}, "TIME(6)", r"column 'c1'.*TIME\(6\)"),
        ({"file.format": "orc"}, {"type": "ARRAY", "element": "VARIANT"}, "column 'c1'.*VARIANT"),
    ],
)
def test_what_files_cannot_hold_is_refused_by_name(
    options: dict[str, str], column: Any, message: str
) -> None:
    schema = table(options, column)
    with pytest.raises(UnsupportedError, match=message):
        refuse_style(data_file_styles(schema)[None], schema.fields)


def test_what_they_can_hold_is_taken() -> None:
    schema = table({"file.format": "orc"}, "TIMESTAMP(9)", "TIME(6)")
    styles = data_file_styles(schema)
    refuse_style(styles[None], schema.fields)
    refuse_style(changelog_style(schema, styles[None]), schema.fields)


@pytest.mark.parametrize(("file_format", "compression"), [("parquet", "brotli"), ("avro", "xz")])
def test_what_java_could_not_read_again_is_refused(file_format: str, compression: str) -> None:
    schema = table({"file.format": file_format, "file.compression": compression})
    with pytest.raises(UnsupportedError, match=f"'{compression}'.*Java readers"):
        refuse_style(data_file_styles(schema)[None], schema.fields)


@pytest.mark.parametrize(("file_format", "name"), [("avro", "a b"), ("orc", "a`b")])
def test_files_that_cannot_have_a_name_are_refused(file_format: str, name: str) -> None:
    columns = [("id", parse_type("INT")), (name, parse_type("INT"))]
    schema = new_schema(columns, (), (), {"file.format": file_format}, 0)
    with pytest.raises(UnsupportedError, match=f"column '{name}' has a"):
        refuse_style(data_file_styles(schema)[None], schema.fields)
