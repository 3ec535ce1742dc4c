"""Every file format, compression and type written here, judged and gone on with by others."""

import json
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.schema_change import AddColumn, RenameColumn, SetOption, UpdateColumnType
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import NOW_MS, alter, native_table, open_native, put
from tests.support.nested_shapes import cells, nested_types
from tests.support.oracle import Oracle, agreed_lines
from tests.support.pypaimon import Pypaimon

pytestmark = pytest.mark.compat

FORMATS = [
    *(("parquet", name) for name in ("zstd", "snappy", "gzip", "lz4", "lz4_raw", "none")),
    *(("orc", name) for name in ("zstd", "snappy", "lz4", "zlib", "none")),
    *(("avro", name) for name in ("zstd", "deflate", "null", "bzip2", "snappy")),
]
FAR = ("timestamp3", "timestamp6", "ltz0", "ltz3")
"""Columns with values beyond the years that ORC timestamps are read of."""
VARIANTS = [
    "null", "true", "-129", "70000", "5000000000", "1.5", "1.25e-3", "12345678901234567890.123",
    '"short"', '"' + "x" * 70 + '"', "[]", '[1,[2,null],{"a":1}]',
    '{"b":1,"a":{"c":[1,2]},"é\\"":"\\u0001\\n"}', "-0.0", "1e308", "12.340",
]  # fmt: skip
NANOS: Mapping[str, Any] = {
    f"{root}{precision}": f"TIMESTAMP({precision}){zone}"
    for precision in (7, 8, 9)
    for root, zone in (("t", ""), ("z", " WITH LOCAL TIME ZONE"))
}


def _rows(file_format: str) -> list[dict[str, Any]]:
    left_out = FAR if file_format == "orc" else ()
    return [{name: v for name, v in row.items() if name not in left_out} for row in ROWS]


def test_numbers_stored_by_distances_read_and_compact_in_java(
    tmp_path: Path, oracle: Oracle
) -> None:
    options = {"ingestd.number-encoding": "delta", "bucket": "1"}
    table = native_table(tmp_path / "every", COLUMNS, keys=["id"], options=options)
    put(table, ROWS)
    assert len(agreed_lines(oracle, table)) == len(ROWS)
    columns = [
        ("id", "BIGINT NOT NULL"), ("i", "INT"), ("s", "SMALLINT"), ("d", "DECIMAL(18, 2)"),
        ("e", "DECIMAL(9, 1)"), ("day", "DATE"), ("at", "TIMESTAMP(6)"), ("text", "STRING"),
    ]  # fmt: skip
    table = native_table(tmp_path, columns, keys=["id"], options=options)
    for start in (0, 700):
        put(table, [_numbers(number) for number in range(start, start + 3000)])
    assert len(agreed_lines(oracle, table)) == 3700
    oracle.compact(tmp_path, "db", "t")
    assert len(agreed_lines(oracle, open_native(tmp_path))) == 3700


def _numbers(number: int) -> dict[str, Any]:
    """A row of whole numbers that rise, that jump, and that are missing for a while."""
    jump = (number * 7919) % 65_521 - 30_000
    gap = number // 100 % 3 == 0
    return {
        "id": number * 3, "i": None if gap else jump * 60_000, "s": jump // 2,
        "d": Decimal(number * 10**13 * (-1) ** number).scaleb(-2),
        "e": None if gap else Decimal(jump).scaleb(-1), "day": jump,
        "at": number * 86_399_999_999, "text": f"row {number}",
    }  # fmt: skip


@pytest.mark.parametrize(("file_format", "compression"), FORMATS)
def test_every_type_reads_in_java_as_written(
    file_format: str, compression: str, tmp_path: Path, oracle: Oracle
) -> None:
    # A name with a quotation mark in it is none to Avro.
    columns = [pair for pair in COLUMNS if pair[0] != "row" or file_format != "avro"]
    options = {"file.format": file_format, "file.compression": compression, "bucket": "1"}
    table = native_table(tmp_path, columns, keys=["id"], options=options)
    put(table, _rows(file_format))
    assert len(agreed_lines(oracle, table)) == len(ROWS)
    # Java cannot compact it: some values are beyond what its own writers take.
    assert oracle.append(tmp_path, "db", "t", [{"id": 99, "string": "java"}], tmp_path)
    assert len(agreed_lines(oracle, open_native(tmp_path))) == len(ROWS) + 1


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_append_tables_of_other_formats_read_in_java_and_pypaimon(
    file_format: str, tmp_path: Path, oracle: Oracle, pypaimon: Pypaimon
) -> None:
    columns = [("id", "INT"), ("v", "STRING"), ("n", "DECIMAL(20, 2)"), ("at", "TIMESTAMP(3)")]
    table = native_table(tmp_path, columns, options={"file.format": file_format})
    put(table, [{"id": n, "v": f"v{n}", "at": n} for n in range(50)])
    assert len(agreed_lines(oracle, table)) == 50
    found = pypaimon.read(tmp_path, "db", "t").to_pylist()
    assert sorted(row["v"] for row in found) == sorted(f"v{n}" for n in range(50))


