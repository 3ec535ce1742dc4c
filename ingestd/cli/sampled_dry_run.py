"""Dry-run a pipeline over sampled records, without writing anything."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ingestd.cdc.base import RecordChunk
from ingestd.cli.groups import now_ms
from ingestd.errors import SourceError
from ingestd.ingest.dry_run.dry_run import DryRun, Sample, run_dry
from ingestd.ingest.recovery.start_warnings import (
    source_warnings,
    table_warnings,
    unused_warnings,
)
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.pipeline_warehouse import open_catalog, open_file_io
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.consumer_pool import close_consumers
from ingestd.kafka.fetch import fetch
from ingestd.kafka.offset_ranges import OffsetRange, TopicOffsets, sample_ranges
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.catalog.base import CASE_SENSITIVE
from ingestd.paimon.catalog.dry_run_catalog import DryRunCatalog
from ingestd.paimon.spec.option_types import parse_bool

_ASK_SECONDS = 10.0
_THREADS = 16
_LOCAL = re.compile(r"local(?:\[(\d+)\b.*)?")


class TopicLogs(NamedTuple):
    """The first and the end offsets of the topics of one source, by topic and partition."""

    begin: TopicOffsets
    end: TopicOffsets


class Planned(NamedTuple):
    """The result of `ingestd plan`: sampled records, and a dry run over them.

    `logs` are the log offsets of topics by source. `warnings` are settings that have no effect or
    are probably mistaken.
    """

    logs: Mapping[str, TopicLogs]
    sample: Sample
    result: DryRun
    warnings: tuple[str, ...] = ()


def dry_run_pipeline(settings: PipelineSettings, records: int) -> Planned:
    """Dry-run a pipeline over samples of its topics, at most `records` offsets of each.

    Raises SourceError if a topic does not exist or brokers do not respond, and the errors of
    opening tables.
    """
    logs = {name: topic_logs(source.kafka) for name, source in sorted(settings.sources.items())}
    registry = dry_run_registry(settings)

    def read(offset_range: OffsetRange) -> list[RecordChunk]:
        source = settings.sources[offset_range.source]
        chunks = fetch(
            source.kafka,
            offset_range,
            max_records=settings.limits.max_chunk_records,
            max_bytes=settings.limits.max_chunk_bytes,
            headers=source.needs_headers,
        )
        return list(chunks)

    sample = take_sample(logs, records, read)
    on_sources = tuple(broker_warnings(settings, registry))
    result = _run_sample(registry, sample, settings)
    on_tables = (*table_warnings(settings, result.before), *_key_warnings(result))
    tables = result.before.keys() | result.source_tables.keys()
    unused = unused_warnings(settings, tables) if tables else ()
    return Planned(logs, sample, result, (*on_sources, *on_tables, *unused))


def broker_warnings(settings: PipelineSettings, registry: TableRegistry) -> Iterator[str]:
    """Yield warnings about the topics and the consumer groups of a pipeline's sources.

    `registry` must be open. Raises SourceError if brokers do not respond.
    """
    clusters = {
        name: OffsetClient(source.kafka, request_seconds=_ASK_SECONDS)
        for name, source in settings.sources.items()
    }
    return source_warnings(settings, clusters, is_first=not registry.progress.end)


def _key_warnings(result: DryRun) -> Iterator[str]:
    for (table, column), data_type in sorted(result.text_keys.items()):
        yield (
            f"table {table}: primary key column '{column}' exists as text, and the {data_type} "
            "values of the source are written as text, which sorts and joins otherwise; to have "
            "numbers, move the table away and let it be created again"
        )


def _run_sample(
    registry: TableRegistry,
    sample: Mapping[OffsetRange, list[RecordChunk]],
    settings: PipelineSettings,
) -> DryRun:
    slots, trial = _slots(settings), settings.wrong_format_threshold
    return run_dry(registry, sample, slots=slots, now_ms=now_ms, trial=trial)


def topic_logs(source: KafkaSource) -> TopicLogs:
    """Return the first and end offsets of the topics of a source.

    Raises SourceError if one of its named topics does not exist or the cluster does not respond,
    and ConfigError for invalid properties.
    """
    cluster = OffsetClient(source, request_seconds=_ASK_SECONDS)
    partitions = cluster.list_topic_partitions()
    missing = sorted(set(source.topics) - partitions.keys())
    if missing:
        raise SourceError(
            f"source {source.name}: no topic {', '.join(missing)} at {source.bootstrap}; create "
            f"it, or correct sources.{source.name}.topics"
        )
    return TopicLogs(cluster.beginning_offsets(partitions), cluster.end_offsets(partitions))


def dry_run_registry(settings: PipelineSettings) -> TableRegistry:
    """Open the tables of a pipeline, in a catalog that keeps changes in memory.

    Raises the errors of opening tables.
    """
    options = settings.catalog_options
    real = open_catalog(settings)
    catalog = DryRunCatalog(real, parse_bool(CASE_SENSITIVE, options.get(CASE_SENSITIVE, "true")))
    io = open_file_io(settings)
    registry = TableRegistry(settings, catalog, io, now_ms)
    registry.open()
    return registry


def take_sample(
    logs: Mapping[str, TopicLogs], records: int, read: Callable[[OffsetRange], list[RecordChunk]]
) -> dict[OffsetRange, list[RecordChunk]]:
    """Read a sample of each topic with `read`, and return its records by offset range.

    `logs` has the offsets of topics by source. A sample has at most `records` offsets, from the
    beginnings and the ends of the topic's partitions. Ranges are read concurrently, because reading
    a small range is mostly waiting for the network. Raises the errors of `read`.
    """
    ranges = [
        sample_range
        for name, (begin, end) in logs.items()
        for sample_range in sample_ranges(name, begin, end, records)
    ]
    try:
        with ThreadPoolExecutor(_THREADS, "sample") as pool:
            return dict(zip(ranges, pool.map(read, ranges), strict=True))
    finally:
        close_consumers()


def _slots(settings: PipelineSettings) -> int:
    """Return the setting `write-tasks`, or if it is not set, N of a Spark master `local[N]`.

    For any other master, return the number of cores that this process may use.
    """
    local = _LOCAL.fullmatch(settings.spark.get("spark.master", "local[*]"))
    cores = int(local[1]) if local and local[1] else len(os.sched_getaffinity(0))
    return settings.limits.write_tasks or cores
