"""Tables written here, judged by Java Paimon and pypaimon, and gone on with by Java."""

import itertools
import random
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import alter, native_table, open_native, put
from tests.support.oracle import Oracle, agreed_lines
from tests.support.pypaimon import Pypaimon

pytestmark = pytest.mark.compat

ORDERS = [("dt", "DATE"), ("id", "INT"), ("v", "STRING")]
KEYS: Mapping[str, list[Any]] = {
    "TINYINT": [-128, -1, 0, 127],
    "SMALLINT": [-32768, 0, 32767],
    "INT": [-(2**31), -1, 0, 2**31 - 1],
    "BIGINT": [-(2**63), -1, 0, 2**63 - 1],
    "BOOLEAN": [False, True],
    "DATE": [-1_000_000, -1, 0, 20_000],
    "TIME(3)": [0, 86_399_999],
    "TIMESTAMP(3)": [-(10**15), -1, 0, 10**15],
    "TIMESTAMP(6)": [-(10**18), -1, 0, 10**18],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": [-1, 0, 10**17],
    "DECIMAL(9, 2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("9999999.99")],
    "DECIMAL(30, 4)": [Decimal(f"{n}.0000") for n in (-(10**25), -(10**18), -1, 0, 2**64, 10**25)],
    "STRING": ["", "a", "ab", "B", "é", "\uffff", "𝄞", "a longer string value", "~"],
    "VARCHAR(9)": ["zz", "Z"],
    "BYTES": [b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00", b"longer than seven"],
    "DOUBLE": [-1.5, 0.0, 1e300, float("inf")],
    "FLOAT": [-1.5, 0.0, 3.25],
}


@pytest.mark.parametrize("keys", [["id"], []], ids=["primary key", "append"])
def test_every_type_reads_in_java_as_written(
    keys: list[str], tmp_path: Path, oracle: Oracle
) -> None:
    table = native_table(tmp_path, COLUMNS, keys=keys, options={"bucket": "2"} if keys else {})
    put(table, ROWS)
    assert len(agreed_lines(oracle, table)) == len(ROWS)


def test_pypaimon_reads_merged_rows(tmp_path: Path, pypaimon: Pypaimon) -> None:
    table = native_table(tmp_path, ORDERS, keys=["dt", "id"], partitions=["dt"])
    put(table, [{"dt": n % 2, "id": n, "v": "old"} for n in range(10)])
    put(table, [{"dt": 1, "id": 3, "v": "new"}, {"dt": 0, "id": 4, "_kind": 3}])
    found = {row["id"]: row["v"] for row in pypaimon.read(tmp_path, "db", "t").to_pylist()}
    assert found == {n: "new" if n == 3 else "old" for n in range(10) if n != 4}


def test_parquet_columns_are_laid_out_as_java_lays_them_out(tmp_path: Path, oracle: Oracle) -> None:
    # A row inside a row is left out: Java numbers its fields in another order.
    columns = [pair for pair in COLUMNS if pair[0] != "row"]
    fields = [{"name": name, "type": t} for name, t in columns]
    spec = {
        "fields": [{"name": "id", "type": "BIGINT NOT NULL"}, *fields[1:]],
        "primaryKey": ["id"],
        "options": {"bucket": "1"},
        "steps": [{"commit": {"rows": [{"id": 1}]}}],
    }
    oracle.write_spec(spec, tmp_path / "java", tmp_path)
    put(native_table(tmp_path / "own", columns, keys=["id"], options={"bucket": "1"}), [{"id": 1}])
    java, own = _parquet_schema(tmp_path / "java"), _parquet_schema(tmp_path / "own")
    assert own == java


def _parquet_schema(warehouse: Path) -> list[str]:
    (path,) = (warehouse / "db.db/t/bucket-0").glob("*.parquet")
    # The name of the message and an obsolete annotation say nothing.
    return [
        line.replace(" (Map)", "") for line in str(pq.ParquetFile(path).schema).splitlines()[2:]
    ]


@pytest.mark.parametrize("bucket", ["3", "-1"])
@pytest.mark.parametrize("key_type", KEYS)
def test_keys_of_every_type_are_ordered_hashed_and_found(
    key_type: str, bucket: str, tmp_path: Path, oracle: Oracle
) -> None:
    options = {"bucket": bucket, "dynamic-bucket.target-row-num": "2"}
    table = native_table(
        tmp_path, [("k", key_type), ("n", "INT"), ("v", "STRING")], keys=["k", "n"], options=options
    )
    rows = [{"k": k, "n": n, "v": "v"} for k, n in itertools.product(KEYS[key_type], (-1, 0, 1))]
    random.Random(7).shuffle(rows)
    put(table, rows + rows[:5])
    put(table, [{**row, "v": "again"} for row in rows[::2]])
    assert len(agreed_lines(oracle, table)) == len(rows)


def test_point_lookups_of_java_find_keys_in_their_buckets(tmp_path: Path, oracle: Oracle) -> None:
    table = native_table(
        tmp_path, [("k", "STRING"), ("v", "INT")], keys=["k"], options={"bucket": "7"}
    )
    put(table, [{"k": f"key {n}", "v": n} for n in range(50)])
    for n in range(0, 50, 7):
        found = oracle.read(tmp_path, "db", "t", "--filter", f"k=key {n}")
        assert found == [{"k": f"key {n}", "v": n}]


@pytest.mark.parametrize("options", [{"bucket": "2"}, {"dynamic-bucket.target-row-num": "4"}])
def test_java_goes_on_and_hands_back(
    options: dict[str, str], tmp_path: Path, oracle: Oracle
) -> None:
    table = native_table(tmp_path, ORDERS, keys=["dt", "id"], partitions=["dt"], options=options)
    put(table, [{"dt": n % 2, "id": n, "v": "first"} for n in range(20)])
    java = [{"dt": f"1970-01-0{1 + n % 2}", "id": n, "v": "java"} for n in range(10, 30)]
    oracle.append(tmp_path, "db", "t", [*java, {**java[0], "_kind": "-D"}], tmp_path)
    agreed_lines(oracle, open_native(tmp_path))
    put(table, [{"dt": n % 2, "id": n, "v": "own"} for n in range(25, 40)])
    agreed_lines(oracle, open_native(tmp_path))
    oracle.compact(tmp_path, "db", "t")
    put(table, [{"dt": 0, "id": 2, "_kind": 3}, {"dt": 1, "id": 41, "v": "last"}])
    lines = agreed_lines(oracle, open_native(tmp_path))
    assert len(lines) == 39  # 0 to 41 without 2, 10 and 40


def test_files_roll_and_java_reads_and_compacts_them(tmp_path: Path, oracle: Oracle) -> None:
    options = {"bucket": "1", "target-file-size": "16 kb"}
    table = native_table(tmp_path, [("id", "INT"), ("v", "STRING")], keys=["id"], options=options)
    rows = [{"id": n, "v": random.Random(n).randbytes(20).hex()} for n in range(3000)]
    result = put(table, rows)
    assert len(list(Path(table.path, "bucket-0").iterdir())) > 3
    assert result.snapshot is not None
    findings = oracle.fsck(tmp_path, "db", "t", "--all", "--orphans")
    # Files of one batch hold different keys, yet the sequence numbers of one batch.
    assert {finding["code"] for finding in findings} <= {"sequence-overlap"}
    assert verify(table) == []
    oracle.compact(tmp_path, "db", "t")
    assert len(agreed_lines(oracle, table)) == 3000


def test_deletes_are_dropped_by_compaction_in_java(tmp_path: Path, oracle: Oracle) -> None:
    table = native_table(tmp_path, [("id", "INT"), ("v", "INT")], keys=["id"])
    put(table, [{"id": n, "v": n} for n in range(5)])
    put(table, [{"id": n, "_kind": 3} for n in range(4)])
    assert agreed_lines(oracle, table) == ['{"id":4,"v":4}']
    oracle.compact(tmp_path, "db", "t")
    assert agreed_lines(oracle, table) == ['{"id":4,"v":4}']


@pytest.mark.parametrize("keys", [["id"], []], ids=["primary key", "append"])
def test_old_files_read_in_java_and_here_alike_after_schema_changes(
    keys: list[str], tmp_path: Path, oracle: Oracle
) -> None:
    columns = [
        ("id", "INT"), ("i", "INT"), ("f", "FLOAT"), ("d", "DECIMAL(9, 2)"), ("b", "BOOLEAN"),
        ("day", "DATE"), ("at", "TIMESTAMP(3)"), ("gone", "STRING"), ("s", "VARCHAR(3)"),
        ("n", "SMALLINT"),
    ]  # fmt: skip
    table = native_table(tmp_path, columns, keys=keys, options={"bucket": "1"} if keys else {})
    row = {
        "id": 1, "i": 16_777_217, "f": 0.1, "d": Decimal("-1.50"), "b": True, "day": 19_000,
        "at": -1, "gone": "x", "s": "abc", "n": -7,
    }  # fmt: skip
    put(table, [row, {"id": 2}])
    changes = {
        "i": "FLOAT", "f": "DOUBLE", "d": "STRING", "b": "STRING", "day": "STRING",
        "at": "TIMESTAMP(6)", "s": "STRING", "n": "DECIMAL(12, 2)",
    }  # fmt: skip
    wider = [UpdateColumnType(name, parse_type(text)) for name, text in changes.items()]
    table = alter(table, *wider, DropColumn("gone"), RenameColumn("i", "renamed"))
    table = alter(table, AddColumn("gone", parse_type("INT")))
    put(table, [{"id": 3, "d": "text", "gone": 5}, {"id": 2, "renamed": 1.5, "gone": 6}])
    assert len(agreed_lines(oracle, table)) == (3 if keys else 4)


def test_append_table_with_bucket_key_is_pruned_right(tmp_path: Path, oracle: Oracle) -> None:
    options = {"bucket": "4", "bucket-key": "k"}
    table = native_table(tmp_path, [("k", "BIGINT"), ("v", "INT")], options=options)
    put(table, [{"k": n % 10, "v": n} for n in range(40)])
    agreed_lines(oracle, table)
    found = oracle.read(tmp_path, "db", "t", "--filter", "k=3")
    assert {row["v"] for row in found} == {3, 13, 23, 33}


def test_zeros_of_either_sign_are_one_key_as_in_java(tmp_path: Path, oracle: Oracle) -> None:
    table = native_table(
        tmp_path, [("k", "DOUBLE"), ("v", "INT")], keys=["k"], options={"bucket": "1"}
    )
    put(table, [{"k": 0.0, "v": 1}, {"k": -1.0, "v": 2}, {"k": -0.0, "v": 3}])
    put(table, [{"k": 0.0, "v": 4}])
    assert agreed_lines(oracle, table) == ['{"k":-1.0,"v":2}', '{"k":0.0,"v":4}']