def test_levels_may_have_formats_and_statistics_of_their_own(
    tmp_path: Path, oracle: Oracle
) -> None:
    options = {
        "bucket": "1", "file.format.per.level": "0:avro,5:orc", "file.compression": "zstd",
        "file.compression.per.level": "0:deflate,5:zlib", "metadata.stats-mode.per.level": "0:none",
        "file.suffix.include.compression": "true",
    }  # fmt: skip
    table = native_table(tmp_path, [("id", "INT"), ("v", "STRING")], keys=["id"], options=options)
    put(table, [{"id": n, "v": f"{n}"} for n in range(20)])
    names = [path.name for path in Path(table.path, "bucket-0").iterdir()]
    assert [name.partition(".")[2] for name in names] == ["deflate.avro"]
    agreed_lines(oracle, table)
    oracle.compact(tmp_path, "db", "t")
    put(table, [{"id": 3, "v": "new"}])
    assert len(agreed_lines(oracle, open_native(tmp_path))) == 20


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_nanoseconds_before_and_after_1970_read_the_same(
    file_format: str, tmp_path: Path, oracle: Oracle
) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, **dict.fromkeys(NANOS, "1969-12-31T23:59:58.123456789")},
        {"id": 2, **dict.fromkeys(NANOS, "1700-01-02T03:04:05.999999999")},
        {"id": 3, **dict.fromkeys(NANOS, "2261-12-31T00:00:00.000000001")},
        {"id": 4},
    ]
    shown = [
        {name: _to_digits(name, value) if name != "id" else value for name, value in row.items()}
        for row in rows
    ]
    fields = [{"name": "id", "type": "INT"}, *({"name": n, "type": t} for n, t in NANOS.items())]
    options = {"file.format": file_format, "orc.timestamp-ltz.legacy.type": "false"}
    spec = {"fields": fields, "options": options,
            "steps": [{"commit": {"rows": shown}}]}  # fmt: skip
    oracle.write_spec(spec, tmp_path / "java", tmp_path)
    java = open_native(tmp_path / "java")
    assert len(agreed_lines(oracle, java)) == 4
    own = native_table(tmp_path / "own", [("id", "INT"), *NANOS.items()],
                       options={"file.format": file_format})  # fmt: skip
    found = read_table(java)
    cells = zip(*map(column_values, found.columns), strict=True)
    put(own, [dict(zip(found.column_names, row, strict=True)) for row in cells])
    assert agreed_lines(oracle, own) == agreed_lines(oracle, java)


def _to_digits(name: str, text: str) -> str:
    return text[: 20 + int(name[1])] + ("Z" if name[0] == "z" else "")


def test_far_timestamps_of_java_come_back_from_int96(tmp_path: Path, oracle: Oracle) -> None:
    spec = {
        "fields": [{"name": "id", "type": "INT"}, {"name": "near", "type": "TIMESTAMP(9)"},
                   {"name": "t", "type": "TIMESTAMP(3)"}],
        "options": {},
        "steps": [{"commit": {"rows": [
            {"id": 1, "near": "1969-12-31T00:00:00.000000001", "t": "9999-12-31T23:59:59.999"},
            {"id": 2, "near": None, "t": "0001-01-01T00:00:00.000"}]}}],
    }  # fmt: skip
    oracle.write_spec(spec, tmp_path, tmp_path)
    assert len(agreed_lines(oracle, open_native(tmp_path))) == 2


