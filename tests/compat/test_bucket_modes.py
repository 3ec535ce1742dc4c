"""Java judges tables of every bucket mode that ingestd writes: hive, postponed, cross-partition."""

import random
import shutil
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.stages import decode_stage, map_side_dedup
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite.postpone_move import move_postponed
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.ingest_rig import Rig
from tests.support.json_changes import DELETE, INSERT, UPDATE_AFTER, Change, JsonChanges, record
from tests.support.moving_keys import TAKEN_BACK, Batch, taken_back
from tests.support.native_tables import NOW_MS, native_table, open_native, put
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

TARGET = "lake.orders"
Row = dict[str, Any]


def _on_disk(rig: Rig, warehouse: Path) -> None:
    """The rig's table as a catalog's folder has it."""
    for path, data in rig.io.files.items():
        folder, _, rest = path.removeprefix("/warehouse/").partition("/")
        if folder == TARGET:
            target = warehouse / "lake.db" / "orders" / rest
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def _batches(keys: Mapping[str, int], seed: int, rig: Rig) -> dict[int, Row]:
    """Four batches of random changes; what the table must hold then, by key."""
    rng, rows = random.Random(seed), dict[int, Row]()
    for batch in range(4):
        for number in range(40):
            key = rng.randrange(keys["keys"])
            if key in rows and rng.random() < 0.2:
                rig.produce(record(Change(rows.pop(key), DELETE)))
                continue
            day = None if rng.random() < 0.1 else f"d{rng.randrange(keys['days'])}"
            row = {"id": key, "day": day, "n": batch * 100 + number}
            rig.produce(record(Change(row, UPDATE_AFTER if key in rows else INSERT)))
            rows[key] = row
        rig.run()
    return rows


def _sorted(rows: Any) -> list[Row]:
    return sorted(rows, key=lambda row: row["id"])


