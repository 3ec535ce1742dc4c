"""The parts of the configuration that speak of tables: defaults, and single tables."""

from collections.abc import Mapping

from pydantic import Field

from ingestd.config.changes_section import ChangesSection, OwnChangesSection
from ingestd.config.section import Section
from ingestd.config.values import (
    Expressions,
    Keys,
    Metadata,
    Names,
    OptionalNames,
    Texts,
    TypeText,
)
from ingestd.ingest.computed.columns import parse_computed
from ingestd.ingest.computed.functions import FUNCTIONS
from ingestd.ingest.computed.metadata_columns import METADATA_TYPES
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import (
    MAX_COLUMNS,
    EvolutionMode,
    EvolutionPolicy,
    OnDrop,
    OnRename,
    RefusedChange,
)
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.settings.truncate_policy import TruncatePolicy


class FollowSection(Section):
    """How far the schemas of tables follow their sources."""

    evolution: EvolutionMode = Field(
        default="evolve",
        description="Which changes of a schema there may be: new columns and wider types, new "
        "columns only, or none.",
    )
    on_refused_change: RefusedChange = Field(
        default="dead-letter",
        description="What happens to values that no schema there may be has a place for: "
        "`dead-letter` puts their records aside, and as well as that `ignore` leaves out new "
        "columns, `string` makes text of a column that no type fits, `new-column` gives it a "
        "neighbour, such as `total_string`; `fail` stops the pipeline.",
    )
    on_rename: OnRename = Field(
        default="add",
        description="What happens when a statement of the source (Debezium's schema change topic, "
        "Canal, Maxwell: MySQL and MariaDB), an alias in an Avro schema, or the number of a "
        "Protobuf field gives a column another name: `add` makes a new column of it, `rename` "
        "renames the table's.",
    )
    on_drop: OnDrop = Field(
        default="keep",
        description="What happens when a statement of the source drops a column: `keep` leaves it, "
        "null from then on, `drop` drops the table's, with what it holds.",
    )
    max_columns: int = Field(
        default=MAX_COLUMNS,
        ge=1,
        description="Most columns that a table gets, those that are computed among them; a column "
        "beyond is a change that may not be, and treated as `on-refused-change` says. A table that "
        "has more keeps them.",
    )


class SchemaSection(Section):
    """What is known of a table's columns beyond what messages say."""

    evolution: EvolutionMode | None = Field(default=None, description="As in `defaults`.")
    on_refused_change: RefusedChange | None = Field(default=None, description="As in `defaults`.")
    on_rename: OnRename | None = Field(default=None, description="As in `defaults`.")
    on_drop: OnDrop | None = Field(default=None, description="As in `defaults`.")
    max_columns: int | None = Field(default=None, ge=1, description="As in `defaults`.")
    column_types: Mapping[str, TypeText] = Field(
        default={},
        description="Column to Paimon type, such as `DECIMAL(12, 2)`; for what messages without "
        "the schema envelope cannot tell.",
    )
    aliases: Texts = Field(
        default={},
        description="New name of a column to its old one: the table's column is renamed, and "
        "values under either name go into it.",
    )
    drop: Names = Field(
        default=(), description="Columns that are gone: they are dropped, and not taken any more."
    )


class SelectSection(Section):
    """Which columns of the source a table has."""

    include: OptionalNames = Field(default=None, description="Those to take; without it all.")
    exclude: Names = Field(default=(), description="Those to leave out.")


class DefaultsSection(ChangesSection):
    """What holds for every table that does not say otherwise."""

    options: Texts = Field(default={}, description="Paimon table options, verbatim.")
    primary_keys: Keys = Field(
        default=None,
        description="`from-key` (columns of the message key), `none` (an append table), or a list "
        "of columns.",
    )
    partition_keys: Names = Field(default=(), description="Columns that partition the table.")
    computed_columns: Expressions = Field(
        default={},
        description="Column to what it is computed by: one of Paimon's functions "
        f"{', '.join(f'`{name}`' for name in FUNCTIONS)} of another column; or a SQL expression, "
        "which anything else is, and what begins with `=`, or stands as `{expression: SQL}`. "
        "It may be a key.",
    )
    metadata_columns: Metadata = Field(
        default=(),
        description="Columns of where a record is from: "
        f"{', '.join(f'`{name}`' for name in METADATA_TYPES)}.",
    )
    metadata_column_prefix: str = Field(
        default="", description="Put before the names of metadata columns."
    )
    schema_: FollowSection = Field(
        default_factory=FollowSection, alias="schema", description="How far schemas follow."
    )


class TableSection(OwnChangesSection):
    """One target table, named by its key."""

    options: Texts = Field(
        default={}, description="Paimon table options, over those of `defaults`."
    )
    primary_keys: Keys = Field(default=None, description="As in `defaults`.")
    partition_keys: Names = Field(default=(), description="As in `defaults`.")
    computed_columns: Expressions = Field(
        default={}, description="As in `defaults`, and beside the columns there."
    )
    metadata_columns: Metadata = Field(default=None, description="As in `defaults`.")
    metadata_column_prefix: str | None = Field(default=None, description="As in `defaults`.")
    select: SelectSection = Field(
        default_factory=SelectSection, description="Which columns of the source there are."
    )
    schema_: SchemaSection = Field(
        default_factory=SchemaSection, alias="schema", description="What is known of the columns."
    )


def settings_of(section: DefaultsSection | TableSection) -> TableSettings:
    """What a section says of one table, or of all of them."""
    follow = section.schema_
    own = follow if isinstance(follow, SchemaSection) else SchemaSection()
    select = section.select if isinstance(section, TableSection) else SelectSection()
    return TableSettings(
        primary_keys=section.primary_keys,
        partition_keys=section.partition_keys,
        options=dict(section.options),
        column_types=dict(own.column_types),
        shape=ShapeSettings(
            computed=tuple(parse_computed(*one) for one in section.computed_columns.items()),
            metadata=section.metadata_columns,
            metadata_prefix=section.metadata_column_prefix,
            include=select.include,
            exclude=select.exclude,
        ),
        evolution=EvolutionPolicy(
            mode=follow.evolution,
            on_refused=follow.on_refused_change,
            aliases=dict(own.aliases),
            drop=own.drop,
            on_rename=follow.on_rename,
            on_drop=follow.on_drop,
            max_columns=follow.max_columns,
        ),
        truncates=TruncatePolicy(section.on_truncate, section.on_refused_truncate),
        append_changes=section.append_changes,
        ordering=section.ordering,
    )