@pytest.mark.parametrize("keys", [["id"], []], ids=["primary key", "append"])
def test_variants_of_java_read_here_and_go_back(
    keys: list[str], tmp_path: Path, oracle: Oracle
) -> None:
    types = {"id": "INT NOT NULL", "v": "VARIANT", "a": {"type": "ARRAY", "element": "VARIANT"}}
    options = {"bucket": "1"} if keys else {}
    rows = [
        {"id": i, "v": {"variant": text}, "a": [{"variant": text}, None]}
        for i, text in enumerate(VARIANTS)
    ]
    spec = {
        "fields": [{"name": name, "type": t} for name, t in types.items()],
        "primaryKey": keys,
        "options": options,
        "steps": [{"commit": {"rows": [*rows, {"id": 99}]}}],
    }
    oracle.write_spec(spec, tmp_path / "java", tmp_path)
    java = open_native(tmp_path / "java")
    lines = agreed_lines(oracle, java)
    own = native_table(tmp_path / "own", list(types.items()), keys=keys, options=options)
    put(own, read_table(java).to_pylist())
    assert agreed_lines(oracle, own) == lines


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_multisets_and_maps_with_any_key_read_the_same(
    file_format: str, tmp_path: Path, oracle: Oracle
) -> None:
    columns = [
        ("id", "INT"),
        ("texts", {"type": "MULTISET", "element": "STRING"}),
        ("numbers", {"type": "MULTISET", "element": "BIGINT"}),
        ("map", {"type": "MAP", "key": "DATE", "value": {"type": "ARRAY", "element": "TIME(3)"}}),
    ]
    if file_format == "avro":
        # Java itself cannot read a MULTISET of numbers from Avro.
        columns = [pair for pair in columns if pair[0] != "numbers"]
        columns.append(("short", {"type": "MULTISET", "element": "VARCHAR(3)"}))
    table = native_table(tmp_path, columns, options={"file.format": file_format})
    put(
        table,
        [
            {"id": 1, "texts": [("a", 2), ("", 1)], "numbers": [(150, 3)],
             "map": [(19_000, [1, None]), (-1, None)]},
            {"id": 2, "texts": [], "numbers": None, "map": []},
        ],
    )  # fmt: skip
    agreed_lines(oracle, table)
    row = {"id": 3, "map": []}
    oracle.append(tmp_path, "db", "t", [row], tmp_path)
    assert len(agreed_lines(oracle, open_native(tmp_path))) == 3


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_old_files_of_every_format_read_in_new_columns(
    file_format: str, tmp_path: Path, oracle: Oracle
) -> None:
    row = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]}
    columns = [("id", "INT"), ("v", "INT"), ("r", row)]
    options = {"bucket": "1", "file.format": file_format}
    table = native_table(tmp_path, columns, keys=["id"], options=options)
    put(table, [{"id": 1, "v": 5, "r": (7,)}, {"id": 2}])
    table = alter(
        table,
        RenameColumn("v", "w"),
        UpdateColumnType("w", parse_type("STRING")),
        AddColumn(("r", "y"), parse_type("DOUBLE")),
        UpdateColumnType(("r", "x"), parse_type("BIGINT")),
    )
    put(table, [{"id": 3, "w": "text", "r": (2**40, 0.5)}])
    lines = agreed_lines(oracle, table)
    assert json.loads(lines[0]) == {"id": 1, "w": "5", "r": {"x": 7, "y": None}}


@pytest.mark.parametrize("file_format", ["orc", "parquet", "avro"])
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(data=st.data(), kinds=st.lists(nested_types(), min_size=8, max_size=8))
def test_random_nested_columns_read_in_java(
    file_format: str, oracle: Oracle, data: st.DataObject, kinds: list[Any]
) -> None:
    columns = [("id", "INT"), *((f"c{n}", kind) for n, kind in enumerate(kinds))]
    found = [data.draw(cells(kind, 20)) for kind in kinds]
    rows = [
        {"id": number, **{f"c{n}": one[number] for n, one in enumerate(found) if number < len(one)}}
        for number in range(max(map(len, found)))
    ]
    options = {"bucket": "1", "file.format": file_format, "file.format.per.level": "0:avro"}
    with tempfile.TemporaryDirectory() as folder:
        table = native_table(folder, columns, keys=["id"], options=options)
        put(table, rows)
        written = agreed_lines(oracle, table)
        assert compact_table(table, now_ms=NOW_MS, full=True).status == "compacted"
        assert agreed_lines(oracle, table) == written


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_zoned_timestamps_in_orc_are_the_same_in_every_zone(zone: str, tmp_path: Path) -> None:
    zoned = "TIMESTAMP(3) WITH LOCAL TIME ZONE"
    columns = [("id", "INT"), ("at", zoned), ("all", {"type": "ARRAY", "element": zoned}),
               ("plain", "TIMESTAMP(3)")]  # fmt: skip
    table = native_table(tmp_path, columns, keys=["id"],
                         options={"bucket": "1", "file.format": "orc"})  # fmt: skip
    # Within a day of 1970 Java's writer or Arrow's reader may be a second off.
    moments = [0, -40_000_000_500, 1_710_054_000_000, 1_720_000_000_123]
    put(table, [{"id": n, "at": at, "all": [at], "plain": at} for n, at in enumerate(moments)])
    with Oracle(zone=zone) as oracle:
        agreed_lines(oracle, table)
        row = {"id": 9, "at": "2024-07-03T09:46:40.123Z", "all": ["2024-03-10T07:00:00Z"],
               "plain": "2024-03-10T03:00:00"}  # fmt: skip
        assert oracle.append(tmp_path, "db", "t", [row], tmp_path)
        lines = agreed_lines(oracle, open_native(tmp_path))
        assert json.loads(lines[-1])["at"].startswith("2024-07-03T09:46:40.123")
        oracle.compact(tmp_path, "db", "t")
        assert agreed_lines(oracle, open_native(tmp_path)) == lines


