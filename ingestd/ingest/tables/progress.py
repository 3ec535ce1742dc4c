"""The progress record of a snapshot, and its encoding as snapshot properties.

Every snapshot of ingestd contains the positions of the *whole* pipeline, including idle logs and
logs of other tables, so a missing log always means that it was created later. The record of a
pipeline consists of two properties: one is the same for all tables of a batch, the other is
specific to the table.
"""

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, repeat
from typing import Any, TypeVar

from ingestd.errors import FormatError, UnsupportedError
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.tables.log_positions import (
    UNKNOWN,
    LogOffsets,
    Position,
    TopicName,
    Vector,
)
from ingestd.ingest.values.source_points import NO_POINT, UNKNOWN_TIME, SourcePoint
from ingestd.paimon.spec.paths import MAIN_BRANCH

RECORD_VERSION = 2
VERSION = "ingestd.v"
DAMAGED = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    StopIteration,
    struct.error,
    zlib.error,
)
"""The errors that decoding an invalid record can raise."""
_ZIPPED = "z:"
_FINGERPRINTS = "f:"
_ZIP_ABOVE = 8 << 10

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PipelineProgress:
    """The progress of a pipeline, as stored in a snapshot or in the claims file.

    `end` has, for each log, the first offset that is not covered. `start` has the offset below
    which every batch had been committed to every table before the snapshot; it omits logs for which
    this equals `end`. `origin` has the offset from which the pipeline reads a log, unless that is
    0. `topics` maps topic keys to names. `tables` maps each table that has had a record to a
    number, which increases when the table is dropped and created again; `dropped` has the number of
    each table whose drop has been reported. `sources` are the sources whose start positions are
    set. `accepted` are the topic keys of topics that were deleted or created again, if the end was
    accepted. `routing` is a checksum of the routing configuration.
    """

    end: Vector = field(default_factory=dict)
    start: LogOffsets = field(default_factory=dict)
    origin: LogOffsets = field(default_factory=dict)
    topics: Mapping[str, TopicName] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()
    routing: str = ""

    def topic_name(self, key: str) -> str:
        """Return the name of the topic with the topic key `key`; without a name, return `key`."""
        return self.topics[key].topic if key in self.topics else key

    def has_record(self, table: str) -> bool:
        """Return whether a table has had a record since its drop was last reported."""
        return self.tables.get(table, 0) > self.dropped.get(table, 0)

    @property
    def beginning(self) -> Vector:
        """The positions at which the pipeline began to read, by log."""
        return {
            key: {p: Position(self.origin.get(key, {}).get(p, 0)) for p in positions}
            for key, positions in self.end.items()
        }

    @property
    def finished(self) -> Vector:
        """The positions below which every batch was committed to every table, by log."""
        return {
            key: {
                partition: Position(started) if started < position.offset else position
                for partition, position in positions.items()
                for started in (self.start.get(key, {}).get(partition, position.offset),)
            }
            for key, positions in self.end.items()
        }


@dataclass(frozen=True, slots=True)
class TableProgress:
    """The progress record in one snapshot of one table.

    `topic_keys` are the keys of all topics from which the table has had rows, and `source_tables`
    the source tables of these rows. `rows` counts the rows of the batch by row kind. `truncated` is
    the point of the last truncate, if rows that are read later may be older than it. `reached` is
    the latest point of the rows of the table. `batch` names the batch, for information only.
    `record_id` identifies the record, also in later snapshots that repeat it. `branch` is the
    branch for which it was written: a fast-forward, or the creation of a branch, copies it.
    """

    pipeline: PipelineProgress
    topic_keys: frozenset[str] = frozenset()
    source_tables: frozenset[QualifiedSourceTable] = frozenset()
    rows: Mapping[str, int] = field(default_factory=dict)
    truncated: SourcePoint | None = None
    reached: SourcePoint = NO_POINT
    batch: str = ""
    record_id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    branch: str = MAIN_BRANCH


