"""The sections `defaults`, for all tables, and `tables.NAME`, for one table.

`TableSection` inherits every key of `DefaultsSection`, so each is declared once; a key that a table
leaves out has the value of `defaults`.
"""

from collections.abc import Mapping
from typing import Self, TypeVar

from pydantic import Field, model_validator

from ingestd.config.section import Section
from ingestd.config.values import (
    Condition,
    Duration,
    Expressions,
    Keys,
    Metadata,
    Names,
    OptionalNames,
    Texts,
    TypeText,
)
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.computed.functions import FUNCTIONS
from ingestd.ingest.computed.metadata_columns import METADATA_TYPES
from ingestd.ingest.computed.row_filter import parse_filter
from ingestd.ingest.settings.context import KeylessTableMode, TableSettings
from ingestd.ingest.settings.evolution_policy import (
    MAX_COLUMNS,
    EvolutionMode,
    EvolutionPolicy,
    IncompatibleSchema,
    OnComment,
    OnDrop,
    OnRename,
)
from ingestd.ingest.settings.ordering import Ordering
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.settings.soft_deletes import DELETED_AT, OnDelete
from ingestd.ingest.settings.truncate_policy import AmbiguousTruncate, OnTruncate, TruncatePolicy
from ingestd.ingest.settings.watermark_rules import EventTime, WatermarkRules

Value = TypeVar("Value")


class SchemaSection(Section):
    """Settings for schema changes of the sources: which of them are applied to tables."""

    evolution: EvolutionMode = Field(
        default="evolve",
        description="Which schema changes are applied: `evolve` adds columns and widens types "
        "(integers, decimals, booleans and dates to text, if the source sends text), "
        "`add-columns` only adds columns, `none` applies none.",
    )
    on_incompatible_schema: IncompatibleSchema = Field(
        default="dead-letter",
        description="What happens to values that fit no column of the table and none that may be "
        "added: `dead-letter` makes dead letters of their records. `ignore` leaves new columns "
        "out, `string` changes the type of a column to text, `new-column` writes the values to a "
        "second column, such as `total_string`; what these cannot handle becomes a dead letter. "
        "`fail` stops the pipeline.",
    )
    on_rename: OnRename = Field(
        default="add",
        description="What happens when a DDL statement of the source (Debezium's schema change "
        "topic, Canal, Maxwell: MySQL and MariaDB), an alias in an Avro schema, or the number of a "
        "Protobuf field renames a column: `add` adds a column of the new name, `rename` renames "
        "the table's column.",
    )
    on_drop: OnDrop = Field(
        default="keep",
        description="What happens when a DDL statement of the source drops a column: `keep` keeps "
        "the table's column, null in new rows; `drop` drops it with its values.",
    )
    on_comment: OnComment = Field(
        default="apply",
        description="What happens with comments of the source's tables and columns, in schemas of "
        "messages (Connect, Avro, Protobuf) and in Debezium's schema change topic: `apply` makes "
        "them those of the table, `ignore` leaves them out.",
    )
    max_columns: int = Field(
        default=MAX_COLUMNS,
        ge=1,
        description="Maximum number of columns of a table, including computed columns. "
        "`on-incompatible-schema` applies to a column beyond the limit. A table that has more "
        "columns keeps them.",
    )


class TableSchemaSection(SchemaSection):
    """Settings for the schema of one table: changes to apply, and column types and names."""

    column_types: Mapping[str, TypeText] = Field(
        default={},
        description="Column to Paimon type, such as `DECIMAL(12, 2)`, where messages without a "
        "schema do not give the type.",
    )
    aliases: Texts = Field(
        default={},
        description="New name of a column to its old one: the table's column is renamed, and takes "
        "values under either name.",
    )
    drop: Names = Field(
        default=(), description="Columns to drop; values that still arrive for them are ignored."
    )


class SelectSection(Section):
    """A selection of the source columns that a table contains."""

    include: OptionalNames = Field(
        default=None, description="Columns to take; all of them if not given."
    )
    exclude: Names = Field(default=(), description="Columns to leave out.")


class WatermarkSection(Section):
    """Settings for the watermark that the snapshots of a table get."""

    event_time: EventTime = Field(
        default="none",
        description="The time of a row: `source`, when it changed in its source (else the "
        "timestamp of its record), or `column`, the value of `column`. `none`: snapshots get no "
        "watermark. The section of a table replaces that of `defaults`.",
    )
    column: str | None = Field(
        default=None,
        min_length=1,
        description="Column of the table with the time, a TIMESTAMP, with `event-time: column`. It "
        "may be a computed or metadata column.",
    )
    delay: Duration = Field(
        default=0.0,
        description="How much later than the newest row of its topic partition a row may be.",
    )
    idle_timeout: Duration = Field(
        default=60.0,
        gt=0,
        description="Time after which a topic partition without new records no longer holds the "
        "watermark back.",
    )

    @model_validator(mode="after")
    def _has_column(self) -> Self:
        if (self.event_time == "column") != (self.column is not None):
            raise ValueError(
                "event-time 'column' and the key column are given together, or neither is"
            )
        return self

    @property
    def rules(self) -> WatermarkRules:
        """Convert the section to the rules by which watermarks are derived."""
        return WatermarkRules(
            self.event_time, self.column, round(self.delay * 1000), self.idle_timeout
        )


