"""Processes that live a scene and die in it, and what must be true of it in the end.

Processes are forked from one that has loaded everything and has no threads, so a life costs no
more than its work.
"""

import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path

from ingestd.crash_points import CrashPoint
from ingestd.ingest.tables.progress import decode_properties
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.orphans import find_orphans, remove_orphans
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.crash_kinds import BATCHES, COLUMNS, KINDS, PER_BATCH, expected
from tests.support.crash_scene import DATABASE, Scene, live_and_confess, live_and_tell, live_until
from tests.support.oracle import Oracle

_FAR_AHEAD_MS = 1 << 50


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.crash_scene"])
    return context


def _run(target: Callable[..., None], *arguments: object) -> int | None:
    process = _context().Process(target=target, args=arguments)
    process.start()
    process.join()
    return process.exitcode


def steps_of(root: Path, kind: str) -> list[CrashPoint]:
    """The steps that an undisturbed life of a table passes, in order."""
    report = root / "steps"
    root.mkdir(parents=True, exist_ok=True)
    assert _run(live_and_tell, str(root), kind, str(report)) == 0
    return [CrashPoint(line) for line in report.read_text().splitlines()]


def dies(scene: Scene, point: CrashPoint, times: int = 1) -> bool:
    """Have a process live the scene until it reaches a step for the n-th time; whether it did."""
    scene.root.mkdir(parents=True, exist_ok=True)
    ended = _run(live_until, str(scene.root), scene.kind, str(point), times)
    assert ended in (0, -signal.SIGKILL), f"{scene.kind}, killed at {point}: exit code {ended}"
    return ended != 0


def finish(scene: Scene) -> None:
    """Have a process live the scene to its end."""
    assert _run(live_until, str(scene.root), scene.kind, None, 0) == 0, scene.kind


def lives(scene: Scene) -> str | None:
    """Have a process live the scene to its end, or to the error that is returned."""
    with _context().Manager() as manager:
        told = manager.list()
        assert _run(live_and_confess, str(scene.root), scene.kind, told) == 0
        return next(iter(told), None)


def wrong(scene: Scene) -> list[str]:
    """All that is wrong with a scene that has ended, as sentences; its orphans are removed."""
    table = scene.table()
    problems = _wrong_rows(scene, table)
    problems += [str(finding) for finding in verify(table)]
    problems += _wrong_books(table)
    dead_letters = scene.catalog.get_table(Identifier(DATABASE, "ingestd_dead_letters"))
    if (found := read_table(dead_letters).num_rows) != 1:
        problems.append(f"{found} dead letters")
    remove_orphans(table, find_orphans(table, _FAR_AHEAD_MS))
    problems += [f"without orphans: {finding}" for finding in verify(table)]
    problems += [f"without orphans: {wrong_row}" for wrong_row in _wrong_rows(scene, table)]
    return problems


def wrong_for_java(scene: Scene, oracle: Oracle) -> list[str]:
    """All that Java finds wrong with it."""
    where = (scene.warehouse, DATABASE, "t")
    rows = sorted(tuple(row[name] for name in COLUMNS) for row in oracle.read(*where))
    problems = [] if rows == expected(KINDS[scene.kind]) else [f"Java reads {rows}"]
    problems += [str(one) for one in oracle.fsck(*where)]
    if KINDS[scene.kind].tells_changes:
        told: Counter[tuple[object, ...]] = Counter()
        for change in oracle.changelog(*where):
            told[tuple(change[name] for name in COLUMNS)] += (
                1 if change["rowkind"] in ("+I", "+U") else -1
            )
        if sorted(told.elements()) != rows or min(told.values()) < 0:
            problems.append(f"the changelog does not end in the rows: {told}")
    return problems


def _wrong_rows(scene: Scene, table: FileStoreTable) -> list[str]:
    kind = KINDS[scene.kind]
    rows = [tuple(row.values()) for row in read_table(table, columns=tuple(COLUMNS)).to_pylist()]
    found, wanted = Counter(rows), Counter(expected(kind))
    return [f"lost: {row}" for row in wanted - found] + [
        f"too much: {row}" for row in found - wanted
    ]


def _wrong_books(table: FileStoreTable) -> list[str]:
    """Identifiers that were committed twice, offsets that overlap, are left out or are not all."""
    problems = []
    identifiers: Counter[tuple[str, int]] = Counter()
    reached: dict[int, int] = {}
    records: set[str] = set()
    for number in snapshot_ids(table.io, table.paths):
        snapshot = read_snapshot(table.io, table.paths, number)
        if snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER:
            identifiers[snapshot.commit_user, snapshot.commit_identifier] += 1
        progress = decode_properties("life", snapshot.properties, f"snapshot {number}")
        if progress is None or progress.record_id in records:
            continue  # a compaction repeats the record
        records.add(progress.record_id)
        for key, partitions in progress.pipeline.end.items():
            for partition, position in partitions.items():
                if position.offset < reached.get(partition, 0):
                    problems.append(f"snapshot {number}: {key}/{partition} goes back")
                reached[partition] = position.offset
    problems += [f"identifier {one} twice" for one, n in identifiers.items() if n > 1]
    if set(reached.values()) != {BATCHES * PER_BATCH}:
        problems.append(f"the table has reached {reached}")
    return problems