def property_names(pipeline: str) -> tuple[str, str]:
    """Return the names of a pipeline's two snapshot properties.

    The first is the same in all tables of a batch, the second is specific to the table.
    """
    return f"ingestd.progress.{pipeline}", f"ingestd.table.{pipeline}"


def pipelines_in(properties: Mapping[str, str]) -> list[str]:
    """Return the names of the pipelines that have a record in the properties of a snapshot."""
    prefix = property_names("")[0]
    return sorted(name.removeprefix(prefix) for name in properties if name.startswith(prefix))


def encode_properties(name: str, progress: TableProgress, shared: str) -> dict[str, str]:
    """Return the record of pipeline `name` as snapshot properties.

    `shared` is the result of `encode_pipeline` for `progress.pipeline`.
    """
    document: dict[str, Any] = {
        "id": progress.record_id,
        "topic_keys": sorted(progress.topic_keys),
        "batch": progress.batch,
    }
    if progress.source_tables:
        document["source_tables"] = sorted(progress.source_tables, key=str)
    if progress.rows:
        document["rows"] = dict(progress.rows)
    if progress.branch != MAIN_BRANCH:
        document["branch"] = progress.branch
    for key, point in (("truncated", progress.truncated), ("position", progress.reached)):
        if point is not None and point.position >= 0:
            document |= {key: point.position, f"{key}_time": point.time}
    of_all, of_table = property_names(name)
    return {VERSION: str(RECORD_VERSION), of_all: shared, of_table: _compact(document)}


def decode_properties(name: str, properties: Mapping[str, str], where: str) -> TableProgress | None:
    """Return the record of pipeline `name` in the properties of a snapshot, or None if it has none.

    `where` identifies the snapshot in error messages. Raises FormatError if the record is damaged,
    and UnsupportedError if another version of ingestd wrote it.
    """
    of_all, of_table = property_names(name)
    version = properties.get(VERSION, str(RECORD_VERSION))
    if version != str(RECORD_VERSION):
        raise UnsupportedError(
            f"{where}: its progress record has version {version}, this program reads "
            f"{RECORD_VERSION}; use the version of ingestd that wrote it, or, for a table of "
            "version 1, set a record with `ingestd begin`"
        )
    if of_all not in properties:
        return None
    try:
        document = json.loads(properties[of_table])
        return TableProgress(
            pipeline=decode_pipeline(properties[of_all]),
            topic_keys=frozenset(map(str, document["topic_keys"])),
            source_tables=frozenset(
                QualifiedSourceTable(*source_table)
                for source_table in document.get("source_tables", ())
            ),
            rows={str(kind): int(count) for kind, count in document.get("rows", {}).items()},
            truncated=_point(document, "truncated"),
            reached=_point(document, "position") or NO_POINT,
            batch=str(document.get("batch", "")),
            record_id=str(document["id"]),
            branch=str(document.get("branch", MAIN_BRANCH)),
        )
    except DAMAGED as error:
        raise FormatError(f"{where}: its progress record is damaged: {error!r}") from error


def encode_pipeline(progress: PipelineProgress) -> str:
    """Return the progress of a pipeline as text, compressed if it has more than 8192 characters.

    If any fingerprint is known, the text starts with the fingerprints, ordered by topic key and
    partition; 0 is an unknown fingerprint.
    """
    keys = sorted({*progress.topics, *progress.end, *progress.origin})
    document = {
        "topics": {key: _encode_topic(key, progress) for key in keys},
        "tables": dict(progress.tables),
        "dropped": dict(progress.dropped),
        "sources": sorted(progress.sources),
        "accepted": sorted(progress.accepted),
        "routing": progress.routing,
    }
    text = _compact(document)
    if len(text) > _ZIP_ABOVE:
        text = _ZIPPED + base64.b85encode(zlib.compress(text.encode())).decode()
    prints = [
        max(position.fingerprint, 0)
        for key in keys
        for _, position in sorted(progress.end.get(key, {}).items())
    ]
    if not any(prints):
        return text
    # Checksums do not compress, and would reduce the compression of the rest.
    packed = base64.b85encode(struct.pack(f">{len(prints)}I", *prints)).decode()
    return f"{_FINGERPRINTS}{packed}:{text}"


