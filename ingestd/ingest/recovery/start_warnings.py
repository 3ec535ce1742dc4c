"""Settings that have no effect or are probably mistaken, as a start of the pipeline can find them.

None of them prevents the start: each warning states what is ignored or unusual, and what to change.
"""

import difflib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from ingestd.errors import SourceError
from ingestd.ingest.schemas.declared_differences import declared_differences
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.kafka.offset_ranges import TopicOffsets
from ingestd.kafka.offsets import TopicPartitions
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.wording import counted

_LOG = logging.getLogger(__name__)
_NEAREST = 3
_LEAST_LIKENESS = 0.3


class SettingsOfTables(Protocol):
    """The settings of the tables of a pipeline, as its driver and the contexts of batches have."""

    @property
    def dead_letters(self) -> str:
        """The identifier of the dead-letter table."""

    def settings_of(self, identifier: str) -> TableSettings:
        """Return the settings of a target table, with defaults for unset fields."""


class TopicCluster(Protocol):
    """The requests that the warnings need; `OffsetClient` implements them."""

    def existing_topics(self) -> AbstractSet[str]:
        """Return the names of all topics that the client may see."""

    def list_topic_partitions(self) -> TopicPartitions:
        """Return the partitions of each existing topic that the source selects."""

    def group_offsets(self, group: str, partitions: TopicPartitions) -> TopicOffsets:
        """Return the committed offsets of a consumer group, for partitions that have one."""


def log_warnings(warnings: Iterable[str]) -> None:
    """Log each warning as an event of its own."""
    for warning in warnings:
        _LOG.warning("configuration_warning", extra={"ctx": {"problem": warning}})


def table_warnings(settings: SettingsOfTables, schemas: Mapping[str, TableSchema]) -> Iterator[str]:
    """Yield the settings that existing tables do not follow; `schemas` are by identifier."""
    for name, schema in sorted(schemas.items()):
        if name == settings.dead_letters:
            continue
        for difference in declared_differences(schema, settings.settings_of(name)):
            yield f"table {name}: {difference}"


def source_warnings(
    settings: PipelineSettings, clusters: Mapping[str, TopicCluster], *, is_first: bool
) -> Iterator[str]:
    """Yield warnings about the topics of sources, and about consumer groups if `is_first`.

    `is_first` is whether the warehouse has no progress of the pipeline. Raises SourceError if
    brokers do not respond.
    """
    for name, cluster in clusters.items():
        source = settings.sources[name].kafka
        partitions = cluster.list_topic_partitions()
        if not partitions and source.topic_pattern is not None:
            yield from _unmatched(source, cluster.existing_topics())
        if partitions and is_first and source.startup_mode != "group-offsets":
            yield from _other_warehouse(settings, source, cluster, partitions)


def _unmatched(source: KafkaSource, existing: AbstractSet[str]) -> Iterator[str]:
    own = sorted(topic for topic in existing if not topic.startswith("_"))
    if not own:
        return
    # The letters of the expression, without its operators, are what a topic may resemble.
    letters = re.sub(r"\\(.)|[][(){}*+?|^$]", r"\1", source.topic_pattern or "")
    close = difflib.get_close_matches(letters, own, n=_NEAREST, cutoff=_LEAST_LIKENESS)
    yield (
        f"source {source.name}: topic-pattern '{source.topic_pattern}' has no match among the "
        f"{counted(len(own), 'topic')} at {source.bootstrap}; nearest: "
        f"{', '.join(close or own[:_NEAREST])}"
    )


def _other_warehouse(
    settings: PipelineSettings,
    source: KafkaSource,
    cluster: TopicCluster,
    partitions: TopicPartitions,
) -> Iterator[str]:
    try:
        offsets = cluster.group_offsets(source.group, partitions)
    except SourceError as error:
        yield f"source {source.name}: the offsets of its group cannot be read: {error.message}"
        return
    topics = sorted(topic for topic, by_partition in offsets.items() if by_partition)
    if topics:
        yield (
            f"source {source.name}: consumer group {source.group} has offsets of "
            f"{', '.join(topics[:_NEAREST])}, but database {settings.database} of warehouse "
            f"{settings.warehouse} has no progress of pipeline {settings.name}, which therefore "
            f"reads from '{source.startup_mode}'; if the warehouse was moved, correct "
            "warehouse.path and warehouse.database"
        )