@pytest.fixture(autouse=True)
def json_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages decode the records of the rig."""
    shared = JsonChanges()
    monkeypatch.setattr(decode_stage, "shared_data_format", lambda *which: shared)


def _errors(oracle: Oracle, warehouse: Path) -> list[Any]:
    found = oracle.fsck(warehouse, "lake", "orders", "--all")
    return [one for one in found if one["severity"] == "error"]


def test_java_reads_and_compacts_a_table_whose_keys_moved_between_partitions(
    tmp_path: Path, oracle: Oracle
) -> None:
    options = {"dynamic-bucket.target-row-num": "6", "dynamic-bucket.assigner-parallelism": "2"}
    settings = TableSettings(primary_keys=("id",), partition_keys=("day",), options=options)
    rig = Rig(settings={"orders": settings}, slots=2)
    wanted = _sorted(_batches({"keys": 30, "days": 3}, 7, rig).values())
    _on_disk(rig, tmp_path)
    assert _sorted(oracle.read(tmp_path, "lake", "orders")) == wanted
    assert _errors(oracle, tmp_path) == []
    assert verify(open_table(tmp_path)) == []
    oracle.compact(tmp_path, "lake", "orders")
    assert _sorted(oracle.read(tmp_path, "lake", "orders")) == wanted
    assert _errors(oracle, tmp_path) == []


@pytest.mark.parametrize("judge", ["oracle", "oracle_2"])
@pytest.mark.parametrize("java_compacts", [False, True], ids=["our file", "Java's file"])
def test_a_row_whose_partition_a_delete_took_back_is_read_by_its_partition(
    tmp_path: Path, judge: str, java_compacts: bool, request: pytest.FixtureRequest
) -> None:
    oracle: Oracle = request.getfixturevalue(judge)
    options = {"merge-engine": "aggregation", "file-index.bloom-filter.columns": "day"}
    table = native_table(
        tmp_path, [("day", "STRING"), ("id", "INT"), ("n", "INT")], keys=["id"],
        partitions=["day"], options=options,
    )  # fmt: skip
    if java_compacts:
        Batch(table).write(TAKEN_BACK).commit()
        oracle.compact(tmp_path, "db", "t")
    else:
        taken_back(table)
    wanted = [{"day": "a", "id": 1, "n": None}]
    predicate = parse_predicate("day = 'a'", table.schema.fields)
    assert _sorted(read_table(table, predicate=predicate).to_pylist()) == wanted
    assert _sorted(oracle.read(tmp_path, "db", "t", "--filter", "day=a")) == wanted
    assert verify(table) == []


@pytest.mark.parametrize(
    ("judge", "more"),
    [("oracle", {}), ("oracle_2", {"postpone.merge-on-read": "true"})],
    ids=["1.4", "2.0, merged when Flink reads"],
)
def test_java_and_ingestd_move_each_others_waiting_rows_into_buckets(
    tmp_path: Path, judge: str, more: dict[str, str], request: pytest.FixtureRequest
) -> None:
    oracle: Oracle = request.getfixturevalue(judge)
    options = {"bucket": "-2", "postpone.default-bucket-num": "3", **more}
    settings = TableSettings(primary_keys=("id",), options=options)
    rig = Rig(settings={"orders": settings}, slots=2)
    rows = _batches({"keys": 30, "days": 3}, 11, rig)
    _on_disk(rig, tmp_path)
    assert oracle.read(tmp_path, "lake", "orders") == []
    assert _errors(oracle, tmp_path) == []
    shutil.copytree(tmp_path / "lake.db", tmp_path / "other" / "lake.db")
    oracle.compact(tmp_path / "other", "lake", "orders")
    assert _sorted(oracle.read(tmp_path / "other", "lake", "orders")) == _sorted(rows.values())

    def moved() -> list[Row]:
        table = open_table(tmp_path)
        result = move_postponed(table, "mover", state=load_state(table), now_ms=NOW_MS)
        assert result.status == "committed"
        assert _errors(oracle, tmp_path) == []
        assert verify(table) == []
        return _sorted(oracle.read(tmp_path, "lake", "orders"))

    assert moved() == _sorted(rows.values())
    changes = [{"id": 2, "day": "java", "n": 1}, {"id": 3, "_kind": "-D"}, {"id": 2, "n": 2}]
    oracle.append(tmp_path, "lake", "orders", changes, tmp_path)
    rows[2] = {"id": 2, "day": None, "n": 2}
    rows.pop(3, None)
    assert moved() == _sorted(rows.values())
    oracle.compact(tmp_path, "lake", "orders")
    assert _sorted(oracle.read(tmp_path, "lake", "orders")) == _sorted(rows.values())


def test_java_reads_and_compacts_a_table_whose_older_rows_never_left_the_decode_tasks(
    tmp_path: Path, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_side_dedup, "_LEAST_ROWS", 1)
    options = {"dynamic-bucket.target-row-num": "6"}
    settings = TableSettings(primary_keys=("id",), options=options)
    rig = Rig(settings={"orders": settings}, slots=2)
    rows = _batches({"keys": 15, "days": 3}, 5, rig)
    assert rig.states[TARGET].max_sequence_number < 4 * 40 - 1
    _on_disk(rig, tmp_path)
    assert _sorted(oracle.read(tmp_path, "lake", "orders")) == _sorted(rows.values())
    assert _errors(oracle, tmp_path) == []
    assert verify(open_table(tmp_path)) == []
    oracle.compact(tmp_path, "lake", "orders")
    assert _sorted(oracle.read(tmp_path, "lake", "orders")) == _sorted(rows.values())


def open_table(warehouse: Path) -> FileStoreTable:
    """The table of the rig, on disk."""
    io, path = LocalFileIO(sync=False), f"{warehouse}/lake.db/orders"
    schema = latest_schema(io, TablePaths(path))
    assert schema is not None
    return FileStoreTable(path, schema, io, TARGET)


def test_java_finds_rows_in_the_buckets_of_the_hive_function(
    tmp_path: Path, oracle: Oracle
) -> None:
    columns = [("a", "STRING"), ("b", "DECIMAL(10, 2)"), ("v", "INT")]
    options = {"bucket": "5", "bucket-function.type": "hive"}
    table = native_table(tmp_path, columns, keys=["a", "b"], options=options)
    texts = ["", "a", "日本", "a longer text of more than sixteen bytes", "😀"]
    keys = [
        (text, Decimal(f"{n}.50") * sign) for text in texts for n in range(4) for sign in (1, -1)
    ]
    put(table, [{"a": a, "b": b, "v": n} for n, (a, b) in enumerate(keys)])
    assert oracle.fsck(tmp_path, "db", "t", "--all") == []
    # Java appends rows of the same keys: they replace ours only if they are in the same buckets.
    again = [{"a": a, "b": str(b), "v": -n} for n, (a, b) in enumerate(keys)]
    oracle.append(tmp_path, "db", "t", again, tmp_path)
    found = [(row["a"], row["b"], row["v"]) for row in oracle.read(tmp_path, "db", "t")]
    assert sorted(found) == sorted((a, str(b), -n) for n, (a, b) in enumerate(keys))
    assert len({entry["bucket"] for entry in oracle.inspect(tmp_path, "db", "t")["files"]}) > 2


def test_java_finds_hash_indexes_beside_the_data_files(tmp_path: Path, oracle: Oracle) -> None:
    columns = [("dt", "STRING"), ("id", "INT"), ("v", "INT")]
    options = {"index-file-in-data-file-dir": "true", "dynamic-bucket.target-row-num": "4"}
    table = native_table(tmp_path, columns, keys=["dt", "id"], partitions=["dt"], options=options)
    put(table, [{"dt": f"d{n % 2}", "id": n, "v": 0} for n in range(20)])
    put(table, [{"dt": f"d{n % 2}", "id": n, "v": 1} for n in range(0, 30, 3)])
    assert not (tmp_path / "db.db" / "t" / "index").exists()
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []
    again = [{"dt": f"d{n % 2}", "id": n, "v": 2} for n in range(30)]
    oracle.append(tmp_path, "db", "t", again, tmp_path)
    assert sorted(row["id"] for row in oracle.read(tmp_path, "db", "t")) == list(range(30))
    put(open_native(tmp_path), [{"dt": f"d{n % 2}", "id": n, "v": 3} for n in range(30)])
    rows = read_table(open_native(tmp_path)).to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(30))
    assert {row["v"] for row in rows} == {3}
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_java_finds_merged_rows_where_their_first_row_was(
    engine: str, tmp_path: Path, oracle: Oracle
) -> None:
    options = {"merge-engine": engine, "dynamic-bucket.target-row-num": "4"}
    settings = TableSettings(primary_keys=("id",), partition_keys=("day",), options=options)
    rig, rng, rows = Rig(settings={"orders": settings}, slots=2), random.Random(2), dict[int, Row]()
    for _ in range(3):
        for key in rng.sample(range(20), 12):
            row = {"id": key, "day": f"d{rng.randrange(3)}", "a": key * 10, "b": rng.randrange(99)}
            partial = {**row, "a": None} if key in rows else row
            rig.produce(record(Change(partial)))
            rows[key] = {**row, "day": rows.get(key, row)["day"]}
        rig.run()
    _on_disk(rig, tmp_path)
    assert _sorted(oracle.read(tmp_path, "lake", "orders")) == _sorted(rows.values())
    assert _errors(oracle, tmp_path) == []
