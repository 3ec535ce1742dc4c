"""Find settings that have no effect or are probably mistaken, when a pipeline starts.

None of them prevents the start: each warning states what is ignored or unusual, and what to change.
Keys, buckets and options of the configuration apply to new tables; an existing table keeps its own.
"""

import difflib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from ingestd.errors import SchemaConflictError, SourceError
from ingestd.ingest.schemas.new_tables import is_for_keyed_tables
from ingestd.ingest.settings.context import TableSettings, section_of
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.kafka.offset_ranges import TopicOffsets
from ingestd.kafka.offsets import TopicPartitions
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.option_types import Support, TableOption
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.schema_apply import check_option_change
from ingestd.paimon.spec.table_options import find_option
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.wording import counted

_AGAIN = "move the table away and let it be created again"
_ALTER = "change the option of the table (ALTER TABLE in Spark or Flink)"


@dataclass(frozen=True, slots=True)
class DeclaredDifference:
    """A setting of the configuration that differs from the existing table.

    `way_out` states how to change the table.
    """

    key: str
    declared: str
    actual: str
    way_out: str

    def __str__(self) -> str:
        return (
            f"{self.key} = {self.declared} has no effect, the table exists with {self.actual}; "
            f"correct the setting, or {self.way_out}"
        )


def declared_differences(
    schema: TableSchema, settings: TableSettings
) -> tuple[DeclaredDifference, ...]:
    """Return the keys and options whose declared value differs from the value in the table.

    `settings` include the defaults. Options are compared by their parsed values: `64mb` and
    `64 mb`, or a default and a missing option, do not differ. Options that ingestd ignores in every
    table are left out.
    """
    return (*_keys(schema, settings), *_options(schema, settings.options))


def _keys(schema: TableSchema, settings: TableSettings) -> Iterator[DeclaredDifference]:
    if settings.primary_keys is not None and settings.primary_keys != schema.primary_keys:
        yield DeclaredDifference(
            "primary-keys", _names(settings.primary_keys), _names(schema.primary_keys), _AGAIN
        )
    if settings.partition_keys and settings.partition_keys != schema.partition_keys:
        yield DeclaredDifference(
            "partition-keys", _names(settings.partition_keys), _names(schema.partition_keys), _AGAIN
        )


def _options(schema: TableSchema, declared: Mapping[str, str]) -> Iterator[DeclaredDifference]:
    for name, value in sorted(declared.items()):
        option = find_option(name)
        if option is None or option.support is not Support.HONOURED:
            continue
        if name == honoured.BUCKET.name and is_for_keyed_tables(declared, schema.primary_keys):
            continue
        given = schema.options.get(option.given(schema.options) or name)
        if given is not None and option.parse(name, given) == option.parse(name, value):
            continue
        if given is None and option.parse(name, value) == option.default:
            continue
        yield DeclaredDifference(
            f"options.{name}", value, given or _default(option), _way_out(schema, name, value)
        )


def _default(option: TableOption[object]) -> str:
    text = option.default_text()
    return f"the default {text}" if text else "no value"


def _way_out(schema: TableSchema, name: str, value: str) -> str:
    if name == honoured.BUCKET.name:
        number = honoured.BUCKET.parse(name, value)
        if number > 0 and bucket_mode(schema) is BucketMode.HASH_FIXED:
            return f"run `ingestd rescale WAREHOUSE TABLE --buckets {number}`"
        return _AGAIN
    try:
        check_option_change(schema.options, name, value)
    except SchemaConflictError:
        return _AGAIN
    return _ALTER


def _names(columns: Sequence[str]) -> str:
    return f"[{', '.join(columns)}]" if columns else "none"


_LOG = logging.getLogger(__name__)
_NEAREST = 3
_LEAST_LIKENESS = 0.3


class SettingsOfTables(Protocol):
    """The settings of a pipeline's tables; `PipelineSettings` and `BatchContext` implement them."""

    @property
    def dead_letters(self) -> str:
        """The identifier of the dead-letter table."""

    def settings_of(self, identifier: str) -> TableSettings:
        """Return the settings of a target table, with defaults for unset fields."""


class TopicCluster(Protocol):
    """The requests to a cluster that start warnings need; `OffsetClient` implements them.

    All methods raise SourceError if the brokers do not respond.
    """

    def existing_topics(self) -> AbstractSet[str]:
        """Return the names of all topics that the client may see."""

    def list_topic_partitions(self) -> TopicPartitions:
        """Return the partitions of each existing topic that the source selects."""

    def group_offsets(self, group: str, partitions: TopicPartitions) -> TopicOffsets:
        """Return the committed offsets of a consumer group, for partitions that have one."""


def log_warnings(warnings: Iterable[str]) -> None:
    """Log each warning as a separate event."""
    for warning in warnings:
        _LOG.warning("configuration_warning", extra={"ctx": {"problem": warning}})


def table_warnings(settings: SettingsOfTables, schemas: Mapping[str, TableSchema]) -> Iterator[str]:
    """Yield a warning for each setting that differs from an existing table.

    `schemas` are the schemas of the existing tables, by identifier.
    """
    for name, schema in sorted(schemas.items()):
        if name == settings.dead_letters:
            continue
        for difference in declared_differences(schema, settings.settings_of(name)):
            yield f"table {name}: {difference}"


def unused_warnings(settings: PipelineSettings, tables: AbstractSet[str]) -> Iterator[str]:
    """Yield a warning for each section and mapping that no table has.

    `tables` are the identifiers of the tables that the pipeline has written or would write.
    """
    sections = {section_of(table) for table in tables}
    for name in sorted(settings.tables.keys() - sections):
        close = difflib.get_close_matches(name, sorted(sections), n=1)
        yield (
            f"tables.{name} applies to no table: the pipeline has written none of this name, and "
            f"no row of the sample goes to one{f'; did you mean {close[0]}?' if close else ''}"
        )
    for source_table, target in sorted(settings.routing.table_mapping.items()):
        if f"{settings.database}.{target}" not in tables:
            yield (
                f"routing.table-mapping.{source_table} applies to no table: no row of the sample "
                f"goes to {target}, and the pipeline has not written it"
            )


def source_warnings(
    settings: PipelineSettings, clusters: Mapping[str, TopicCluster], *, is_first: bool
) -> Iterator[str]:
    """Yield warnings about topics that do not exist, and about consumer groups.

    A group is reported if it has offsets although `is_first`, because the warehouse may have been
    moved, or if its offsets cannot be read. `is_first` is whether the warehouse has no progress of
    the pipeline, and `clusters` maps sources to their brokers. Raises SourceError if brokers do not
    respond to other requests.
    """
    for name, cluster in clusters.items():
        source = settings.sources[name].kafka
        partitions = cluster.list_topic_partitions()
        if not partitions and source.topic_pattern is not None:
            yield from _unmatched(source, cluster.existing_topics())
        if missing := sorted(set(source.topics) - partitions.keys()):
            yield _missing(source, missing, cluster.existing_topics())
        if partitions and is_first and source.startup_mode != "group-offsets":
            yield from _other_warehouse(settings, source, cluster, partitions)


def _missing(source: KafkaSource, missing: Sequence[str], existing: AbstractSet[str]) -> str:
    close = difflib.get_close_matches(missing[0], sorted(existing - set(source.topics)), n=1)
    return (
        f"source {source.name}: no topic {', '.join(missing)} at {source.bootstrap}; it is read "
        f"from its beginning once it exists{f', or did you mean {close[0]}?' if close else ''}"
    )


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
