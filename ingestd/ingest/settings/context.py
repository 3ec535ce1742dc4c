"""The batch context that the driver sends to tasks, and its settings, as small picklable values.

The driver creates a `BatchContext` from the state of the tables and sends it to every task of the
batch. This module does no I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ingestd.cdc.base import FormatSettings, SourceTable, describe_format
from ingestd.cdc.event_time import EventTime
from ingestd.ingest.computed.metadata_columns import SOURCE_POSITION
from ingestd.ingest.settings.error_policy import ErrorPolicy
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.ordering import SEQUENCE_FIELD, Ordering
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.settings.routing_rules import RouteRule, TableLimits
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.settings.truncate_policy import TruncatePolicy
from ingestd.ingest.settings.watermark_rules import WatermarkRules
from ingestd.ingest.values.source_points import NO_POINT, SourcePoint, last_truncate
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.changelog_checks import INPUT, writes_input
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.merge_rules import uses_deleted_values
from ingestd.paimon.spec.paths import BRANCH_MARK
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries

CoveredOffsets = Mapping[str, Mapping[str, Mapping[int, int]]]
"""Covered offsets: source -> topic -> partition -> first offset that the table does not cover."""
KeylessTableMode = Literal["reject", "latest-only", "audit"]
"""How a table without a key handles updates and deletes.

"reject" rejects them. "latest-only" drops deletes and before images, and appends all other rows as
inserts. "audit" appends all row images.
"""

KIND_COLUMN = "row_kind"
"""Column of an audit table with the row kind `+I`, `-U`, `+U` or `-D`, as in Paimon's audit log."""
TEMPORARY_TABLES = r"_.*_(gho|ghc|del|new|old)"
"""Names that gh-ost and pt-online-schema-change give to their working copies of tables."""
SIGNAL_TABLES = r"(dbz|debezium)[._]signals?([._].*)?"
"""Names of Debezium's signaling tables."""


