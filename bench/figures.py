"""The figures of one run of one writer over one topic, with one definition for all writers.

`per_s` counts from the first record out of Kafka to the last commit of rows, or of a changelog that
is made later; a compaction after that shows readers nothing new. `per_s_total` is from the start of
the program to its end, with all that is compacted. `us_cpu` is CPU of the whole tree of processes
for a record, `us_cpu_running` the same without what had been used when the first record came.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.process import BenchError, MeteredProcess


@dataclass(frozen=True, slots=True)
class Moments:
    """Seconds since 1970: the first record out of Kafka, and the last commit."""

    first_record: float
    last_commit: float


@dataclass(frozen=True, slots=True)
class Figures:
    """One run of one writer."""

    events: int
    stream_s: float
    total_s: float
    start_s: float
    per_s: float
    per_s_total: float
    cpu_s: float
    start_cpu_s: float
    us_cpu: float
    us_cpu_running: float
    rss_mb: float
    pss_mb: float
    table_mb: float
    files: int
    snapshots: int
    first_snapshot_s: float

    def document(self) -> dict[str, Any]:
        """As JSON, with three decimals."""
        return {k: round(v, 3) if isinstance(v, float) else v for k, v in asdict(self).items()}


def figures(process: MeteredProcess, moments: Moments, events: int, warehouse: Path) -> Figures:
    """The figures of a process that has ended; `events` is what it took in this run."""
    snapshots = [
        snapshot_file
        for snapshot_file in snapshot_files(warehouse)
        if snapshot_file.stat().st_mtime > process.started
    ]
    news = [one.stat().st_mtime for one in snapshots if brings_news(snapshot(one))]
    stream = min([moments.last_commit, *news[-1:]]) - moments.first_record
    if stream <= 0 or events <= 0:
        raise BenchError(f"nothing was streamed: {events} events in {stream:.3f} s")
    total, cpu = process.ended - process.started, process.cpu_seconds
    start_cpu = process.meter.cpu_at(moments.first_record)
    files = [path for path in warehouse.rglob("*") if path.is_file()]
    return Figures(
        events=events,
        stream_s=stream,
        total_s=total,
        start_s=moments.first_record - process.started,
        per_s=events / stream,
        per_s_total=events / total,
        cpu_s=cpu,
        start_cpu_s=start_cpu,
        us_cpu=cpu / events * 1e6,
        us_cpu_running=(cpu - start_cpu) / events * 1e6,
        rss_mb=process.meter.peak_rss_bytes / 1e6,
        pss_mb=process.meter.peak_pss_bytes / 1e6,
        table_mb=sum(path.stat().st_size for path in files) / 1e6,
        files=len(files),
        snapshots=len(snapshots),
        first_snapshot_s=min(snapshot.stat().st_mtime for snapshot in snapshots) - process.started,
    )


def snapshot_files(warehouse: Path) -> list[Path]:
    """The snapshot files of all tables, in the order in which they were written."""
    found = warehouse.glob("*.db/orders*/snapshot/snapshot-*")
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def brings_news(document: Mapping[str, Any]) -> bool:
    """Whether a snapshot shows something new to readers of rows or changes: no mere compaction."""
    return document["commitKind"] != "COMPACT" or bool(document.get("changelogRecordCount"))


def snapshot(path: Path) -> dict[str, Any]:
    """The content of a snapshot file."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
