"""The streaming source of a query: ranges of offsets, not records.

Its methods run in a Python process of their own beside the driver. Spark keeps the offsets, a
JSON document that says where a batch starts and where it ends, before it runs the batch.
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
from ingestd.ingest.upkeep.backlog import is_cut
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import (
    BatchOffsets,
    OffsetRange,
    Offsets,
    decode,
    decode_offsets,
    encode,
    encode_offsets,
)

if TYPE_CHECKING:  # the worker that plans does without all that a start imports
    from ingestd.ingest.recovery.start import StartPositions

FORMAT = "ingestd_offset_ranges"
OPTION = "ingestd.sources"
_SCHEMA = "source string, topic string, partition int, start long, until long"


def source_options(
    sources: Mapping[str, KafkaSource],
    max_offsets: Mapping[str, int],
    start: "StartPositions",
) -> dict[str, str]:
    """Options for `readStream.format(FORMAT)`.

    `max_offsets` bounds the offsets of a source (by name) in one batch. Topic partitions that
    `start` lacks begin where their logs begin.
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
    """Registered with `spark.dataSource.register`; one row for each range of a batch."""

    @classmethod
    def name(cls) -> str:
        """The name for `readStream.format`."""
        return FORMAT

    def schema(self) -> str:
        """Columns of a range."""
        return _SCHEMA

    def streamReader(self, schema: object) -> "OffsetRangeReader":  # noqa: N802  (Spark's name)
        """The reader of one query."""
        return OffsetRangeReader(json.loads(self.options[OPTION]))


@dataclass(frozen=True)
class RangePartition(InputPartition):
    """One range for one task."""

    range: OffsetRange


class OffsetRangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the batches of one query; `document` is what `source_options` made.

    Raises LogChangedError for a topic or a range that is gone, SourceError when brokers are silent.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        sources = [KafkaSource.from_document(one) for one in document["sources"]]
        self._limits = {name: int(limit) for name, limit in document["max_offsets"].items()}
        self._start = decode_offsets(document["start"])
        self._planner = Planner(
            {source.name: source for source in sources},
            self._limits,
            decode_offsets(document["epochs"]),
            decode_offsets(document["covered"]),
        )
        self._settled: tuple[Offsets, BatchOffsets] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        """Where the first batch begins, as the start of the pipeline has worked it out."""
        return encode(BatchOffsets(self._start, self._start))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  (Spark's name)
        """The bound of one batch over all sources."""
        return ReadMaxRows(self._planner.limit)

    def latestOffset(  # noqa: N802  (Spark's name)
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """The batch after `start`; `start` itself when there is nothing new."""
        bounded = not isinstance(limit, ReadAllAvailable)
        reached = decode(start).until
        settled, self._settled = self._settled, None
        if bounded and settled is not None and settled[0] == reached:
            batch: BatchOffsets | None = settled[1]
        else:
            batch = self._planner.next_batch(reached, bounded=bounded)
        if batch is None:
            return start
        following = self._following(batch) if bounded else None
        self._settled = None if following is None else (batch.until, following)
        return encode(replace(batch, following=following))

    def _following(self, batch: BatchOffsets) -> BatchOffsets | None:
        """The batch after a batch, if both are as large as the limits let them be.

        It is settled now, so that the driver may begin it early. Whatever is wrong with it is told
        when its turn has come.
        """
        if not is_cut(batch, self._limits):
            return None
        try:
            following = self._planner.next_batch(batch.until, bounded=True)
        except IngestdError:
            return None
        return following if following is not None and is_cut(following, self._limits) else None

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  (Spark's name)
        """The ends of the topics as last seen, for the query's progress."""
        ends = self._planner.ends
        return None if ends is None else encode(BatchOffsets(ends, ends))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  (Spark's name)
        """The query ends at what is there now."""
        self._planner.freeze()

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[RangePartition]:
        """One partition for each range of the batch that ends at `end`."""
        return [] if start == end else [RangePartition(one) for one in decode(end).ranges()]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, str, int, int, int]]:
        """The range as a row."""
        if not isinstance(partition, RangePartition):
            raise TypeError(f"not a partition of this source: {partition!r}")
        one = partition.range
        yield one.source, one.topic, one.partition, one.start, one.until

    def commit(self, end: Mapping[str, Any]) -> None:
        """Nothing to do: tables keep their offsets."""

    def stop(self) -> None:
        """Let go of the brokers."""
        self._planner.close()