class QualifiedSourceTable(NamedTuple):
    """A table of a source database, and the configured source that reads it."""

    source: str
    database: str | None
    schema: str | None
    table: str

    @property
    def unqualified(self) -> SourceTable:
        """The source table, without the name of the configured source."""
        return SourceTable(self.database, self.schema, self.table)

    def __str__(self) -> str:
        return f"{self.source}:{self.unqualified}"


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """The configuration of routing: which source tables are included, and the target names.

    Patterns are regular expressions that must match the whole of `table`, `schema.table` or
    `database.schema.table`; exclusion takes precedence. `table_mapping` maps one of these forms
    (the longest takes precedence) to a target name, which gets neither prefix nor suffix. Two
    source tables may share a target only by `table_mapping` or with `merge_shards`, here or in a
    rule. `unmatched` sets what happens to rows of source tables that are not included or are
    excluded: "skip" only counts them, "fail" stops the pipeline, "dead-letter" makes dead letters
    of them unless the table is excluded by name. Databases are included and excluded by their own
    patterns; a prefix or suffix for a database replaces the general one. The first matching rule of
    `rules` takes precedence over all other naming. `limits` bound the number of tables. If the
    catalog is not `case_sensitive`, target names with capital letters are invalid. `only_target`,
    an identifier "database.table", excludes all source tables with another target, to examine one
    table. `limits` and `only_target` do not change where a row is routed, so `repr` omits them.
    """

    table_prefix: str = ""
    table_suffix: str = ""
    table_prefix_db: Mapping[str, str] = field(default_factory=dict)
    table_suffix_db: Mapping[str, str] = field(default_factory=dict)
    table_mapping: Mapping[str, str] = field(default_factory=dict)
    including_tables: str = ".*"
    excluding_tables: str = f"{TEMPORARY_TABLES}|{SIGNAL_TABLES}"
    including_dbs: str = ".*"
    excluding_dbs: str = ""
    merge_shards: bool = False
    unmatched: Literal["skip", "fail", "dead-letter"] = "skip"
    rules: tuple[RouteRule, ...] = ()
    only_target: str | None = field(default=None, repr=False)
    limits: TableLimits = field(default_factory=TableLimits, repr=False)
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The configuration of one target table, or the defaults for all target tables.

    If `primary_keys` is None, the columns of the message key are the primary key; an empty tuple
    creates an append table. `column_types` fixes the types of columns; other columns have the type
    of the source. `shape` adds and removes columns, and `evolution` sets which schema changes of
    the source are applied. `truncates` sets whether truncates of the source are applied, and
    `keyless_table_mode` how a table without a key handles updates and deletes. `ordering` sets
    which of two rows with the same key is newer, and `watermark` how watermarks are derived.
    """

    primary_keys: tuple[str, ...] | None = None
    partition_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    column_types: Mapping[str, DataType] = field(default_factory=dict)
    shape: ShapeSettings = field(default_factory=ShapeSettings)
    evolution: EvolutionPolicy = field(default_factory=EvolutionPolicy)
    truncates: TruncatePolicy = field(default_factory=TruncatePolicy)
    keyless_table_mode: KeylessTableMode | None = None
    ordering: Ordering | None = None
    watermark: WatermarkRules | None = None

    @property
    def position_column(self) -> str:
        """The name that the source position column has or would have, with the metadata prefix."""
        return f"{self.shape.metadata_prefix or ''}{SOURCE_POSITION}"

    @property
    def is_ordered_by_position(self) -> bool:
        """Whether rows with the same key are ordered by source position."""
        return self.ordering == "source-position"

    def ordered(self) -> "TableSettings":
        """Return these settings, with the metadata column and option that `ordering` requires."""
        if not self.is_ordered_by_position:
            return self
        others = (name for name in self.shape.metadata or () if name != SOURCE_POSITION)
        shape = replace(self.shape, metadata=(*others, SOURCE_POSITION))
        options = {**self.options, SEQUENCE_FIELD: self.position_column}
        return replace(self, shape=shape, options=options)

    def over(self, defaults: "TableSettings") -> "TableSettings":
        """Return these settings, with unset fields taken from `defaults`.

        Options and column types are merged; these settings take precedence.
        """
        keys = defaults.primary_keys if self.primary_keys is None else self.primary_keys
        return replace(
            self,
            primary_keys=keys,
            partition_keys=self.partition_keys or defaults.partition_keys,
            options={**defaults.options, **self.options},
            column_types={**defaults.column_types, **self.column_types},
            shape=self.shape.over(defaults.shape),
            evolution=self.evolution.over(defaults.evolution),
            truncates=self.truncates.over(defaults.truncates),
            keyless_table_mode=self.keyless_table_mode or defaults.keyless_table_mode,
            ordering=self.ordering or defaults.ordering,
            watermark=self.watermark or defaults.watermark,
        )


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One source: its Kafka settings, and the data format of its messages.

    `header_columns` is whether a table has a metadata column with the headers or the timestamp type
    of records. `event_time` is the field of messages with the time of a change, or None if messages
    of the format have none. Raises ConfigError if the data format is unknown.
    """

    kafka: KafkaSource
    data_format: str
    format_settings: FormatSettings = field(default_factory=FormatSettings)
    header_columns: bool = False
    event_time: EventTime | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_time", describe_format(self.data_format).event_time)

    @property
    def needs_headers(self) -> bool:
        """Whether records must be fetched with their headers and timestamp types."""
        return self.header_columns or self.format_settings.framing.needs_headers


@dataclass(frozen=True, slots=True)
class TruncatePoint:
    """A truncate of a table in a batch, and which rows of the batch precede the truncate.

    A row precedes the truncate if its offset is before `until`, the offsets after the record of the
    truncate, or if it has a source position that is not after `point` (None: only `until` decides).
    If the truncate also removed rows that are newer, their records are read again, from the offsets
    `covered` on (None: no record is read again).
    """

    point: SourcePoint | None
    until: CoveredOffsets
    covered: CoveredOffsets | None = None


