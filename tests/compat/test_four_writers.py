"""Ingest, our compaction, a Java writer and a Java compactor at work on one table at once.

Each of the four is one process for the whole test. Java's two rename exclusively, as HDFS does: on
a plain disk they could replace the snapshot of another process. With INGESTD_LONG the two that
write bring a thousand commits together, and what came of it is printed (`pytest -s`).
"""

import json
import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, open_native, put
from tests.support.oracle import Oracle, OracleError

pytestmark = pytest.mark.compat

LONG = "INGESTD_LONG" in os.environ
COMMITS = 500 if LONG else 8
PAUSE = 0.5 if LONG else 0.02
"""Seconds of rest between the compactions of one process."""
OWN, JAVA, SHARED = range(5), range(5, 10), range(10, 15)
COLUMNS = [("k", "INT"), ("n", "BIGINT")]
COMMON = {
    "bucket": "2", "num-sorted-run.compaction-trigger": "3", "commit.max-retries": "1000",
    "manifest.merge-min-count": "5", "snapshot.num-retained.min": "100000",
}  # fmt: skip
TABLES: dict[str, dict[str, str]] = {
    "sums": {
        "merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
        "changelog-producer": "lookup",
    },
    "deletion vectors": {"deletion-vectors.enabled": "true"},
}  # fmt: skip
WAIT = 3000 if LONG else 240


def _rows(options: dict[str, str], own: range, number: int) -> list[dict[str, Any]]:
    """One more for each key, where keys are summed up; else what there is to be then."""
    sums = "merge-engine" in options
    return [{"k": key, "n": 1 if sums else number} for key in (*own, *SHARED)]


def _ingest(warehouse: str, options: dict[str, str]) -> None:
    table = open_native(warehouse)
    for number in range(1, COMMITS + 1):
        rows = _rows(options, OWN, number)
        assert put(table, rows, identifier=number, user="ingest").status == "committed"


def _compact(warehouse: str, done: Event) -> None:
    table, number = open_native(warehouse), 0
    while not done.wait(PAUSE):
        number += 1
        compact_table(table, now_ms=NOW_MS, full=number % 3 == 0, commit_user="compactor")


def _java_writes(oracle: Oracle, folder: Path, options: dict[str, str]) -> None:
    for number in range(1, COMMITS + 1):
        rows = _rows(options, JAVA, number)
        flags = ("--user", "java", "--identifier", number)
        oracle.append(folder, "db", "t", rows, folder, *flags)


def _java_compacts(oracle: Oracle, folder: Path, done: Event, found: Counter[str]) -> None:
    """A writer whose files were replaced meanwhile gives up and tries again; at last alone."""
    while not (done.wait(PAUSE) and found["compacted"]):
        try:
            oracle.compact(folder, "db", "t")
            found["compacted"] += 1
        except OracleError as error:
            if "conflict" not in str(error).lower() and "FileNotFound" not in str(error):
                raise
            found["gave up"] += 1


@pytest.fixture(scope="module")
def javas() -> Iterator[tuple[Oracle, Oracle]]:
    """The JVMs of Java's writer and compactor."""
    with Oracle(exclusive=True) as writer, Oracle(exclusive=True) as compactor:
        yield writer, compactor


def _all_at_work(
    folder: Path, options: dict[str, str], oracle: Oracle, other: Oracle
) -> Counter[str]:
    """Start all four and wait for them; how often Java's compactor compacted, and gave up."""
    spawn = multiprocessing.get_context("spawn")
    done, found, failures = spawn.Event(), Counter[str](), list[Exception]()
    ingest = spawn.Process(target=_ingest, args=(str(folder), options))
    compaction = spawn.Process(target=_compact, args=(str(folder), done))

    def java_compactor() -> None:
        try:
            _java_compacts(other, folder, done, found)
        except OracleError as error:
            failures.append(error)

    beside = threading.Thread(target=java_compactor)
    for one in (ingest, compaction, beside):
        one.start()
    try:
        _java_writes(oracle, folder, options)
        ingest.join(WAIT)
    finally:
        done.set()
        compaction.join(WAIT)
        beside.join(WAIT)
    assert failures == []
    assert (ingest.exitcode, compaction.exitcode) == (0, 0)
    assert found["compacted"]
    return found


def _check(table: FileStoreTable, options: dict[str, str], rows: list[dict[str, Any]]) -> None:
    cells = {row["k"]: row["n"] for row in rows}
    assert len(rows) == len(cells) == 15
    assert {cells[key] for key in (*OWN, *JAVA)} == {COMMITS}
    if "merge-engine" in options:
        assert {cells[key] for key in SHARED} == {2 * COMMITS}
    else:
        assert {cells[key] for key in SHARED} <= set(range(1, COMMITS + 1))


@pytest.mark.timeout(2 * WAIT + 120)
@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_lost_and_nothing_there_twice(
    name: str, tmp_path: Path, oracle: Oracle, javas: tuple[Oracle, Oracle]
) -> None:
    options = TABLES[name]
    table = native_table(tmp_path, COLUMNS, keys=["k"], options={**COMMON, **options})
    started = time.monotonic()
    found = _all_at_work(tmp_path, options, *javas)
    seconds = time.monotonic() - started
    assert {one.code for one in verify(table)} <= {"sequence-overlap"}
    compact_table(table, now_ms=NOW_MS, full=True, commit_user="compactor")
    snapshots = [
        read_snapshot(table.io, table.paths, snapshot_id)
        for snapshot_id in snapshot_ids(table.io, table.paths)
    ]
    appended = [snapshot for snapshot in snapshots if snapshot.commit_kind == CommitKind.APPEND]
    assert Counter(one.commit_user for one in appended) == {"ingest": COMMITS, "java": COMMITS}
    compacted = {
        snapshot.commit_user for snapshot in snapshots if snapshot.commit_kind == CommitKind.COMPACT
    }
    # In a short run one of them may have left nothing for the other to do.
    assert compacted == {"compactor", "oracle"} or (not LONG and len(compacted) == 1)
    rows = sorted(oracle.read(tmp_path, "db", "t"), key=lambda row: row["k"])
    assert sorted(read_table(table).to_pylist(), key=lambda row: row["k"]) == rows
    _check(table, options, rows)
    assert verify(table) == []
    problems = oracle.fsck(tmp_path, "db", "t", "--all", *(["--shallow"] if LONG else []))
    problems += oracle.fsck(tmp_path, "db", "t")
    assert [problem for problem in problems if not problem["code"].startswith("sequence")] == []
    kinds = Counter(f"{snapshot.commit_kind} {snapshot.commit_user}" for snapshot in snapshots)
    print(json.dumps({"table": name, "seconds": round(seconds), **found, **kinds}))
