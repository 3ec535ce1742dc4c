"""The mirror: how far the whole pipeline got, in one small document beside the tables.

A table commits only when a batch brings it rows, so its own record may lie behind the pipeline.
The mirror says that a table misses nothing up to there, as long as the table was not rolled back
since; it is a help for starting over, never the truth.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ingestd.errors import FormatError
from ingestd.ingest.settings.context import Coverage
from ingestd.ingest.tables.progress import TableProgress, furthest

_VERSION = 1


@dataclass(frozen=True, slots=True)
class SnapshotMark:
    """A snapshot of ours: its id, time and commit identifier."""

    snapshot_id: int
    time_millis: int
    commit_identifier: int


@dataclass(frozen=True, slots=True)
class Mirror:
    """Progress of a pipeline: newest snapshot of ours by table (None: not any yet), and offsets.

    `until` holds for each topic partition the first offset that no batch has finished. `records`
    repeats the progress record of each table's newest snapshot, as its properties, because that
    snapshot may expire while others write on.
    """

    job: str
    tables: Mapping[str, SnapshotMark | None]
    until: Coverage
    records: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableHistory:
    """What a table shows now.

    `newest` is the newest snapshot of our commit user that is still there; `latest_id` the id of
    the latest snapshot of anybody; `time_of_marked` the time of the snapshot that has the
    mirror's id now, None if there is none.
    """

    newest: SnapshotMark | None
    latest_id: int | None
    time_of_marked: int | None


def encode_mirror(mirror: Mirror) -> bytes:
    """The document as JSON."""
    tables = {
        name: None
        if mark is None
        else {
            "snapshot_id": mark.snapshot_id,
            "time_millis": mark.time_millis,
            "commit_identifier": mark.commit_identifier,
        }
        for name, mark in mirror.tables.items()
    }
    document = {
        "version": _VERSION,
        "job": mirror.job,
        "tables": tables,
        "until": mirror.until,
        "records": {name: dict(record) for name, record in mirror.records.items()},
    }
    return json.dumps(document, sort_keys=True, ensure_ascii=False).encode()


def decode_mirror(data: bytes, where: str) -> Mirror:
    """The mirror in the bytes of its file; FormatError naming the file if it is damaged."""
    try:
        document = json.loads(data)
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']}")
        return Mirror(
            str(document["job"]),
            {name: _mark(mark) for name, mark in document["tables"].items()},
            {
                source: {
                    topic: {int(p): int(offset) for p, offset in partitions.items()}
                    for topic, partitions in topics.items()
                }
                for source, topics in document["until"].items()
            },
            {
                name: {str(key): str(value) for key, value in record.items()}
                for name, record in document["records"].items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{where}: not a progress mirror ({error!r}); delete it") from error


def _mark(document: Mapping[str, Any] | None) -> SnapshotMark | None:
    if document is None:
        return None
    return SnapshotMark(
        int(document["snapshot_id"]),
        int(document["time_millis"]),
        int(document["commit_identifier"]),
    )


def holds(mirror: Mirror, table: str, history: TableHistory) -> bool:
    """Whether the mirror speaks for the table: all it said to be there still is there.

    A table that the mirror does not name was created after it, or is not the pipeline's.
    """
    if table not in mirror.tables:
        return False
    mark = mirror.tables[table]
    if mark is None:
        return True
    if history.latest_id is None or history.latest_id < mark.snapshot_id:
        return False
    if history.time_of_marked not in (None, mark.time_millis):
        return False
    newest = history.newest
    return newest is None or (
        newest.snapshot_id >= mark.snapshot_id
        and newest.commit_identifier >= mark.commit_identifier
    )


def begun_again(mirror: Mirror | None, records: Mapping[str, TableProgress | None]) -> list[str]:
    """Tables that had rows of the pipeline by the mirror and show no trace of it now.

    They were dropped, made anew, or restored from before the pipeline; `records` are those of the
    tables that are there.
    """
    return sorted(name for name in (mirror.records if mirror else ()) if records.get(name) is None)


def effective_coverage(
    own: Coverage, mirror: Mirror | None, table: str, history: TableHistory
) -> Coverage:
    """What a table covers: its own record, or the mirror's offsets where they are further.

    Only topic partitions that the table's own record names count: one that never fed the table
    has nothing to skip, and must not look like a gap.
    """
    if mirror is None or not holds(mirror, table, history):
        return own
    until = {
        source: {
            topic: {p: mirror.until.get(source, {}).get(topic, {}).get(p, o) for p, o in ps.items()}
            for topic, ps in topics.items()
        }
        for source, topics in own.items()
    }
    return furthest(own, until)


def finished_offsets(
    until: Coverage, records: Iterable[TableProgress | None]
) -> dict[str, dict[str, dict[int, int]]]:
    """Offsets below which no table lacks anything, whatever tables there are to be.

    A table that a batch is the first to feed has no record of it before its own commit, so the
    records of others do not say that a batch is finished: the mirror's `until` does, or that the
    next batch was begun. `records` are those of all tables.
    """
    finished = furthest(until, {})
    for record in records:
        begun = {
            source: {
                topic: {partition: span.start for partition, span in one.spans.items()}
                for topic, one in topics.items()
            }
            for source, topics in (record.sources if record else {}).items()
        }
        finished = furthest(finished, begun)
    return finished


def at_most(one: Coverage, bound: Coverage) -> dict[str, dict[str, dict[int, int]]]:
    """The offsets of a coverage, none beyond that of a bound that has the same topic partition."""
    return {
        source: {
            topic: {
                p: min(o, bound.get(source, {}).get(topic, {}).get(p, o)) for p, o in ps.items()
            }
            for topic, ps in topics.items()
        }
        for source, topics in one.items()
    }