@dataclass(frozen=True, slots=True)
class TableContext:
    """The state of one table at the start of the batch.

    `sequence_base` is the first sequence number of the batch (the largest existing sequence number
    + 1). `index_entries` are the entries of the index files of its newest snapshot, and `assigners`
    is the fixed number of bucket assigners of a dynamic-bucket table. `covered` are the offsets
    that the table already covers. A row precedes a truncate of the table, and is dropped, if its
    source position is not after `truncate_before` (None: no truncate), or if its offset is before
    the one in `truncates`, which are the offsets after the truncates of this batch. `source_tables`
    are the source tables of its rows, and `reached` is the latest position in the source of its
    rows, with the time of the record. Old values are looked up in the snapshot `snapshot_id`, which
    is None for an empty table.
    """

    identifier: str
    table: FileStoreTable
    index_entries: IndexEntries = field(default_factory=IndexEntries)
    sequence_base: int = 0
    assigners: int = 1
    covered: CoveredOffsets = field(default_factory=dict)
    truncate_before: SourcePoint | None = None
    truncates: CoveredOffsets = field(default_factory=dict)
    source_tables: frozenset[QualifiedSourceTable] = frozenset()
    reached: SourcePoint = NO_POINT
    snapshot_id: int | None = None

    def truncated(self, truncate: TruncatePoint) -> "TableContext":
        """Return the context of the table for a batch in which it is truncated.

        Rows that precede the truncate, as defined by `TruncatePoint`, are dropped, and no old
        values or index entries are used. `covered` becomes `truncate.covered`, unless this is None.
        """
        return replace(
            self,
            truncate_before=last_truncate(self.truncate_before, truncate.point),
            truncates=truncate.until,
            covered=self.covered if truncate.covered is None else truncate.covered,
            index_entries=IndexEntries(),
            snapshot_id=None,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickling the state of a frozen dataclass with slots takes ten times as long.
        return TableContext, tuple(getattr(self, name) for name in TableContext.__slots__)

    def covered_until(self, source: str, topic: str, partition: int) -> int:
        """Return the first offset of a topic partition that is not covered; 0 if it is new."""
        return self.covered.get(source, {}).get(topic, {}).get(partition, 0)

    def truncated_until(self, source: str, topic: str, partition: int) -> int:
        """Return the first offset of a topic partition after the truncates of this batch, or 0.

        The result is 0 if the batch has no truncate in this topic partition.
        """
        return self.truncates.get(source, {}).get(topic, {}).get(partition, 0)


def marked_pipelines(table: FileStoreTable) -> frozenset[str]:
    """Return the pipelines that write to a table, according to the table option."""
    value = honoured.PIPELINES.of(table.schema.options) or ""
    return frozenset(name for name in value.split(",") if name)


def other_pipelines(table: FileStoreTable, own: Iterable[str]) -> list[str]:
    """Return the sorted pipelines that write to a table, except `own`, the names of one."""
    return sorted(marked_pipelines(table).difference(own))


def commit_user(pipeline: str) -> str:
    """Return the commit user of a pipeline, the same in all tables and after restarts."""
    return f"ingestd-{pipeline}"


def section_of(identifier: str) -> str:
    """Return the name under which a table, "database.table", is configured: "table".

    A branch is configured under the name of its table.
    """
    return identifier.partition(".")[2].partition(BRANCH_MARK)[0]


@dataclass(frozen=True, slots=True)
class BatchContext:
    """The values that the driver sends to all tasks of one batch.

    `tables` maps identifiers "database.table" to tables. `others` are existing tables without rows
    of the topics of the batch so far; any further target table is created by the batch. `settings`
    maps names of target tables (without database) to their settings, with `defaults` for unset
    fields. `slots` is the number of tasks of the write stage. `dead_letters` is the identifier of
    the dead-letter table, which must be in `tables`. A chunk of records is limited to
    `max_chunk_records` and `max_chunk_bytes`, and a record larger than `max_record_bytes` is
    rejected. `write_buffer_size` is the maximum size in bytes of the rows of a table that a write
    task processes at a time, and `index_cache_bytes` the maximum size of the indexes that a worker
    caches for later tasks. `error_policy` sets how rejected records are handled; if
    `dead_letter_topic` is set, dead letters are written to this topic instead of the table.
    `refused_truncates` maps each truncate that is not applied, as (source, topic, partition,
    offset), to the reason, and `refused_tables` each table that is not created. If several source
    tables claim a target in this batch, `owners` maps the target to those that may be written to
    it. `formerly` are former names of the pipeline.
    """

    pipeline: str
    database: str
    tables: Mapping[str, TableContext]
    routing: RoutingConfig
    sources: Mapping[str, SourceSettings]
    dead_letters: str
    slots: int = 1
    others: frozenset[str] = frozenset()
    defaults: TableSettings = field(default_factory=TableSettings)
    settings: Mapping[str, TableSettings] = field(default_factory=dict)
    max_chunk_records: int = 50_000
    max_chunk_bytes: int = 32 << 20
    max_record_bytes: int = 16 << 20
    write_buffer_size: int = 64 << 20
    index_cache_bytes: int = 64 << 20
    dead_letter_topic: str | None = None
    error_policy: ErrorPolicy = field(default_factory=ErrorPolicy)
    refused_truncates: Mapping[tuple[str, str, int, int], str] = field(default_factory=dict)
    refused_tables: Mapping[str, SourceRejection] = field(default_factory=dict)
    formerly: tuple[str, ...] = ()
    owners: Mapping[str, frozenset[QualifiedSourceTable]] = field(default_factory=dict)

    @property
    def commit_user(self) -> str:
        """The commit user of the pipeline, which is part of some file names."""
        return commit_user(self.pipeline)

    @property
    def pipelines(self) -> tuple[str, ...]:
        """The current name of the pipeline, followed by its former names."""
        return (self.pipeline, *self.formerly)

    def owners_of(self, table: str) -> frozenset[QualifiedSourceTable]:
        """Return the source tables of the rows in a target table.

        If several source tables claim the target in this batch, returns the source tables that may
        be written to it. The result is empty if the target has no rows and no claim was decided.
        """
        target = self.tables.get(table)
        return self.owners.get(table, target.source_tables if target else frozenset())

    def covered_by_all(self, table: str | None, source: str, topic: str, partition: int) -> int:
        """Return the offset before which rejected records of a table have dead letters already.

        Records from this offset on are not covered by the dead-letter table or by `table`: they
        were never read, or one of these tables was rolled back after they were written. If `table`
        is None, the target of the records is unknown: every table of the batch counts. A table that
        is not in the batch covers all that the dead-letter table covers.
        """
        names = self.tables if table is None else {self.dead_letters, table} & self.tables.keys()
        return min(self.tables[name].covered_until(source, topic, partition) for name in names)

    def announces_input_changelog(self) -> bool:
        """Return whether the configuration sets the changelog producer `input` for any table."""
        return any(
            honoured.CHANGELOG_PRODUCER.of(settings.options) == INPUT
            for settings in self._all_settings()
        )

    def needs_before_images(self) -> bool:
        """Return whether a table of the batch, or one that it may create, may need before images.

        A table needs them for the changelog producer `input`, if it has no key and stores every
        change ("audit"), or if its merge engine uses the values of deleted rows. Tables whose key
        has other columns than the message key need them, too, which is known only when messages
        are decoded.
        """
        if self.announces_input_changelog():
            return True
        for settings in self._all_settings():
            if settings.keyless_table_mode == "audit" or uses_deleted_values(settings.options):
                return True
        schemas = [table.table.schema for table in self.tables.values()]
        return any(writes_input(one) or uses_deleted_values(one.options) for one in schemas)

    def follows_renames(self) -> bool:
        """Return whether the settings of any table apply column renames of its source."""
        return any(settings.evolution.on_rename == "rename" for settings in self._all_settings())

    def filters_rows(self) -> bool:
        """Return whether the settings of any table have a row filter."""
        return any(settings.shape.where is not None for settings in self._all_settings())

    def event_time_columns(self) -> dict[str, str]:
        """Return the columns from which watermarks are derived, by identifier of the table.

        Tables of the batch whose watermark is not derived from a column are left out.
        """
        rules = [settings.watermark for settings in self._all_settings()]
        if not any(rule and rule.column for rule in rules):
            return {}
        by_table = {name: self.settings_of(name).watermark for name in self.tables}
        return {name: rule.column for name, rule in by_table.items() if rule and rule.column}

    def _all_settings(self) -> tuple[TableSettings, ...]:
        return (self.defaults, *self.settings.values())

    def settings_of(self, identifier: str) -> TableSettings:
        """Return the settings of a target table, "database.table", with defaults for unset fields.

        A branch has those of its table. They include the metadata column and the option that
        `ordering` requires.
        """
        own = self.settings.get(section_of(identifier), TableSettings())
        return own.over(self.defaults).ordered()
