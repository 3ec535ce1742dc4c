"""The section `routing`: which source tables are ingested, and the names of their targets."""

from typing import Annotated, Literal

from pydantic import Field

from ingestd.config.section import Section
from ingestd.config.values import AsList, Names, Texts
from ingestd.ingest.settings.context import RoutingConfig
from ingestd.ingest.settings.routing_rules import RouteRule, TableLimits

_ROUTING = RoutingConfig()


class MatchSection(Section):
    """Regular expressions that must match whole names; a name without a pattern always matches."""

    topic: str | None = Field(default=None, description="Pattern of the topic.")
    database: str | None = Field(default=None, description="Pattern of the database.")
    schema_: str | None = Field(default=None, alias="schema", description="Pattern of the schema.")
    table: str | None = Field(default=None, description="Pattern of the table.")


class RuleSection(Section):
    """One routing rule.

    Its texts may refer to groups of the patterns as `$1` or `${name}`, and to whole names as
    `${topic}`, `${database}`, `${schema}` or `${table}`.
    """

    match: MatchSection = Field(description="Source tables that the rule applies to.")
    to: str | None = Field(
        default=None,
        description="Target name, with references to groups of the patterns; by default the name "
        "that applies without rules.",
    )
    add_columns: Texts = Field(
        default={},
        description="Text columns that identify the sources of a shared target, with their "
        "values: texts with references.",
    )
    key_columns: Names = Field(
        default=(),
        description="Columns of `add-columns` that precede the message key in the primary key.",
    )
    merge_shards: bool = Field(
        default=False, description="Whether source tables may share a target by this rule."
    )


class RoutingSection(Section):
    """The selection of source tables, and the names of their target tables."""

    including_tables: str = Field(
        default=_ROUTING.including_tables,
        description="Regular expression for whole `table`, `schema.table` or "
        "`database.schema.table` names of the tables to ingest.",
    )
    excluding_tables: str = Field(
        default=_ROUTING.excluding_tables,
        description="Regular expression for tables to leave out, which takes precedence. The "
        "default leaves out shadow tables of online schema changes and Debezium's "
        "signal tables.",
    )
    table_prefix: str = Field(
        default=_ROUTING.table_prefix, description="Prefix of all target names."
    )
    table_suffix: str = Field(
        default=_ROUTING.table_suffix, description="Suffix of all target names."
    )
    table_mapping: Texts = Field(
        default={},
        description="Source table (in one of the three forms) to target name, without prefix and "
        "suffix; `NAME$branch_BRANCH` is an existing branch of the table `NAME`.",
    )
    merge_shards: bool = Field(
        default=_ROUTING.merge_shards,
        description="Whether source tables of the same name in several schemas or databases may "
        "share a target.",
    )
    unmatched: Literal["skip", "fail", "dead-letter"] = Field(
        default=_ROUTING.unmatched,
        description="What happens to rows of tables that are not included: `skip` counts them, "
        "`fail` stops the pipeline, `dead-letter` makes dead letters of them. Rows of tables that "
        "are excluded by name are always skipped.",
    )
    including_dbs: str = Field(
        default=_ROUTING.including_dbs,
        description="Regular expression for whole names of the databases to ingest.",
    )
    excluding_dbs: str = Field(
        default=_ROUTING.excluding_dbs,
        description="Regular expression for databases to leave out, which takes precedence.",
    )
    table_prefix_db: Texts = Field(
        default={}, description="Database to a prefix that replaces `table-prefix`."
    )
    table_suffix_db: Texts = Field(
        default={}, description="Database to a suffix that replaces `table-suffix`."
    )
    max_tables: int = Field(
        default=_ROUTING.limits.in_all,
        ge=1,
        description="Maximum number of tables of the pipeline. Records of further tables become "
        "dead letters (`too-many-tables`), or are handled as `errors.route` specifies.",
    )
    max_new_tables_per_day: int = Field(
        default=_ROUTING.limits.per_day,
        ge=1,
        description="Maximum number of tables that the pipeline creates within 24 hours; records "
        "of further tables are handled as for `max-tables`.",
    )
    rules: Annotated[tuple[RuleSection, ...], AsList] = Field(
        default=(),
        description="Rules for ingested tables; the first that matches takes precedence over the "
        "names above. `$1` and `${name}` are groups here, not references to the "
        "environment.",
    )


def routing_of(section: RoutingSection) -> RoutingConfig:
    """Convert the section to the settings of the router, with the default of `case_sensitive`."""
    return RoutingConfig(
        table_prefix=section.table_prefix,
        table_suffix=section.table_suffix,
        table_prefix_db=dict(section.table_prefix_db),
        table_suffix_db=dict(section.table_suffix_db),
        table_mapping=dict(section.table_mapping),
        including_tables=section.including_tables,
        excluding_tables=section.excluding_tables,
        including_dbs=section.including_dbs,
        excluding_dbs=section.excluding_dbs,
        merge_shards=section.merge_shards,
        unmatched=section.unmatched,
        rules=tuple(map(_rule_of, section.rules)),
        limits=TableLimits(section.max_tables, section.max_new_tables_per_day),
    )


def _rule_of(section: RuleSection) -> RouteRule:
    match = section.match.model_dump(by_alias=True, exclude_none=True)
    return RouteRule(
        match=match,
        to=section.to,
        add_columns=dict(section.add_columns),
        key_columns=section.key_columns,
        merge_shards=section.merge_shards,
    )