def test_zoned_orc_of_java_is_refused_unless_it_says_that_no_zone_is_in_it(
    tmp_path: Path, oracle: Oracle
) -> None:
    spec = {
        "fields": [{"name": "id", "type": "INT"},
                   {"name": "at", "type": "TIMESTAMP(3) WITH LOCAL TIME ZONE"}],
        "options": {"file.format": "orc"},
        "steps": [{"commit": {"rows": [{"id": 1, "at": "2024-07-03T09:46:40.123Z"}]}}],
    }  # fmt: skip
    oracle.write_spec(spec, tmp_path, tmp_path)
    table = open_native(tmp_path)
    with pytest.raises(UnsupportedError, match=r"column 'at'.*orc\.timestamp-ltz\.legacy\.type"):
        read_table(table)
    with pytest.raises(UnsupportedError, match=r"column 'at'.*orc\.timestamp-ltz\.legacy\.type"):
        refuse_unsupported(table.schema, for_write=True)
    # The judge's zone is UTC.
    table = alter(table, SetOption("orc.timestamp-ltz.legacy.type", "false"))
    assert len(agreed_lines(oracle, table)) == 1


@pytest.mark.parametrize("keys", [["id"], []], ids=["primary key", "append"])
def test_timestamps_that_orc_lacks_are_in_files_that_java_reads(
    keys: list[str], tmp_path: Path, oracle: Oracle
) -> None:
    columns = [("id", "INT"), ("t3", "TIMESTAMP(3)"), ("t6", "TIMESTAMP(6)"),
               ("all", {"type": "ARRAY", "element": "TIMESTAMP(6)"})]  # fmt: skip
    options = {"bucket": "1" if keys else "-1", "file.format": "orc",
               "file.format.per.level": "0:avro"}  # fmt: skip
    table = native_table(tmp_path, columns, keys=keys, options=options)
    for n, micros in enumerate([0, -1, -14_000_000_000_000_001, 253_402_300_799_999_999]):
        put(table, [{"id": n, "t3": micros // 1000, "t6": micros, "all": [micros, None]}])
    lines = agreed_lines(oracle, table)
    assert compact_table(table, now_ms=NOW_MS, full=True).status == "compacted"
    assert agreed_lines(oracle, table) == lines


def test_timestamps_near_1970_of_java_in_another_zone_are_refused_and_not_a_second_off(
    tmp_path: Path,
) -> None:
    spec = {
        "fields": [{"name": "id", "type": "INT"}, {"name": "t", "type": "TIMESTAMP(3)"}],
        "options": {"file.format": "orc"},
        "steps": [{"commit": {"rows": [{"id": 1, "t": "1969-12-31T23:59:58.000"}]}}],
    }  # fmt: skip
    with Oracle(zone="America/New_York") as oracle:
        oracle.write_spec(spec, tmp_path, tmp_path)
        assert len(agreed_lines(oracle, open_native(tmp_path))) == 1
        assert oracle.append(
            tmp_path, "db", "t", [{"id": 2, "t": "1969-12-31T23:59:58.500"}], tmp_path
        )
    with pytest.raises(UnsupportedError, match=r"column t: .*America/New_York"):
        read_table(open_native(tmp_path))


@pytest.mark.parametrize(
    "options",
    [
        {"file.format": "parquet", "parquet.compression": "snappy", "parquet.block.size": "4096",
         "parquet.page.size": "1024", "parquet.enable.dictionary": "true",
         "parquet.dictionary.page.size": "512"},
        {"file.format": "orc", "orc.stripe.size": "65536",
         "orc.row.index.stride": "1000", "orc.dictionary.key.threshold": "0.8"},
        {"file.format": "orc", "orc.compress.size": "131072"},
        {"file.format": "orc", "orc.compress.size": "8388607"},
        {"file.format": "orc", "file.block-size": "64 kb"},
    ],
    ids=["parquet", "orc", "chunks", "largest chunks", "block size"],
)  # fmt: skip
def test_files_with_settings_of_their_format_read_and_compact_in_java(
    options: Mapping[str, str], tmp_path: Path, oracle: Oracle
) -> None:
    columns = [("id", "INT NOT NULL"), ("v", "STRING"), ("n", "DECIMAL(20, 2)")]
    table = native_table(tmp_path, columns, keys=["id"], options={"bucket": "1", **options})
    put(table, [{"id": n, "v": f"v{n % 50}", "n": Decimal(n)} for n in range(5000)])
    assert len(agreed_lines(oracle, table)) == 5000
    put(table, [{"id": n, "v": "new"} for n in range(50)])
    oracle.compact(tmp_path, "db", "t")
    assert len(agreed_lines(oracle, open_native(tmp_path))) == 5000


def test_options_without_effect_change_nothing_that_java_reads(
    tmp_path: Path, oracle: Oracle
) -> None:
    options = {
        "bucket": "1", "fields.v.default-value": "none", "sequence.auto-padding": "row-kind-flag",
        "commit.force-compact": "true", "commit.user-prefix": "etl",
        "manifest.delete-file-drop-stats": "true", "snapshot.ignore-empty-commit": "false",
        "parquet.writer.version": "PARQUET_1_0", "write-buffer-size": "8 mb", "team.note": "ours",
    }  # fmt: skip
    columns = [("id", "INT NOT NULL"), ("v", "STRING")]
    table = native_table(tmp_path, columns, keys=["id"], options=options)
    put(table, [{"id": n, "v": None if n % 2 else f"v{n}"} for n in range(20)])
    lines = agreed_lines(oracle, table)
    assert json.loads(lines[1])["v"] is None
    assert oracle.append(tmp_path, "db", "t", [{"id": 1, "v": None}], tmp_path)
    put(open_native(tmp_path), [{"id": 2, "v": "new"}])
    oracle.compact(tmp_path, "db", "t")
    assert len(agreed_lines(oracle, open_native(tmp_path))) == 20


TEXT_COLUMNS: Mapping[str, Any] = {
    "b": "BOOLEAN", "t": "TINYINT", "s": "SMALLINT", "i": "INT", "l": "BIGINT", "f": "FLOAT",
    "d": "DOUBLE", "n": "DECIMAL(20, 4)", "c": "CHAR(3)", "v": "STRING", "x": "BYTES",
    "day": "DATE", "at": "TIMESTAMP(3)", "ts": "TIMESTAMP(6)", "tm": "TIME(3)",
    "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
}  # fmt: skip
TEXT_ROWS = [
    {"b": True, "t": -128, "s": 7, "i": 2147483647, "l": -9223372036854775808, "f": 1.5,
     "d": 1e300, "n": "-12.3400", "c": "ab", "v": 'a,"b"\\c', "x": "00ff", "day": "1969-12-31",
     "at": "2024-02-29T12:34:56.789", "ts": "1970-01-01T00:00:00.000001", "tm": "23:59:59.001",
     "z": "2024-01-01T00:00:00.000000"},
    {"b": False, "i": 0, "v": ' lead "x" trail, ', "f": -0.0, "d": 0.1},
    {"v": "é€\U0001f600", "c": "", "x": ""},
    {},
]  # fmt: skip
NESTED = {
    "r": {"type": "ROW", "fields": [{"id": 20, "name": "q", "type": "INT"},
                                    {"id": 21, "name": "w", "type": "STRING"}]},
    "a": {"type": "ARRAY", "element": "DATE"},
    "m": {"type": "MAP", "key": "STRING", "value": {"type": "ARRAY", "element": "BIGINT"}},
}  # fmt: skip
NESTED_ROWS = [
    {"r": {"q": 1, "w": "x"}, "a": ["2024-01-01", None], "m": [["k", [1, None]], ["l", None]]},
    {"r": {"q": None, "w": None}, "a": [], "m": []},
    {"r": None, "a": None, "m": None},
]  # fmt: skip


@pytest.mark.parametrize(
    ("file_format", "options"),
    [
        ("csv", {"file.compression": "none"}),
        ("csv", {"file.compression": "gzip", "csv.field-delimiter": ";", "csv.null-literal": "\\N",
                 "csv.include-header": "true", "csv.line-delimiter": "\u0001\n"}),
        ("json", {"file.compression": "bzip2"}),
        ("json", {"file.compression": "deflate", "json.line-delimiter": "||"}),
        ("text", {"file.compression": "none"}),
    ],
)  # fmt: skip
def test_files_of_texts_that_java_wrote_are_read(
    tmp_path: Path, oracle: Oracle, file_format: str, options: Mapping[str, str]
) -> None:
    columns, rows = dict(TEXT_COLUMNS), [dict(row) for row in TEXT_ROWS]
    if file_format == "json":
        columns.update(NESTED)
        rows = [{**row, **more} for row, more in zip(rows, [*NESTED_ROWS, {}], strict=True)]
    if file_format == "text":
        columns, rows = {"v": "STRING"}, [{"v": "one"}, {"v": ""}, {"v": None}, {"v": 'é, \\ "'}]
    spec = {
        "fields": [{"name": name, "type": t} for name, t in columns.items()],
        "options": {"bucket": "-1", "file.format": file_format, **options},
        "steps": [{"commit": {"rows": rows}}, {"commit": {"rows": rows[:2]}}],
    }
    oracle.write_spec(spec, tmp_path, tmp_path)
    table = open_native(tmp_path)
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert lines == oracle.read_lines(tmp_path, "db", "t")
    assert len(lines) == len(rows) + 2
    assert [finding for finding in verify(table) if finding.code != "stats"] == []
    with pytest.raises(UnsupportedError, match="ingestd reads files of texts, but writes none"):
        refuse_unsupported(table.schema, for_write=True)
    later = alter(table, SetOption("file.format", "parquet"), SetOption("file.compression", "zstd"))
    compact_table(later, full=True, now_ms=NOW_MS)
    assert agreed_lines(oracle, later) == lines


SHREDDED = {
    "type": "ROW",
    "fields": [
        {"id": 0, "name": "v", "type": {"type": "ROW", "fields": [
            {"id": 1, "name": "a", "type": "BIGINT"}, {"id": 2, "name": "s", "type": "STRING"},
            {"id": 3, "name": "n", "type": "DECIMAL(9, 2)"},
            {"id": 4, "name": "l", "type": {"type": "ARRAY", "element": "BIGINT"}},
            {"id": 5, "name": "r", "type": {"type": "ROW", "fields": [
                {"id": 6, "name": "x", "type": "DOUBLE"}, {"id": 7, "name": "b", "type": "BOOLEAN"},
            ]}},
        ]}},
    ],
}  # fmt: skip
SHREDDED_VALUES = [
    '{"a":1,"s":"x","n":1.25,"l":[1,2,70000],"r":{"x":1.5e300,"b":true}}',
    '{"a":"no number","s":7,"l":[1,"two",null],"r":{"b":false,"more":[1]},"é":{"k":null}}',
    '{"s":"' + "y" * 90 + '","zz":1,"aa":2,"l":[],"r":{}}', "{}", "[1,2]", '"text"', "12", "null",
    '{"l":{"no":"list"},"r":[],"a":-5000000000,"n":99.9}',
]  # fmt: skip


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("parquet.variant.shreddingSchema", json.dumps(SHREDDED)),
        ("variant.inferShreddingSchema", "true"),
    ],
)
def test_shredded_variants_that_java_wrote_are_read(
    tmp_path: Path, oracle: Oracle, option: str, value: str
) -> None:
    # Java infers no columns from values that are mostly of other types.
    values = SHREDDED_VALUES[:1] * 20 if value == "true" else SHREDDED_VALUES
    rows = [{"k": k, "v": {"variant": text}} for k, text in enumerate(values)]
    spec = {
        "fields": [{"name": "k", "type": "INT"}, {"name": "v", "type": "VARIANT"}],
        "options": {"bucket": "-1", option: value},
        "steps": [{"commit": {"rows": [*rows, {"k": 99, "v": None}]}}],
    }
    oracle.write_spec(spec, tmp_path, tmp_path)
    table = open_native(tmp_path)
    (path,) = Path(table.path).rglob("data-*.parquet")
    assert b"typed_value" in path.read_bytes()
    assert len(agreed_lines(oracle, table)) == len(rows) + 1
