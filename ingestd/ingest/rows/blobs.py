"""The blobs that the two stages of a batch exchange: rows, reports and abort markers.

A row blob is an Arrow IPC stream with its origin in the schema metadata. A report contains the
findings of a decode task for the driver. An abort marker tells a write task that the batch will run
again after schema evolution, so that it writes nothing.
"""

import json
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa

from ingestd.ingest.schemas.discovery import CachedChunk, Discovery, TableTruncate
from ingestd.ingest.settings.context import Feed
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample, TopicPartition
from ingestd.kafka.isolated_fetch import Unreadable

KIND = "_VALUE_KIND"
OFFSET = "ingestd:offset"
POSITION = "ingestd:position"
BUCKET = "ingestd:bucket"
HASH = "ingestd:hash"
UNAVAILABLE_PREFIX = "ingestd:unavailable:"
"""Columns added to those of the table; their names are not valid for columns of a table."""

_METADATA_KEY = b"ingestd"
_REPORT_MARK = b"ingestd-report\0"
_VOID = b"ingestd-void\0"


@dataclass(frozen=True, slots=True)
class BlobOrigin:
    """The origin and target of a blob's rows; blobs of a table are sorted by it."""

    table: str
    source: str
    topic: str
    partition: int
    offset: int

    @property
    def order(self) -> tuple[str, int, str, int]:
        """Sort key: topic, partition, source, first offset."""
        return self.topic, self.partition, self.source, self.offset


@dataclass(frozen=True, slots=True)
class RowBlob:
    """Decoded rows of one table."""

    origin: BlobOrigin
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class UnsentRows:
    """Decoded rows of one table that are encoded only when they are written.

    They are written to a file directly from memory; encoding them as a blob first would copy them
    twice, into newly allocated memory.
    """

    origin: BlobOrigin
    rows: pa.Table

    def __len__(self) -> int:
        """Return the approximate size of the blob in bytes."""
        return self.rows.nbytes

    def write_to(self, stream: BinaryIO) -> None:
        """Write the blob to a stream; raises the stream's errors."""
        file: Any = stream
        self._write(pa.PythonFile(file, "w"))

    def encoded(self) -> pa.Buffer:
        """Return the encoded blob."""
        sink = pa.BufferOutputStream()
        self._write(sink)
        return sink.getvalue()

    def _write(self, sink: pa.NativeFile) -> None:
        origin = self.origin
        document = [origin.table, origin.source, origin.topic, origin.partition, origin.offset]
        schema = self.rows.schema.with_metadata({_METADATA_KEY: json.dumps(document).encode()})
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(self.rows.replace_schema_metadata(schema.metadata))


Encoded: TypeAlias = bytes | pa.Buffer
"""Rows are a buffer, all else is bytes; rows that passed through a shuffle are bytes too."""
Blob: TypeAlias = Encoded | UnsentRows
"""A blob, or rows that are not encoded yet."""


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a decode task, apart from rows.

    `feeds`, `topics` and `positions` are by table: the number of rows by source table, the
    (source, topic) pairs that fed it, and the largest source position of streamed rows;
    `rejected` are samples, while `counts` has the number of all rejected records; `kept` are cached
    chunks for a new table; `times` are the event times of changes; `last_records` has offset and
    checksum of the last record read of each topic partition; `unreadable` are ranges that cannot be
    read although their brokers answer.
    """

    discoveries: tuple[Discovery, ...] = ()
    truncates: tuple[TableTruncate, ...] = ()
    feeds: dict[str, Mapping[Feed, int]] = field(default_factory=dict)
    topics: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    rejected: tuple[RejectedSample, ...] = ()
    kept: tuple[CachedChunk, ...] = ()
    times: BatchTimes = field(default_factory=BatchTimes)
    unreadable: tuple[Unreadable, ...] = ()
    last_records: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    @property
    def runs_again(self) -> bool:
        """Whether the batch must run again after the driver has handled this report."""
        return bool(self.discoveries or self.truncates or self.unreadable)


def encode_rows(origin: BlobOrigin, rows: pa.Table) -> pa.Buffer:
    """Encode rows as a blob; the origin replaces their schema metadata."""
    return UnsentRows(origin, rows).encoded()


def as_bytes(blob: Blob) -> bytes:
    """Return a blob as bytes that do not share memory."""
    if isinstance(blob, UnsentRows):
        blob = blob.encoded()
    return blob if isinstance(blob, bytes) else blob.to_pybytes()


def encode_report(report: Report) -> bytes:
    """Encode a report as a blob."""
    return _REPORT_MARK + pickle.dumps(report)


def encode_abort_marker() -> bytes:
    """Return the blob that keeps a write task from writing."""
    return _VOID


@dataclass(frozen=True, slots=True)
class Received:
    """The decoded blobs of a write task: rows by table in order, reports, whether to write."""

    rows: dict[str, list[RowBlob]]
    reports: tuple[Report, ...]
    void: bool


def receive(blobs: Iterable[Blob]) -> Received:
    """Decode all blobs of a task; rows of a table are in (topic, partition, offset) order."""
    row_blobs: list[RowBlob] = []
    reports: list[Report] = []
    void = False
    for blob in blobs:
        if isinstance(blob, UnsentRows):
            row_blobs.append(RowBlob(blob.origin, blob.rows))
        elif isinstance(blob, pa.Buffer) or not blob.startswith((_REPORT_MARK, _VOID)):
            row_blobs.append(_decode_rows(blob))
        elif blob == _VOID:
            void = True
        else:
            reports.append(pickle.loads(blob[len(_REPORT_MARK) :]))  # noqa: S301  (our own stage 1)
    rows: dict[str, list[RowBlob]] = {}
    for row_blob in sorted(row_blobs, key=lambda blob: blob.origin.order):
        rows.setdefault(row_blob.origin.table, []).append(row_blob)
    return Received(rows, tuple(reports), void or any(report.runs_again for report in reports))


def _decode_rows(blob: Encoded) -> RowBlob:
    with pa.ipc.open_stream(blob) as reader:
        table = reader.read_all()
    table_name, source, topic, partition, offset = json.loads(table.schema.metadata[_METADATA_KEY])
    return RowBlob(
        BlobOrigin(table_name, source, topic, partition, offset),
        table.replace_schema_metadata(None),
    )
