"""`ingestd plan`: what a pipeline would make of the messages that are there, before it runs."""

import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from ingestd.cdc.base import RecordChunk
from ingestd.cli.groups import now_ms
from ingestd.cli.output import AsJson, print_json
from ingestd.cli.plan_report import Planned, TopicLogs, plan_document, print_plan
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import SourceError
from ingestd.ingest.rehearsal.rehearsal import rehearse
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.lake import Lake
from ingestd.kafka.consumers import close_consumers
from ingestd.kafka.fetch import fetch
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.ranges import OffsetRange
from ingestd.kafka.sampling import sample_ranges
from ingestd.paimon.catalog.base import CASE_SENSITIVE, load_catalog
from ingestd.paimon.catalog.rehearsed import RehearsedCatalog
from ingestd.paimon.io.file_io import file_io_for, storage_options
from ingestd.paimon.spec.option_values import bool_option

_ASK_SECONDS = 10.0
_STOPPED = 5
_THREADS = 16
_LOCAL = re.compile(r"local(?:\[(\d+)\b.*)?")


def plan(
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")],
    records: Annotated[
        int, typer.Option("--records", min=1, help="Most records of each topic to look at.")
    ] = 200,
    as_json: AsJson = False,
) -> None:
    """Show what a pipeline would do to its tables, without doing it.

    Reads the oldest and the newest records of every topic and decodes and routes them as the
    daemon does. Shows which table each source table goes to; its columns, and whether they are
    new, widened or as they are; keys, partition keys, buckets and options; source tables that
    meet in one target; and records that would become dead letters, with their coordinates.

    Nothing is written: no table, no schema, no offset. Ends with 5 if a table could not be made,
    or if a topic would stop the pipeline.

    **Examples**

    ingestd plan -c shop.yaml

    ingestd plan -c shop.yaml --records 5000 --json
    """
    settings = pipeline_settings(load_config(config))
    logs = {name: _ask(settings, name) for name in sorted(settings.sources)}
    lake = _pretended_lake(settings)
    try:
        sample = _take_sample(settings, logs, records)
    finally:
        close_consumers()
    found = rehearse(lake, sample, slots=_slots(settings), now_ms=now_ms)
    planned = Planned(logs, sample, found)
    if as_json:
        print_json(plan_document(config, planned))
    else:
        print_plan(planned)
    raise typer.Exit(0 if found.passed else _STOPPED)


def _ask(settings: PipelineSettings, name: str) -> TopicLogs:
    """Where the topics of a source begin and end."""
    source = settings.sources[name].kafka
    cluster = OffsetClient(source, request_seconds=_ASK_SECONDS)
    partitions = cluster.list_topic_partitions()
    missing = sorted(set(source.topics) - partitions.keys())
    if missing:
        raise SourceError(
            f"source {name}: no topic {', '.join(missing)} at {source.bootstrap}; create it, or "
            f"correct sources.{name}.topics"
        )
    return TopicLogs(cluster.beginning_offsets(partitions), cluster.end_offsets(partitions))


def _pretended_lake(settings: PipelineSettings) -> Lake:
    """The tables of the pipeline, over a catalog that keeps changes to itself."""
    options = settings.catalog_options
    real = load_catalog(settings.metastore, settings.warehouse, options)
    catalog = RehearsedCatalog(real, bool_option(options, CASE_SENSITIVE, True))
    io = file_io_for(settings.warehouse, storage_options(options))
    lake = Lake(settings, catalog, io, now_ms)
    lake.open()
    return lake


def _take_sample(
    settings: PipelineSettings, logs: Mapping[str, TopicLogs], records: int
) -> dict[OffsetRange, list[RecordChunk]]:
    """The sample; ranges are small, so reading one is mostly waiting and several wait at once."""

    def read(wanted: OffsetRange) -> list[RecordChunk]:
        source = settings.sources[wanted.source]
        chunks = fetch(
            source.kafka,
            wanted,
            max_records=settings.limits.max_chunk_records,
            max_bytes=settings.limits.max_chunk_bytes,
            headers=source.format_settings.framing.needs_headers,
        )
        return list(chunks)

    ranges = [
        one
        for name, (begin, end) in logs.items()
        for one in sample_ranges(name, begin, end, records)
    ]
    with ThreadPoolExecutor(_THREADS, "sample") as pool:
        return dict(zip(ranges, pool.map(read, ranges), strict=True))


def _slots(settings: PipelineSettings) -> int:
    """Write tasks as the daemon would have them; of a cluster only the settings can tell."""
    local = _LOCAL.fullmatch(settings.spark.get("spark.master", "local[*]"))
    cores = int(local[1]) if local and local[1] else len(os.sched_getaffinity(0))
    return settings.limits.slots or cores