class DefaultsSection(Section):
    """The section `defaults`: settings that all tables have unless they override them."""

    on_truncate: OnTruncate = Field(
        default="apply",
        description="What happens when the source truncates a table: `apply` truncates the target "
        "too, `ignore` keeps its rows.",
    )
    on_ambiguous_truncate: AmbiguousTruncate = Field(
        default="dead-letter",
        description="What happens to a truncate if it cannot be determined which rows came before "
        "it: `dead-letter` makes a dead letter of it, `ignore` leaves it out, `fail` stops the "
        "pipeline.",
    )
    on_delete: OnDelete = Field(
        default="delete",
        description="How deletes of the source are applied to a table with a primary key: `delete` "
        "deletes the row, `keep` keeps it with its last values and the time of the delete in the "
        "column `deleted-at`. A later insert or update of the key removes the time.",
    )
    deleted_at: str = Field(
        default=DELETED_AT,
        min_length=1,
        description="Name of the column with the time of deletes, TIMESTAMP_LTZ(3), with "
        "`on-delete: keep`.",
    )
    keyless_table_mode: KeylessTableMode = Field(
        default="reject",
        description="How updates and deletes are written to a table without a primary key: "
        "`reject` makes dead letters of them, `latest-only` appends the row after each change and "
        "leaves deletes out, `audit` appends every change with its kind (+I, -U, +U, -D) in the "
        "column `row_kind` (Paimon reserves the name `rowkind`).",
    )
    ordering: Ordering = Field(
        default="arrival",
        description="Which of two rows of a key is newer: `arrival`, the one that arrived later in "
        "its topic partition; or `source-position`, the later one in the log of its database, "
        "which is stored in the column `source_position`, the table's `sequence.field`. It cannot "
        "change after the table is created.",
    )
    options: Texts = Field(default={}, description="Paimon table options, verbatim.")
    primary_keys: Keys = Field(
        default=None,
        description="`from-key` (columns of the message key), `none` (an append table), or a list "
        "of columns.",
    )
    partition_keys: Names = Field(default=(), description="Columns that partition the table.")
    computed_columns: Expressions = Field(
        default={},
        description="Column to its computation: one of Paimon's functions "
        f"{', '.join(f'`{name}`' for name in FUNCTIONS)} of another column, or a SQL expression. "
        "Text that is not such a function, that begins with `=`, or that is given as "
        "`{expression: SQL}`, is SQL. A computed column may be a key.",
    )
    metadata_columns: Metadata = Field(
        default=(),
        description="Columns with the origin of a record: "
        f"{', '.join(f'`{name}`' for name in METADATA_TYPES)}, "
        "`headers.NAME`. `headers` is a map of bytes; `headers.NAME` is the last header of this "
        "name as text, in a column NAME.",
    )
    metadata_column_prefix: str = Field(
        default="", description="Prefix of the names of metadata columns."
    )
    watermark: WatermarkSection = Field(
        default_factory=WatermarkSection,
        description="Watermark of the snapshots of a table.",
    )
    schema_: SchemaSection = Field(
        default_factory=SchemaSection, alias="schema", description="Which schema changes to follow."
    )


class TableSection(DefaultsSection):
    """Settings of one table, which override `defaults`.

    `options` and `computed-columns` are merged by name with the entries in `defaults`.
    """

    schema_: TableSchemaSection = Field(
        default_factory=TableSchemaSection, alias="schema", description="The table's columns."
    )
    select: SelectSection = Field(
        default_factory=SelectSection, description="Which columns of the source to take."
    )
    where: Condition = Field(
        default=None,
        description="SQL expression that is true for the rows to keep, such as `status <> "
        "'draft'`, of columns of the source (selected or not), computed and metadata columns. In a "
        "table with a primary key, a change to a row for which it is false or NULL deletes the "
        "row; in other tables it is left out.",
    )


def settings_of(section: DefaultsSection) -> TableSettings:
    """Convert a section to settings; keys that the section of a table omits are None or empty."""
    follow = section.schema_
    of_table = follow if isinstance(follow, TableSchemaSection) else TableSchemaSection()
    select = section.select if isinstance(section, TableSection) else SelectSection()
    where = section.where if isinstance(section, TableSection) else None
    computed = section.computed_columns.items()
    return TableSettings(
        primary_keys=section.primary_keys,
        partition_keys=section.partition_keys,
        options=dict(section.options),
        column_types=dict(of_table.column_types),
        shape=ShapeSettings(
            computed=tuple(parse_computed(name, text) for name, text in computed),
            metadata=_own(section, "metadata_columns", section.metadata_columns),
            metadata_prefix=_own(section, "metadata_column_prefix", section.metadata_column_prefix),
            include=select.include,
            exclude=select.exclude,
            where=None if where is None else parse_filter(where),
            on_delete=_own(section, "on_delete", section.on_delete),
            deleted_at=_own(section, "deleted_at", section.deleted_at),
        ),
        evolution=EvolutionPolicy(
            mode=_own(follow, "evolution", follow.evolution),
            on_refused=_own(follow, "on_incompatible_schema", follow.on_incompatible_schema),
            aliases=dict(of_table.aliases),
            drop=of_table.drop,
            on_rename=_own(follow, "on_rename", follow.on_rename),
            on_drop=_own(follow, "on_drop", follow.on_drop),
            max_columns=_own(follow, "max_columns", follow.max_columns),
            on_comment=_own(follow, "on_comment", follow.on_comment),
        ),
        truncates=TruncatePolicy(
            _own(section, "on_truncate", section.on_truncate),
            _own(section, "on_ambiguous_truncate", section.on_ambiguous_truncate),
        ),
        keyless_table_mode=_own(section, "keyless_table_mode", section.keyless_table_mode),
        ordering=_own(section, "ordering", section.ordering),
        watermark=_own(section, "watermark", section.watermark.rules),
    )


def _own(section: DefaultsSection | SchemaSection, field: str, value: Value) -> Value | None:
    """Return the value of a field, or None if the section of a table does not set the field."""
    of_table = isinstance(section, TableSection | TableSchemaSection)
    return None if of_table and field not in section.model_fields_set else value
