"""A deletion removes the whole row of its key, in whatever batches and compactions it arrives.

Changes in the order of their source are committed one by one without compactions, and in random
batches with compactions between them: both tables must have the same rows.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put

SEEDS = 60 if "INGESTD_LONG" in os.environ else 2
COLUMNS = [("k", "INT"), ("s", "INT"), ("a", "INT"), ("b", "INT")]
PARTIAL = {
    "merge-engine": "partial-update",
    "partial-update.remove-record-on-delete": "true",
}
SUM = {
    "merge-engine": "aggregation",
    "aggregation.remove-record-on-delete": "true",
    "fields.a.aggregate-function": "sum",
}
TABLES: Mapping[str, dict[str, str]] = {
    "partial-update": PARTIAL,
    "by sequence field": {**PARTIAL, "sequence.field": "s"},
    "by sequence group": {
        "merge-engine": "partial-update",
        "fields.s.sequence-group": "a",
        "partial-update.remove-record-on-sequence-group": "s",
    },
    "aggregation": SUM,
    "lookup": {**SUM, "changelog-producer": "lookup"},
    "full-compaction": {**PARTIAL, "changelog-producer": "full-compaction"},
    "input": {**PARTIAL, "changelog-producer": "input"},
    "deletion vectors": {**SUM, "deletion-vectors.enabled": "true"},
}
LEVELS = {
    "num-sorted-run.compaction-trigger": "2",
    "compaction.max-size-amplification-percent": "5000",
}
FILLER = [{"k": key, "s": 0, "a": key, "b": key} for key in range(100, 1100)]


def random_changes(random: Random) -> list[dict[str, Any]]:
    """Changes of few keys: rows with and without values, and deletions of rows that exist."""
    alive: set[int] = set()
    changes = []
    for number in range(1, random.randint(8, 40)):
        key = random.randrange(4)
        if key in alive and random.random() < 0.4:
            alive.remove(key)
            changes.append({"k": key, "s": number, "_kind": 3})
            continue
        alive.add(key)
        cells: dict[str, Any] = {name: random.choice([None, random.randint(1, 9)]) for name in "ab"}
        changes.append({"k": key, "s": number, **cells})
    return changes


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("options", TABLES.values(), ids=TABLES)
def test_batches_and_compactions_change_no_row(
    options: dict[str, str], seed: int, tmp_path: Path
) -> None:
    random = Random(seed)
    changes = random_changes(random)
    single = native_table(
        tmp_path / "single", COLUMNS, keys=["k"], options={"bucket": "1", **options}
    )
    for change in (*FILLER[:1], *changes):
        put(single, [change])
    compact_table(single, now_ms=NOW_MS, full=True)
    table = native_table(
        tmp_path / "batches", COLUMNS, keys=["k"], options={"bucket": "1", **LEVELS, **options}
    )
    put(table, [*FILLER, *changes[:3]])
    compact_table(table, now_ms=NOW_MS, full=True)
    start = 3
    while start < len(changes):
        end = start + random.randint(1, 6)
        put(table, changes[start:end])
        start = end
        if random.random() < 0.5:
            compact_table(table, now_ms=NOW_MS)
    if "deletion-vectors.enabled" in options or "changelog-producer" in options:
        compact_table(table, now_ms=NOW_MS)
    if "deletion-vectors.enabled" in options:
        compact_table(table, now_ms=NOW_MS, full=True)
    assert verify(table) == []
    assert small_keys(table) == small_keys(single)


def small_keys(table: FileStoreTable) -> list[dict[str, Any]]:
    return [row for row in read_table(table).to_pylist() if row["k"] < 100]


def test_only_deletions_that_rows_follow_need_a_file_of_their_own(tmp_path: Path) -> None:
    table = native_table(tmp_path, COLUMNS, keys=["k"], options={"bucket": "1", **PARTIAL})
    put(table, [{"k": 1, "a": 1}, {"k": 1, "_kind": 3}, {"k": 2, "a": 2}])
    assert len(list(tmp_path.rglob("data-*"))) == 1
    put(table, [{"k": 1, "_kind": 3}, {"k": 1, "b": 1}])
    assert len(list(tmp_path.rglob("data-*"))) == 3
