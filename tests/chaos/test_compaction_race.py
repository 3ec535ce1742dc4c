"""Four real processes write to, compact, expire and read one table at once.

A tenth of it by default; all thousand commits with INGESTD_LONG=1.
"""

import multiprocessing
import os
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot_id,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.maintenance import run_maintenance
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, open_native, put
from tests.support.oracle import Oracle

pytestmark = [pytest.mark.chaos, pytest.mark.compat]

LONG = bool(os.environ.get("INGESTD_LONG"))
PROCESSES = 4
COMMITS = 250 if LONG else 15
OWN_KEYS, SHARED_KEYS = 5, 5
SHARED = 1000
"""The first key of those that all processes write."""
RETAINED = 12
LATER_MS = NOW_MS + 86_400_000
"""By then every snapshot is old, so that their number alone keeps them."""
COMMON = {
    "bucket": "2", "num-sorted-run.compaction-trigger": "3", "commit.max-retries": "1000",
    "manifest.merge-min-count": "5", "snapshot.num-retained.min": str(RETAINED),
    "snapshot.num-retained.max": str(RETAINED),
}  # fmt: skip
TABLES: dict[str, dict[str, str]] = {
    "sums": {
        "merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
        "changelog-producer": "lookup",
    },
    "deletion vectors": {
        "deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true",
    },
    "append": {"bucket": "-1"},
}  # fmt: skip
COLUMNS = [("k", "INT"), ("n", "BIGINT")]


def _rows(table: FileStoreTable, process: int, done: int) -> list[dict[str, Any]]:
    """One more for each key, where keys are summed up; else what there is to be then."""
    own = [process * OWN_KEYS + key for key in range(OWN_KEYS)]
    shared = [SHARED + key for key in range(SHARED_KEYS)]
    return [{"k": key, "n": 1 if _sums(table) else done} for key in own + shared]


def _sums(table: FileStoreTable) -> bool:
    return "merge-engine" in table.schema.options


def _own_rows(table: FileStoreTable, process: int, done: int) -> list[tuple[int, int]]:
    """The rows of a process's own keys after this many of its commits."""
    keys = range(process * OWN_KEYS, (process + 1) * OWN_KEYS)
    numbers = range(done if table.schema.primary_keys else 1, done + 1)
    return [(key, number) for key in keys for number in numbers]


def _found(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["k"], row["n"]) for row in rows)


class _Worker:
    """One process: commits, and between them whatever chance says."""

    def __init__(self, warehouse: str, process: int) -> None:
        self.table = open_native(warehouse)
        self.process = process
        self.chance = Random(process)
        self.held: dict[int, int] = {}
        self.done: Counter[str] = Counter()

    def run(self) -> None:
        for number in range(1, COMMITS + 1):
            rows = _rows(self.table, self.process, number)
            result = put(self.table, rows, identifier=number, user=f"user{self.process}")
            assert result.status == "committed"
            assert result.snapshot is not None
            self.held[result.snapshot.id] = number
            if self.chance.random() < 0.5:
                full = self.chance.random() < 0.3
                outcome = compact_table(self.table, now_ms=NOW_MS, full=full)
                self.done[outcome.status] += 1
            if self.chance.random() < 0.3:
                run_maintenance(self.table, LATER_MS)
            self._read_held()

    def _read_held(self) -> None:
        """Some snapshot that was seen must still hold what it held."""
        snapshot_id = self.chance.choice(list(self.held)[-3:])
        try:
            rows = _found(read_table(self.table, snapshot_id=snapshot_id).to_pylist())
        except (ConfigError, FormatError):
            newest = latest_snapshot_id(self.table.io, self.table.paths) or 0
            if newest - snapshot_id < RETAINED:
                raise
            self.done["expired"] += 1
            return
        own = [row for row in rows if row[0] // OWN_KEYS == self.process]
        assert own == _own_rows(self.table, self.process, self.held[snapshot_id]), snapshot_id
        self.done["read"] += 1


def _work(warehouse: str, process: int) -> None:
    worker = _Worker(warehouse, process)
    worker.run()
    sys.exit(0 if worker.done["read"] else 7)


def _shared_rows_are_right(table: FileStoreTable, rows: list[tuple[int, int]]) -> bool:
    keys = [SHARED + key for key in range(SHARED_KEYS)]
    if _sums(table):
        return rows == [(key, COMMITS * PROCESSES) for key in keys]
    if table.schema.primary_keys:
        # Whose row is the last one no one knows.
        return [key for key, _ in rows] == keys and {n for _, n in rows} <= {*range(1, COMMITS + 1)}
    each = [n for n in range(1, COMMITS + 1) for _ in range(PROCESSES)]
    return rows == [(key, n) for key in keys for n in each]


def _check_rows(table: FileStoreTable, rows: list[tuple[int, int]]) -> None:
    own = [row for row in rows if row[0] < SHARED]
    wanted = [row for n in range(PROCESSES) for row in _own_rows(table, n, COMMITS)]
    assert own == wanted
    assert _shared_rows_are_right(table, rows[len(own) :])


@pytest.mark.timeout(3600 if LONG else 300)
@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_lost_and_nothing_there_twice(name: str, tmp_path: Path, oracle: Oracle) -> None:
    keys = [] if name == "append" else ["k"]
    table = native_table(tmp_path, COLUMNS, keys=keys, options={**COMMON, **TABLES[name]})
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_work, args=(str(tmp_path), n)) for n in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    _check_rows(table, _found(read_table(table).to_pylist()))
    # Writers that know nothing of each other give the same numbers to rows of shared keys.
    # Of two that publish at the same time, the slower one may write its hint last.
    assert {one.code for one in verify(table)} <= {"sequence-overlap", "hint"}
    assert compact_table(table, now_ms=NOW_MS, full=True).status in ("compacted", "nothing")
    run_maintenance(table, LATER_MS)
    ids = snapshot_ids(table.io, table.paths)
    assert len(ids) == RETAINED
    kinds = {read_snapshot(table.io, table.paths, id_).commit_kind for id_ in ids}
    assert CommitKind.COMPACT in kinds
    rows = _found(read_table(table).to_pylist())
    _check_rows(table, rows)
    assert _found(oracle.read(tmp_path, "db", "t")) == rows
    assert verify(table) == []
    found = oracle.fsck(tmp_path, "db", "t", "--all", "--orphans")
    assert [one for one in found if not one["code"].startswith("sequence")] == []
