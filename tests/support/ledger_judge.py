"""Whether the tables of a ledger are right, by Java's reading, and the books in their snapshots."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ingestd.ingest.tables.progress import (
    PipelineProgress,
    TableProgress,
    decode_properties,
    pipelines_in,
)
from tests.support.ledger import PARTITIONS, TABLES, Ledger
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE

BATCH = 2**63 - 1
"""The identifier of what is committed once and never again, as compactions are."""


def judge(ledger: Ledger, warehouse: Path, oracle: Oracle) -> list[str]:
    """All that is wrong, as sentences."""
    rows = oracle.read(warehouse, DATABASE, "account")
    found = {row["account"]: row["number"] for row in rows}
    wanted = ledger.final_accounts()
    problems = [
        f"account {key}: {found.get(key)}, wanted {wanted.get(key)}"
        for key in sorted(found.keys() | wanted.keys())
        if found.get(key) != wanted.get(key)
    ]
    if len(rows) != len(found):
        problems.append(f"{len(rows)} rows for {len(found)} accounts")
    entries = Counter(row["number"] for row in oracle.read(warehouse, DATABASE, "entry"))
    expected = Counter(ledger.entries())
    if entries != expected:
        lost, doubled = expected - entries, entries - expected
        problems.append(f"entries lost: {sorted(lost)[:5]}, doubled: {sorted(doubled)[:5]}")
    for table in TABLES:
        problems += [f"{table}: {one}" for one in oracle.fsck(warehouse, DATABASE, table)]
        problems += books(warehouse, table)
    return problems


def books(warehouse: Path, table: str) -> list[str]:
    """Doubled commit identifiers, and ranges of positions that go back."""
    problems: list[str] = []
    identifiers: Counter[tuple[str, int]] = Counter()
    reached: dict[tuple[str, int], int] = {}
    records: set[str] = set()
    for snapshot in _snapshots(warehouse, table):
        if snapshot["commitIdentifier"] != BATCH:
            identifiers[snapshot["commitUser"], snapshot["commitIdentifier"]] += 1
        where = f"{table} snapshot {snapshot['id']}"
        for progress in _records(snapshot, where):
            if progress.record_id not in records:  # a compaction repeats the record
                records.add(progress.record_id)
                problems += _steps_back(progress.pipeline, reached, where)
    problems += [f"{table}: identifier {one} twice" for one, n in identifiers.items() if n > 1]
    if not reached or len(reached) % PARTITIONS:
        problems.append(f"{table}: offsets of {len(reached)} partitions recorded")
    return problems


def _records(snapshot: dict[str, Any], where: str) -> list[TableProgress]:
    properties = snapshot.get("properties", {})
    found = (decode_properties(name, properties, where) for name in pipelines_in(properties))
    return [one for one in found if one is not None]


def _steps_back(
    progress: PipelineProgress, reached: dict[tuple[str, int], int], where: str
) -> list[str]:
    """Logs whose position goes back; what the table reached is moved on."""
    problems: list[str] = []
    for key, partitions in progress.end.items():
        topic = progress.topic_name(key)
        for partition, position in partitions.items():
            before = reached.get((topic, partition), 0)
            if position.offset < before:
                problems.append(f"{where}: {topic}/{partition} goes back from {before}")
            reached[topic, partition] = position.offset
    return problems


def _snapshots(warehouse: Path, table: str) -> list[dict[str, Any]]:
    folder = warehouse / f"{DATABASE}.db" / table / "snapshot"
    files = sorted(folder.glob("snapshot-*"), key=lambda path: int(path.name[9:]))
    return [json.loads(path.read_text()) for path in files]
