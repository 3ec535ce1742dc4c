"""The section `routing`: which source tables are ingested, and the names of their targets."""

from typing import Annotated, Literal

from pydantic import Field

from ingestd.config.section import Section
from ingestd.config.values import AsList, Names, Texts
from ingestd.ingest.settings.context import RoutingConfig
from ingestd.ingest.settings.routing_rules import RouteRule, TableLimits

_ROUTING = RoutingConfig()


class MatchSection(Section):
    """Regular expressions for whole names; all that are given must match."""

    topic: str | None = Field(default=None, description="For the topic.")
    database: str | None = Field(default=None, description="For the database.")
    schema_: str | None = Field(default=None, alias="schema", description="For the schema.")
    table: str | None = Field(default=None, description="For the table.")


class RuleSection(Section):
    """One rule of the routing; references are `$1`, `${name}`, or `${topic}` for a whole name."""

    match: MatchSection = Field(description="Which source tables it is for.")
    to: str | None = Field(
        default=None,
        description="Name of the target, with references to groups of the patterns; without it "
        "the target is called as if there were no rules.",
    )
    add_columns: Texts = Field(
        default={},
        description="Text columns that tell the sources of a target apart, with what they hold: "
        "texts with references.",
    )
    key_columns: Names = Field(
        default=(),
        description="Those of `add-columns` that stand before the message key in a primary key "
        "that is taken from it.",
    )
    merge_shards: bool = Field(
        default=False, description="Whether source tables may share a target by this rule."
    )


class RoutingSection(Section):
    """Which source tables are ingested, and the names of their target tables."""

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
    unmatched: Literal["skip", "fail", "dead-letter"] = Field(
        default=_ROUTING.unmatched,
        description="What happens to rows of tables that are left out: they are counted, the "
        "pipeline stops, or rows of tables that are not excluded by name become dead letters.",
    )
    including_dbs: str = Field(
        default=_ROUTING.including_dbs,
        description="Regular expression for whole names of databases; what matches is taken.",
    )
    excluding_dbs: str = Field(
        default=_ROUTING.excluding_dbs, description="The same for what is left out."
    )
    table_prefix_db: Texts = Field(
        default={}, description="Database to a prefix that takes the place of `table-prefix`."
    )
    table_suffix_db: Texts = Field(
        default={}, description="Database to a suffix that takes the place of `table-suffix`."
    )
    max_tables: int = Field(
        default=_ROUTING.limits.in_all,
        ge=1,
        description="Most tables that the pipeline has. Records that claim another one become dead "
        "letters (`too-many-tables`), or what `errors.route` says.",
    )
    max_new_tables_per_day: int = Field(
        default=_ROUTING.limits.per_day,
        ge=1,
        description="Most tables that the pipeline creates within 24 hours; beyond it as above.",
    )
    rules: Annotated[tuple[RuleSection, ...], AsList] = Field(
        default=(),
        description="Rules for the tables that are taken; the first that matches comes before "
        "all naming above. `$1` and `${name}` are groups here, not values from elsewhere.",
    )


def routing_of(section: RoutingSection) -> RoutingConfig:
    """Return the routing as frozen values."""
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
