"""What tasks must know of a batch, and the settings it comes from: frozen, picklable, small.

Nothing here does I/O; the driver fills a `BatchContext` from the state of the tables and sends it
to every task of the batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ingestd.cdc.base import FormatSettings, SourceTable
from ingestd.ingest.computed.metadata_columns import SOURCE_POSITION
from ingestd.ingest.settings.error_policy import ErrorPolicy
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.ordering import SEQUENCE_FIELD, Ordering
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.settings.routing_rules import RouteRule, TableLimits
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.settings.truncate_policy import TruncatePolicy
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries

Coverage = Mapping[str, Mapping[str, Mapping[int, int]]]
"""Source -> topic -> partition -> first offset that is not in the table yet."""
KeylessTableMode = Literal["reject", "latest-only", "audit"]
"""What a table without a key takes of updates and deletes: nothing, new rows, or each change."""

TEMPORARY_TABLES = r"_.*_(gho|ghc|del|new|old)"
"""Names that gh-ost and pt-online-schema-change give to their working copies."""
SIGNAL_TABLES = r"(dbz|debezium)[._]signals?([._].*)?"
"""Names of the tables through which operators talk to a Debezium connector."""


class Feed(NamedTuple):
    """A table of a source database, as one configured source delivers it."""

    source: str
    database: str | None
    schema: str | None
    table: str

    @property
    def source_table(self) -> SourceTable:
        """The same without the name of the source."""
        return SourceTable(self.database, self.schema, self.table)

    def __str__(self) -> str:
        parts = (self.database, self.schema, self.table)
        return f"{self.source}:{'.'.join(part for part in parts if part)}"


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """Which source tables are taken, and what their target tables are called.

    Patterns are regular expressions that must match the whole of `table`, `schema.table` or
    `database.schema.table`; excluding wins. `table_mapping` maps one of these forms (the longest
    one given counts) to a target name, which gets neither prefix nor suffix. Two source tables
    may share a target only by `table_mapping` or with `merge_shards`. `unmatched` says what
    happens to rows of tables that are left out: they are counted, or the pipeline stops, or those
    that are not excluded by name become dead letters.
    Databases have patterns of their own, and prefixes and suffixes by database that take the place
    of the general ones. The first of the `rules` that matches a table which is taken comes before
    all naming. `limits` bound the count of tables; names have no capitals unless the catalog is
    `case_sensitive`. `only_target` leaves out all tables that go to another target, for who looks
    at one table. Limits and `only_target` are no part of how rows are routed, so they are not in
    the text of a routing.
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
    """What the configuration says of one target table, or of all of them.

    `primary_keys` None takes the columns of the message key, an empty tuple makes an append
    table. `column_types` fixes the types of columns; other columns take what the source says.
    `shape` says which columns there are beside the source's, `evolution` how far the schema may
    follow it, `truncates` whether the table is emptied when its source was,
    `keyless_table_mode` what a table without a key makes of updates and deletes, `ordering` which
    of two rows of a key is newer.
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

    @property
    def position_column(self) -> str:
        """The name of the column with source positions, where the table has it."""
        return f"{self.shape.metadata_prefix or ''}{SOURCE_POSITION}"

    @property
    def by_position(self) -> bool:
        """Whether the rows of a key are ordered by their source position."""
        return self.ordering == "source-position"

    def ordered(self) -> "TableSettings":
        """These settings with the column and the option that their ordering needs."""
        if not self.by_position:
            return self
        others = (name for name in self.shape.metadata or () if name != SOURCE_POSITION)
        shape = replace(self.shape, metadata=(*others, SOURCE_POSITION))
        options = {**self.options, SEQUENCE_FIELD: self.position_column}
        return replace(self, shape=shape, options=options)

    @property
    def computed_key(self) -> tuple[str, ...]:
        """Columns of the configured primary key that are computed from others."""
        made = {one.name for one in self.shape.computed if one.sources}
        return tuple(name for name in self.primary_keys or () if name in made)

    def over(self, defaults: "TableSettings") -> "TableSettings":
        """These settings, with the defaults where they are silent."""
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
        )


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One source: where it is read from, and the data format of its messages."""

    kafka: KafkaSource
    data_format: str
    format_settings: FormatSettings = field(default_factory=FormatSettings)


