"""Records that a batch reads once more because a truncate was read after rows behind it."""

from dataclasses import replace

from ingestd.ingest.settings.context import BatchContext, Coverage
from ingestd.ingest.stages.truncates import Stream
from ingestd.ingest.tables.lake import Lake
from ingestd.ingest.tables.older_snapshots import covered_before
from ingestd.kafka.ranges import Offsets


def stream_of(lake: Lake, user: str, until: Offsets) -> Stream:
    """The stream of a batch that ends at `until`, and what the tables hold of it by `user`."""

    def before(name: str, position: int) -> Coverage | None:
        one = lake.tables[name]
        return covered_before(one.table, one.state.snapshot, user, position)

    return Stream(
        partitions=lambda source, topic: len(until.get(source, {}).get(topic, {})),
        held=lambda name: lake.tables[name].coverage,
        before=before,
    )


def missing_nothing(context: BatchContext) -> BatchContext:
    """The context for a batch that reads again: records that a table had must still be there."""
    return replace(
        context,
        sources={
            name: replace(one, kafka=replace(one.kafka, on_offset_out_of_range="fail"))
            for name, one in context.sources.items()
        },
    )
