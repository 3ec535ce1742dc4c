"""What travels between the two stages of a batch, as opaque bytes: rows, reports and voids.

A row blob is an Arrow IPC stream with its origin in the schema metadata. A report tells the
driver what a decode task found. A void tells a write task that the batch will run again after
schema evolution, so that it need not write anything.
"""

import json
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
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
"""Columns beside those of the table; no source column can have such a name and reach a table."""

_METADATA_KEY = b"ingestd"
_REPORT_MARK = b"ingestd-report\0"
_VOID = b"ingestd-void\0"


@dataclass(frozen=True, slots=True)
class BlobOrigin:
    """Where the rows of a blob come from and go to; blobs of a table are sorted by it."""

    table: str
    source: str
    topic: str
    partition: int
    offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Where the rows come from, without the offset."""
        return TopicPartition(self.source, self.topic, self.partition)

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
    """Decoded rows of one table that become bytes where these are needed.

    In a file they are written as they are in memory; to make a blob of them first would copy them
    twice, into memory that is new each time.
    """

    origin: BlobOrigin
    rows: pa.Table

    def __len__(self) -> int:
        """About how many bytes the blob has."""
        return self.rows.nbytes

    def write_to(self, stream: BinaryIO) -> None:
        """Write the blob; raises what the stream raises."""
        file: Any = stream
        self._write(pa.PythonFile(file, "w"))

    def encoded(self) -> pa.Buffer:
        """The blob."""
        sink = pa.BufferOutputStream()
        self._write(sink)
        return sink.getvalue()

    def _write(self, sink: pa.NativeFile) -> None:
        one = self.origin
        document = [one.table, one.source, one.topic, one.partition, one.offset]
        schema = self.rows.schema.with_metadata({_METADATA_KEY: json.dumps(document).encode()})
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(self.rows.replace_schema_metadata(schema.metadata))


Encoded: TypeAlias = bytes | pa.Buffer
"""Rows are a buffer, everything else is bytes; rows that passed through a shuffle are bytes too."""
Blob: TypeAlias = Encoded | UnsentRows
"""What a task hands on, of which rows may not be encoded yet."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a decode task found, beside rows.

    `feeds`, `topics` and `positions` by table: the source tables with the count of rows, and the
    (source, topic) pairs, that brought it rows, and the largest source position of streamed rows;
    `rejected` are samples only, all rejected records are counted in `counts`; `kept` are chunks
    that wait for a table; `times` tell when changes were made; `last_records` has the offset and
    the checksum of the last record that was read of each topic partition;
    `unreadable` are ranges that gave nothing although their brokers answer.
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
        """Whether the batch must run again after the driver has acted on this report."""
        return bool(self.discoveries or self.truncates or self.unreadable)


def encode_rows(origin: BlobOrigin, rows: pa.Table) -> pa.Buffer:
    """Rows as a blob; their schema metadata is replaced by the origin."""
    return UnsentRows(origin, rows).encoded()


def as_bytes(blob: Blob) -> bytes:
    """A blob as bytes of its own."""
    if isinstance(blob, UnsentRows):
        blob = blob.encoded()
    return blob if isinstance(blob, bytes) else blob.to_pybytes()


def encode_report(report: Report) -> bytes:
    """A report as a blob."""
    return _REPORT_MARK + pickle.dumps(report)


def encode_abort_marker() -> bytes:
    """The blob that keeps a write task from writing."""
    return _VOID


@dataclass(frozen=True, slots=True)
class Received:
    """The blobs of a write task, sorted out: rows by table in order, reports, whether to write."""

    rows: dict[str, list[RowBlob]]
    reports: tuple[Report, ...]
    void: bool


def receive(blobs: Iterable[Blob]) -> Received:
    """Decode all blobs of a task; rows of a table come in (topic, partition, offset) order."""
    found: list[RowBlob] = []
    reports: list[Report] = []
    void = False
    for blob in blobs:
        if isinstance(blob, UnsentRows):
            found.append(RowBlob(blob.origin, blob.rows))
        elif isinstance(blob, pa.Buffer) or not blob.startswith((_REPORT_MARK, _VOID)):
            found.append(_decode_rows(blob))
        elif blob == _VOID:
            void = True
        else:
            reports.append(pickle.loads(blob[len(_REPORT_MARK) :]))  # noqa: S301  (our own stage 1)
    rows: dict[str, list[RowBlob]] = {}
    for one in sorted(found, key=lambda blob: blob.origin.order):
        rows.setdefault(one.origin.table, []).append(one)
    return Received(rows, tuple(reports), void or any(report.runs_again for report in reports))


def _decode_rows(blob: Encoded) -> RowBlob:
    with pa.ipc.open_stream(blob) as reader:
        table = reader.read_all()
    table_name, source, topic, partition, offset = json.loads(table.schema.metadata[_METADATA_KEY])
    return RowBlob(
        BlobOrigin(table_name, source, topic, partition, offset),
        table.replace_schema_metadata(None),
    )


def split_by_slot(
    rows: pa.Table,
    slots: npt.NDArray[np.int64],
    picked: npt.NDArray[np.int64] | None = None,
) -> list[tuple[int, pa.Table]]:
    """Rows grouped by slot, each group in the order of the rows; only the `picked` places if given.

    `slots` has the slot of every row.
    """
    if picked is not None and len(picked) == len(slots):
        picked = None
    mine = slots if picked is None else slots[picked]
    if len(mine) == 0:
        return []
    first = int(mine[0])
    if bool((mine == first).all()):
        return [(first, rows if picked is None else rows.take(picked))]
    order = np.argsort(mine, kind="stable")
    ordered = mine[order]
    borders = np.flatnonzero(np.diff(ordered)) + 1
    starts = [0, *borders.tolist()]
    ends = [*borders.tolist(), len(ordered)]
    taken = rows.take(order if picked is None else picked[order])
    return [(int(ordered[s]), taken.slice(s, e - s)) for s, e in zip(starts, ends, strict=True)]