@lru_cache(maxsize=64)
def decode_pipeline(text: str) -> PipelineProgress:
    """Parse the text of a pipeline's progress in a snapshot property.

    Raises one of the errors in DAMAGED if the text is invalid. Results are cached by text: tables
    with the same text, as after commits in the same batch, share the returned object.
    """
    prints: Iterator[int] = repeat(0)
    if text.startswith(_FINGERPRINTS):
        packed, _, text = text.removeprefix(_FINGERPRINTS).partition(":")
        prints = (
            fingerprint for (fingerprint,) in struct.iter_unpack(">I", base64.b85decode(packed))
        )
    if text.startswith(_ZIPPED):
        text = zlib.decompress(base64.b85decode(text[len(_ZIPPED) :])).decode()
    document = json.loads(text)
    topics: Mapping[str, Mapping[str, Any]] = document["topics"]
    return PipelineProgress(
        end=_not_empty({key: _positions(topics[key], prints) for key in sorted(topics)}),
        start=_not_empty({key: _sparse(topic.get("b")) for key, topic in topics.items()}),
        origin=_not_empty({key: _sparse(topic.get("o")) for key, topic in topics.items()}),
        topics={
            key: TopicName(str(topic["n"]), str(topic["s"]), str(topic.get("c", "")))
            for key, topic in topics.items()
            if "n" in topic
        },
        tables={str(name): int(number) for name, number in document["tables"].items()},
        dropped={str(name): int(number) for name, number in document["dropped"].items()},
        sources=frozenset(map(str, document["sources"])),
        accepted=frozenset(map(str, document["accepted"])),
        routing=str(document["routing"]),
    )


def _encode_topic(key: str, progress: PipelineProgress) -> dict[str, Any]:
    """Return one topic as JSON: offsets by partition (None if missing), epochs as runs."""
    document: dict[str, Any] = {}
    if key in progress.topics:
        name = progress.topics[key]
        document |= {"n": name.topic, "s": name.source}
        document |= {"c": name.cluster} if name.cluster else {}
    positions = progress.end.get(key, {})
    ordered = [positions.get(partition) for partition in range(max(positions, default=UNKNOWN) + 1)]
    if ordered:
        document["e"] = [None if position is None else position.offset for position in ordered]
        epochs = (UNKNOWN if position is None else position.epoch for position in ordered)
        document["k"] = [[epoch, len(list(run))] for epoch, run in groupby(epochs)]
    for short, offsets in (("b", progress.start), ("o", progress.origin)):
        if offsets.get(key):
            document[short] = {str(partition): offset for partition, offset in offsets[key].items()}
    return document


def _point(document: Mapping[str, Any], name: str) -> SourcePoint | None:
    """Return a point that is stored as `name` and `name`_time, or None if it is not stored."""
    if name not in document:
        return None
    return SourcePoint(int(document[name]), int(document.get(f"{name}_time", UNKNOWN_TIME)))


def _positions(document: Mapping[str, Any], prints: Iterator[int]) -> dict[int, Position]:
    offsets: Sequence[int | None] = document.get("e", ())
    epochs = [int(epoch) for epoch, count in document.get("k", ()) for _ in range(count)]
    return {
        partition: Position(int(offset), epoch, next(prints) or UNKNOWN)
        for partition, (offset, epoch) in enumerate(zip(offsets, epochs, strict=True))
        if offset is not None
    }


def _sparse(document: Mapping[str, Any] | None) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in (document or {}).items()}


def _not_empty(by_key: Mapping[str, Mapping[int, _T]]) -> dict[str, Mapping[int, _T]]:
    return {key: values for key, values in by_key.items() if values}


def _compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
