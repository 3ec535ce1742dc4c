"""The parts of the configuration that speak of tables: routing, defaults, and single tables."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from ingestd.config.section import Section
from ingestd.config.values import Keys, Names, Texts, TypeText
from ingestd.ingest.context import RoutingConfig

_ROUTING = RoutingConfig()


class RoutingSection(Section):
    """Which source tables are taken, and the names of their target tables."""

    including_tables: str = Field(
        default=_ROUTING.including_tables,
        description="Regular expression for whole `table`, `schema.table` or "
        "`database.schema.table`; what matches is taken.",
    )
    excluding_tables: str = Field(
        default=_ROUTING.excluding_tables,
        description="The same for what is left out; excluding wins. The default leaves out "
        "working copies of online schema changes and Debezium's signal tables.",
    )
    table_prefix: str = Field(default=_ROUTING.table_prefix, description="Put before every name.")
    table_suffix: str = Field(default=_ROUTING.table_suffix, description="Put after every name.")
    table_mapping: Texts = Field(
        default={},
        description="Source table (one of the three forms) to target name, which gets neither "
        "prefix nor suffix.",
    )
    merge_shards: bool = Field(
        default=_ROUTING.merge_shards,
        description="Whether source tables of one name in several schemas or databases may share "
        "a target.",
    )
    unmatched: Literal["skip", "fail"] = Field(
        default=_ROUTING.unmatched, description="What happens to rows of tables that are left out."
    )


class DefaultsSection(Section):
    """What holds for every table that does not say otherwise."""

    options: Texts = Field(default={}, description="Paimon table options, verbatim.")
    primary_keys: Keys = Field(
        default=None,
        description="`from-key` (columns of the message key), `none` (an append table), or a list "
        "of columns.",
    )
    partition_keys: Names = Field(default=(), description="Columns that partition the table.")


class SchemaSection(Section):
    """What is known of a table's columns beyond what messages say."""

    column_types: Mapping[str, TypeText] = Field(
        default={},
        description="Column to Paimon type, such as `DECIMAL(12, 2)`; for what messages without "
        "the schema envelope cannot tell.",
    )


class TableSection(Section):
    """One target table, named by its key."""

    options: Texts = Field(
        default={}, description="Paimon table options, over those of `defaults`."
    )
    primary_keys: Keys = Field(default=None, description="As in `defaults`.")
    partition_keys: Names = Field(default=(), description="As in `defaults`.")
    schema_: SchemaSection = Field(
        default_factory=SchemaSection, alias="schema", description="What is known of the columns."
    )
