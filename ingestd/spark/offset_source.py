"""The streaming source of a query, whose rows are offset ranges and not records.

Its methods run in Python processes that Spark starts, and not in the process of the driver. Before
a batch runs, Spark writes the offsets of the batch, a JSON document, to the offset log in the
checkpoint.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ingestd.errors import IngestdError
from ingestd.ingest.maintenance.backlog import is_cut
from ingestd.kafka.offset_ranges import (
    BatchOffsets,
    OffsetRange,
    Offsets,
    decode,
    decode_offsets,
    encode,
    encode_offsets,
)
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource

if TYPE_CHECKING:  # the planning worker does not import the recovery
    from ingestd.ingest.recovery.start import StartPositions

FORMAT = "ingestd_offset_ranges"
OPTION = "ingestd.sources"
_SCHEMA = "source string, topic string, partition int, start long, until long"


def source_options(
    sources: Mapping[str, KafkaSource],
    max_offsets: Mapping[str, int],
    start: "StartPositions",
) -> dict[str, str]:
    """Return the options for `readStream.format(FORMAT)`.

    `max_offsets` maps names of sources to the maximum number of offsets per batch. Topic partitions
    that are not in `start` are read from the beginning of their logs.
    """
    document = {
        "sources": [source.to_document() for source in sources.values()],
        "max_offsets": dict(max_offsets),
        "start": encode_offsets(start.offsets),
        "epochs": encode_offsets(start.epochs),
        "covered": encode_offsets(start.covered),
    }
    return {OPTION: json.dumps(document)}


class OffsetRangeSource(DataSource):
    """The data source for `spark.dataSource.register`; its rows are the ranges of a batch."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `readStream.format`."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of a row, as a DDL string of Spark."""
        return _SCHEMA

    def streamReader(self, schema: object) -> "OffsetRangeReader":  # noqa: N802  (Spark's name)
        """Return the reader that plans and reads the batches of one query."""
        return OffsetRangeReader(json.loads(self.options[OPTION]))


@dataclass(frozen=True)
class RangePartition(InputPartition):
    """A partition of Spark's source with one offset range."""

    range: OffsetRange


class OffsetRangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The planner of the batches of one query; `document` is the option of `source_options`.

    Methods that plan raise LogChangedError if a log has lost or replaced records, SourceError if
    brokers do not respond, and ConfigError for an unknown topic partition in the end offsets.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        sources = [KafkaSource.from_document(source) for source in document["sources"]]
        self._limits = {name: int(limit) for name, limit in document["max_offsets"].items()}
        self._start = decode_offsets(document["start"])
        self._planner = Planner(
            {source.name: source for source in sources},
            self._limits,
            decode_offsets(document["epochs"]),
            decode_offsets(document["covered"]),
        )
        self._planned_next: tuple[Offsets, BatchOffsets] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        """Return the offsets at which the first batch begins, as given to `source_options`."""
        return encode(BatchOffsets(self._start, self._start))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  (Spark's name)
        """Return the maximum number of offsets in one batch, over all sources."""
        return ReadMaxRows(self._planner.limit)

    def latestOffset(  # noqa: N802  (Spark's name)
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """Return the offsets of the batch after `start`, or `start` if there is none.

        Unless `limit` is `ReadAllAvailable`, the limits of the sources apply.
        """
        bounded = not isinstance(limit, ReadAllAvailable)
        reached = decode(start).until
        planned, self._planned_next = self._planned_next, None
        if bounded and planned is not None and planned[0] == reached:
            batch: BatchOffsets | None = planned[1]
        else:
            batch = self._planner.next_batch(reached, bounded=bounded)
        if batch is None:
            return start
        following = self._following(batch) if bounded else None
        self._planned_next = None if following is None else (batch.until, following)
        return encode(replace(batch, following=following))

    def _following(self, batch: BatchOffsets) -> BatchOffsets | None:
        """Return the batch that follows `batch` if both reach a limit of `max_offsets`, else None.

        The following batch is planned in advance, so that the driver can prefetch it. Errors are
        ignored here; they are raised when it is planned again.
        """
        if not is_cut(batch, self._limits):
            return None
        try:
            following = self._planner.next_batch(batch.until, bounded=True)
        except IngestdError:
            return None
        return following if following is not None and is_cut(following, self._limits) else None

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  (Spark's name)
        """Return the known end offsets, for Spark's progress report; None if none are known yet."""
        ends = self._planner.ends
        return None if ends is None else encode(BatchOffsets(ends, ends))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  (Spark's name)
        """Let the query end at the current end offsets of the topics."""
        self._planner.freeze()

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[RangePartition]:
        """Return one partition for each offset range of the batch from `start` to `end`.

        The ranges are taken from `end`, which contains them; the result is [] if `start` equals
        `end`.
        """
        return [] if start == end else [RangePartition(range_) for range_ in decode(end).ranges()]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, str, int, int, int]]:
        """Yield the offset range of a partition as one row: source, topic, partition, start, end.

        Raises TypeError for a partition of another source.
        """
        if not isinstance(partition, RangePartition):
            raise TypeError(f"not a partition of this source: {partition!r}")
        read = partition.range
        yield read.source, read.topic, read.partition, read.start, read.until

    def commit(self, end: Mapping[str, Any]) -> None:
        """Do nothing: offsets are stored in the tables."""

    def stop(self) -> None:
        """Close the connections to the brokers."""
        self._planner.close()
