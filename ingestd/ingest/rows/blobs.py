"""The blobs that the two stages of a batch exchange: rows, reports and abort markers.

A row blob is an Arrow IPC stream with its origin in the schema metadata. A report contains the
findings of a decode task for the driver. If a write task receives an abort marker, the batch will
run again after the driver has handled the findings, and the task writes nothing.
"""

import json
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa

from ingestd.ingest.schemas.discovery import Discovery, TableTruncate
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.kafka.isolated_fetch import Unreadable
from ingestd.kafka.offset_ranges import SourcePartition

KIND = "_VALUE_KIND"
OFFSET = "ingestd:offset"
POSITION = "ingestd:position"
BUCKET = "ingestd:bucket"
HASH = "ingestd:hash"
UNAVAILABLE_PREFIX = "ingestd:unavailable:"
"""Prefix of columns that mark omitted values.

Rows are sent with these columns and the columns above, whose names are not valid in tables.
"""
KEPT_DELETE = UNAVAILABLE_PREFIX
"""Column that marks deletes of the source that are kept as updates: the whole row is omitted."""

_METADATA_KEY = b"ingestd"
_REPORT_MARK = b"ingestd-report\0"
_ABORT_MARKER = b"ingestd-abort\0"


@dataclass(frozen=True, slots=True)
class BlobOrigin:
    """The target table and the origin of the rows in a blob; `offset` is the first row's offset."""

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
    """Decoded rows of one table from one topic partition, with their origin."""

    origin: BlobOrigin
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class UnsentRows:
    """Decoded rows of one table that are encoded only when they are written.

    They are written directly to a file. Encoding them as a blob first would copy them twice, into
    newly allocated memory.
    """

    origin: BlobOrigin
    rows: pa.Table

    def __len__(self) -> int:
        """Return the approximate size of the blob in bytes."""
        return self.rows.nbytes

    def write_to(self, stream: BinaryIO) -> None:
        """Write the encoded blob to a stream. Raises the errors of the stream."""
        file: Any = stream
        self._write(pa.PythonFile(file, "w"))

    def encoded(self) -> pa.Buffer:
        """Return the rows encoded as one blob, an Arrow IPC stream."""
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
"""An encoded blob: rows are a buffer, or bytes after a shuffle; other blobs are bytes."""
Blob: TypeAlias = Encoded | UnsentRows
"""An encoded blob, or rows that are not encoded yet."""


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a decode task, without rows.

    Three fields are by table: `source_tables` are the numbers of rows by source table, `topics` the
    (source, topic) pairs of the rows, and `reached` the latest point of the streamed rows.
    `rejected` are samples of rejected records; `counts` has their total number. `times` are the
    event times of changes. `last_records` maps topic partitions to offset and checksum of the last
    record that was read. `unreadable` are ranges that cannot be read although their brokers
    respond. If `runs_again`, the driver must handle findings, such as new columns, and run the
    batch again.
    """

    runs_again: bool = False
    discoveries: tuple[Discovery, ...] = ()
    truncates: tuple[TableTruncate, ...] = ()
    source_tables: dict[str, Mapping[QualifiedSourceTable, int]] = field(default_factory=dict)
    topics: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    reached: dict[str, SourcePoint] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    rejected: tuple[RejectedSample, ...] = ()
    times: BatchTimes = field(default_factory=BatchTimes)
    unreadable: tuple[Unreadable, ...] = ()
    last_records: dict[SourcePartition, tuple[int, int]] = field(default_factory=dict)


def as_bytes(blob: Blob) -> bytes:
    """Copy a blob to a bytes object, which shares no memory with it."""
    if isinstance(blob, UnsentRows):
        blob = blob.encoded()
    return blob if isinstance(blob, bytes) else blob.to_pybytes()


def encode_report(report: Report) -> bytes:
    """Encode a report as a blob."""
    return _REPORT_MARK + pickle.dumps(report)


def encode_abort_marker() -> bytes:
    """Return an abort marker: a write task that receives it writes nothing."""
    return _ABORT_MARKER


@dataclass(frozen=True, slots=True)
class Received:
    """The decoded blobs of a write task: rows by table, and the reports of decode tasks.

    If `is_aborted`, the task must write nothing: a blob was an abort marker, or a report has
    findings for which the batch must run again.
    """

    rows: dict[str, list[RowBlob]]
    reports: tuple[Report, ...]
    is_aborted: bool


def receive(blobs: Iterable[Blob]) -> Received:
    """Decode all blobs of a task.

    The row blobs of a table are ordered by topic, partition, source and first offset.
    """
    row_blobs: list[RowBlob] = []
    reports: list[Report] = []
    aborted = False
    for blob in blobs:
        if isinstance(blob, UnsentRows):
            row_blobs.append(RowBlob(blob.origin, blob.rows))
        elif isinstance(blob, pa.Buffer) or not blob.startswith((_REPORT_MARK, _ABORT_MARKER)):
            row_blobs.append(_decode_rows(blob))
        elif blob == _ABORT_MARKER:
            aborted = True
        else:
            reports.append(pickle.loads(blob[len(_REPORT_MARK) :]))  # noqa: S301  (our own stage 1)
    rows: dict[str, list[RowBlob]] = {}
    for row_blob in sorted(row_blobs, key=lambda blob: blob.origin.order):
        rows.setdefault(row_blob.origin.table, []).append(row_blob)
    return Received(rows, tuple(reports), aborted or any(report.runs_again for report in reports))


def _decode_rows(blob: Encoded) -> RowBlob:
    with pa.ipc.open_stream(blob) as reader:
        table = reader.read_all()
    table_name, source, topic, partition, offset = json.loads(table.schema.metadata[_METADATA_KEY])
    return RowBlob(
        BlobOrigin(table_name, source, topic, partition, offset),
        table.replace_schema_metadata(None),
    )
