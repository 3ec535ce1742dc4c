"""Batches of rows written and committed by a program."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
import ingestd.paimon.library.writer as writer_module
from ingestd.errors import CommitConflictError, ConfigError, UnsupportedError
from ingestd.paimon.library.open_table import Table
from ingestd.paimon.library.warehouse import Warehouse
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.verify.table_verify import verify

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("dt", pa.string()), ("v", pa.float64())]
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return paimon.open_warehouse(str(tmp_path))


def made(warehouse: Warehouse, **how: object) -> Table:
    return warehouse.create("db.t", SCHEMA, **how)  # type: ignore[arg-type]


def values(table: Table) -> dict[object, object]:
    return {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}


def data_files(table: Table) -> list[Path]:
    return list(Path(table.files.path).rglob("data-*"))


@pytest.mark.parametrize(
    "how",
    [
        {"primary_keys": ["id"]},
        {"primary_keys": ["id"], "options": {"bucket": "2"}},
        {"primary_keys": ["id", "dt"], "partition_keys": ["dt"]},
        {"primary_keys": ["id", "dt"], "partition_keys": ["dt"], "options": {"bucket": "2"}},
        {"primary_keys": ["id"], "partition_keys": ["dt"]},
        {"primary_keys": ["id"], "options": {"changelog-producer": "input"}},
    ],
    ids=["dynamic", "fixed", "partitions", "fixed in partitions", "across", "changelog"],
)
def test_later_rows_replace_earlier_ones_in_every_kind_of_table(
    warehouse: Warehouse, how: dict[str, object]
) -> None:
    table = made(warehouse, **how)
    with table.writer() as writer:
        writer.write([{"id": n, "dt": "ab"[n % 2], "v": n} for n in range(20)])
        writer.write([{"id": 3, "dt": "b", "v": 33}, {"id": 30, "dt": "b", "v": None}])
        writer.delete([{"id": 4, "dt": "a"}])
    assert writer.snapshot == table.snapshot()
    table.write(pa.table({"id": [5], "dt": ["b"], "v": [55]}))
    wanted = {n: float(n) for n in range(20) if n != 4} | {3: 33.0, 5: 55.0, 30: None}
    assert values(table) == wanted
    assert verify(table.files) == []
    assert [snapshot.id for snapshot in table.snapshots()] == [1, 2]


def test_a_key_that_moves_leaves_its_partition(warehouse: Warehouse) -> None:
    table = made(warehouse, primary_keys=["id"], partition_keys=["dt"])
    table.write([{"id": 1, "dt": "a", "v": 1}])
    with table.writer() as writer:
        writer.write([{"id": 1, "dt": "b", "v": 2}])
        writer.write([{"id": 1, "dt": "c", "v": 3}])
    assert table.to_arrow().to_pylist() == [{"id": 1, "dt": "c", "v": 3.0}]


def test_append_tables_keep_every_row_and_delete_none(warehouse: Warehouse) -> None:
    table = made(warehouse, partition_keys=["dt"])
    table.write([{"id": 1, "dt": "a"}, {"id": 1, "dt": "a"}])
    assert table.to_arrow().num_rows == 2
    with pytest.raises(ConfigError, match="no primary key"):
        table.delete([{"id": 1, "dt": "a"}])


@pytest.mark.parametrize("bucket", ["-1", "2"])
def test_rows_of_a_table_with_a_row_kind_column_are_deleted_whatever_it_contains(
    warehouse: Warehouse, bucket: str
) -> None:
    schema = SCHEMA.append(pa.field("kind", pa.string()))
    options = {"rowkind.field": "kind", "bucket": bucket}
    table = warehouse.create("db.t", schema, primary_keys=["id"], options=options)
    table.write([{"id": i, "dt": "a", "v": i, "kind": "+I"} for i in range(3)])
    table.delete(table.to_arrow(where="id = 0"))
    table.delete([{"id": 1}])
    assert values(table) == {2: 2.0}


@pytest.mark.parametrize("engine", ["first-row", "partial-update"])
def test_an_ignored_delete_of_a_missing_key_does_not_tie_the_key_to_a_partition(
    warehouse: Warehouse, engine: str
) -> None:
    options = {"merge-engine": engine, "ignore-delete": "true"}
    table = made(warehouse, primary_keys=["id"], partition_keys=["dt"], options=options)
    with table.writer() as writer:
        writer.write([{"id": 1, "dt": "a", "v": 1}])
        writer.delete([{"id": 2, "dt": "a"}])
    table.write([{"id": 2, "dt": "b", "v": 2}])
    compact_table(table.files, now_ms=0, full=True)
    rows = table.to_arrow().to_pylist()
    assert sorted((row["id"], row["dt"]) for row in rows) == [(1, "a"), (2, "b")]


def test_overwriting_replaces_the_partitions_of_the_rows(warehouse: Warehouse) -> None:
    table = made(warehouse, primary_keys=["id", "dt"], partition_keys=["dt"])
    table.write([{"id": 1, "dt": "a", "v": 1}, {"id": 2, "dt": "b", "v": 2}])
    with table.writer(overwrite=True) as writer:
        writer.write([{"id": 9, "dt": "a", "v": 9}])
    assert values(table) == {9: 9.0, 2: 2.0}
    table.write([{"id": 1, "dt": "a", "v": 3}])
    assert values(table) == {1: 3.0, 9: 9.0, 2: 2.0}
    assert verify(table.files) == []


@pytest.mark.parametrize("how", [{"options": {"bucket": "-2"}}, {}])
def test_overwriting_what_has_no_bucket_yet_is_refused(
    warehouse: Warehouse, how: dict[str, object]
) -> None:
    keys = ["id", "dt"] if how else ["id"]
    table = made(warehouse, primary_keys=keys, partition_keys=["dt"], **how)
    with pytest.raises(UnsupportedError, match="truncate it"):
        table.writer(overwrite=True)


def test_an_error_takes_everything_back(warehouse: Warehouse) -> None:
    table = made(warehouse, primary_keys=["id"], options={"bucket": "1"})
    with pytest.raises(ConfigError, match="no column x"), table.writer() as writer:
        writer.write([{"id": 1}], partial=True)
        assert data_files(table)
        writer.write([{"x": 1}])
    assert data_files(table) == []
    assert table.snapshot() is None
    with pytest.raises(ValueError, match="another"):
        writer.write([{"id": 1}], partial=True)


def test_a_commit_that_is_tried_again_lands_once(warehouse: Warehouse) -> None:
    table = made(warehouse, options={"bucket": "-1"})
    snapshots = []
    for _ in range(2):
        with table.writer(user="job", identifier=7) as writer:
            writer.write([{"id": 1}], partial=True)
        snapshots.append(writer.snapshot)
    assert snapshots[0] == snapshots[1]
    assert table.to_arrow().num_rows == 1
    assert len(data_files(table)) == 1
    with pytest.raises(ConfigError, match="belong together"):
        table.writer(user="job")


def test_two_writers_that_meet_the_same_new_keys_do_not_both_land(warehouse: Warehouse) -> None:
    table = made(warehouse, primary_keys=["id"])
    first, second = table.writer(), table.writer()
    first.write([{"id": 1, "v": 1}], partial=True)
    second.write([{"id": 1, "v": 2}], partial=True)
    first.commit()
    with pytest.raises(CommitConflictError):
        second.commit()
    assert values(table) == {1: 1.0}
    assert len(data_files(table)) == 1


def test_rows_without_a_value_that_is_needed_are_refused(warehouse: Warehouse) -> None:
    with pytest.raises(ConfigError, match="id is NOT NULL and 2 rows"):
        made(warehouse).write([{"v": 1}, {"v": 2}])


def test_nothing_to_write_makes_no_snapshot(warehouse: Warehouse) -> None:
    table = made(warehouse)
    assert table.write([]) is None
    assert table.snapshot() is None


def test_a_signal_while_a_commit_lands_takes_nothing_of_it_back(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(warehouse, primary_keys=["id"])

    def interrupted(*given: Any, **how: Any) -> CommitResult:
        commit(*given, **how)
        raise KeyboardInterrupt

    monkeypatch.setattr(writer_module, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt), table.writer() as writer:
        writer.write([{"id": 1, "v": 1}], partial=True)
        writer.commit()
    assert values(table) == {1: 1.0}
    assert verify(table.files) == []


def test_what_was_written_for_an_earlier_commit_goes_with_index_and_changelog(
    warehouse: Warehouse,
) -> None:
    table = made(warehouse, primary_keys=["id"], options={"changelog-producer": "input"})
    with table.writer(user="job", identifier=7) as writer:
        writer.write([{"id": 1, "v": 1}], partial=True)
    root = Path(table.files.path)
    before = sorted(root.rglob("*"))
    with table.writer(user="job", identifier=7) as again:
        again.write([{"id": 2, "v": 2}], partial=True)
    assert values(table) == {1: 1.0}
    assert sorted(root.rglob("*")) == before