@dataclass(frozen=True, slots=True)
class Emptying:
    """How a batch empties a table: which rows that it reads are older than the truncate.

    Those with a source position up to `position` (None: positions do not tell), and those before
    the offsets `covered` (None: the table's own). What lies after these is read again.
    """

    position: int | None = None
    covered: Coverage | None = None


@dataclass(frozen=True, slots=True)
class TableContext:
    """State of one table as of the batch's start.

    `sequence_base` is the first sequence number the batch may give (largest live one + 1);
    `assigners` the fixed number of bucket assigners of a dynamic-bucket table; `covered` the
    offsets that are in the table already; rows with a source position up to `truncate_before`
    are older than the table's last truncate; `feeds` the source tables that its rows came from;
    `position_reached` the largest source position in the table; `snapshot_id` the snapshot in
    which old values are looked up, None for an empty table.
    """

    identifier: str
    table: FileStoreTable
    index_entries: IndexEntries = field(default_factory=IndexEntries)
    sequence_base: int = 0
    assigners: int = 1
    covered: Coverage = field(default_factory=dict)
    truncate_before: int | None = None
    feeds: frozenset[Feed] = frozenset()
    position_reached: int = -1
    snapshot_id: int | None = None

    def truncated(self, emptying: Emptying) -> "TableContext":
        """The context for the batch that empties the table."""
        position, covered = emptying.position, emptying.covered
        return replace(
            self,
            truncate_before=self.truncate_before if position is None else position,
            covered=self.covered if covered is None else covered,
            index_entries=IndexEntries(),
            snapshot_id=None,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # The state of a frozen dataclass with slots pickles in ten times the time.
        return TableContext, tuple(getattr(self, name) for name in TableContext.__slots__)

    def covered_until(self, source: str, topic: str, partition: int) -> int:
        """First offset of the topic partition that the table does not hold; 0 if never seen."""
        return self.covered.get(source, {}).get(topic, {}).get(partition, 0)


def commit_user(pipeline: str) -> str:
    """The commit user of a pipeline in every table it writes; stable over restarts."""
    return f"ingestd-{pipeline}"


@dataclass(frozen=True, slots=True)
class BatchContext:
    """All that the tasks of one batch share.

    `tables` by identifier "database.table"; one that is routed to but absent here has yet to be
    created, or is one of `others`: tables that exist, which nothing of the batch's topics has
    reached before. `settings` are by target table name (without database) and complete themselves
    with `defaults`. `slots` is the number of tasks of the write stage. `dead_letters` is the
    identifier of the table of rejected records, which must be among `tables`.
    `write_buffer_size` bounds the rows of one table that a write task works on at a time,
    `index_cache_bytes` the hash indexes that a worker keeps for later tasks. Rejected records go to
    `dead_letter_topic` instead of the table if there is one, or are treated otherwise by the
    `error_policy`. `refused_truncates` are records by (source, topic, partition, offset) that
    empty no table, and why; `refused_tables` those that are not created, and why; `owners` by
    target are the source tables that may bring it rows, where several claimed it in this batch.
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
    owners: Mapping[str, frozenset[Feed]] = field(default_factory=dict)

    @property
    def commit_user(self) -> str:
        """The commit user of the pipeline, which is part of some file names."""
        return commit_user(self.pipeline)

    def owners_of(self, table: str) -> frozenset[Feed]:
        """The source tables that a target has rows of, or is to have in this batch; maybe none."""
        target = self.tables.get(table)
        return self.owners.get(table, target.feeds if target else frozenset())

    def computes_keys(self) -> bool:
        """Whether the key of some table is computed from other columns."""
        found = (self.defaults, *self.settings.values())
        if not any(one.shape.computed for one in found):
            return False
        return any(one.over(self.defaults).computed_key for one in found)

    def follows_renames(self) -> bool:
        """Whether some table follows its source where columns get other names."""
        found = (self.defaults, *self.settings.values())
        return any(one.evolution.on_rename == "rename" for one in found)

    def settings_of(self, identifier: str) -> TableSettings:
        """Settings of a target table, defaults included."""
        name = identifier.partition(".")[2]
        return self.settings.get(name, TableSettings()).over(self.defaults).ordered()
