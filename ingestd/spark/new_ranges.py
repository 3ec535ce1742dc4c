"""Which ranges of a batch some table may still need, by what the tables hold of them."""

import logging
from collections.abc import Iterable

from ingestd.errors import OffsetGapError
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.lake import Lake
from ingestd.ingest.tables.progress import Gap, Skip, judge
from ingestd.kafka.ranges import OffsetRange

_LOG = logging.getLogger(__name__)


def new_ranges(
    lake: Lake, settings: PipelineSettings, ranges: Iterable[OffsetRange]
) -> list[OffsetRange]:
    """Ranges that some table may still need; OffsetGapError if a table misses offsets."""
    return [one for one in ranges if not _is_everywhere(lake, settings, one)]


def _is_everywhere(lake: Lake, settings: PipelineSettings, one: OffsetRange) -> bool:
    """Whether every table that the topic ever fed holds the whole range, and none is missing.

    A batch that died between two commits may have been about to feed a new table, which has
    no record yet: only a finished batch is left out.
    """
    verdicts = []
    for name in lake.fed_by(one.source, one.topic):
        partitions = lake.tables[name].coverage[one.source][one.topic]
        verdict = judge(one, partitions.get(one.partition))
        if isinstance(verdict, Gap):
            _on_gap(settings, name, one, verdict)
        verdicts.append(verdict)
    held = bool(verdicts) and all(isinstance(verdict, Skip) for verdict in verdicts)
    return held and lake.has_finished(one)


def _on_gap(settings: PipelineSettings, table: str, one: OffsetRange, gap: Gap) -> None:
    """OffsetGapError, unless the source's policy lets it go on past lost offsets."""
    policy = settings.sources[one.source].kafka.on_offset_out_of_range
    if policy == "fail":
        raise OffsetGapError(_gap_message(table, one, gap))
    where = {"topic": one.topic, "partition": one.partition, "policy": policy}
    lost = {"table": table, "start": gap.start, "until": gap.until}
    _LOG.warning("offsets_skipped", extra={"ctx": {**where, **lost}})


def _gap_message(table: str, one: OffsetRange, gap: Gap) -> str:
    return (
        f"table {table} holds {one.topic}/{one.partition} of source {one.source} up to offset "
        f"{gap.start}, but the batch starts at {gap.until}: the table was rolled back or restored "
        "while the pipeline ran; start it again, and it reads on from the table's own offsets"
    )
