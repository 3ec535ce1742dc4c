"""Route source tables to target tables, and decide which source tables may share a target.

A route depends only on names, so all tasks find the same route, and the driver can determine which
source tables share a target.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestd.cdc.base import SourceTable
from ingestd.errors import ConfigError, PolicyStopError, SchemaConflictError
from ingestd.ingest.settings.context import QualifiedSourceTable, RoutingConfig
from ingestd.ingest.settings.routing_rules import CompiledRule, Matched, sanitize
from ingestd.paimon.catalog.base import Identifier, check_case, refuse_branch

NAMED_IN = (
    "in 'to' of the first rule of routing.rules that matches it, or in routing.table-mapping if "
    "none does"
)
"""For messages: where the name of a target is set. A rule takes precedence over the mapping."""


@dataclass(frozen=True, slots=True)
class Route:
    """The target table of a source table, and the columns that routing adds to its rows.

    `table` is the identifier "database.table" of the target. `columns` maps the STRING columns that
    the route adds to their constant values; `key_columns` are the added columns that precede the
    columns of the message key in the primary key.
    """

    table: str
    columns: Mapping[str, str] = field(default_factory=dict)
    key_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteRejection:
    """Why the records of a source table are rejected: reason code and message of dead letters."""

    reason: str
    message: str


class Router:
    """The routing of source tables to target tables, according to a routing configuration.

    `mapped_tables` are the targets that the table mapping names, as "database.table". The
    constructor raises ConfigError if a regular expression or rule is invalid.
    """

    def __init__(self, routing: RoutingConfig, database: str) -> None:
        self._routing = routing
        self._database = database
        self._including = _pattern("including-tables", routing.including_tables)
        self._excluding = _pattern("excluding-tables", routing.excluding_tables)
        self._including_dbs = _pattern("including-dbs", routing.including_dbs)
        self._excluding_dbs = _pattern("excluding-dbs", routing.excluding_dbs)
        self._rules = _compiled(routing)
        self.mapped_tables = frozenset(f"{database}.{n}" for n in routing.table_mapping.values())
        self._invalid: dict[tuple[str, SourceTable], str] = {}

    def route(self, topic: str, source_table: SourceTable) -> str | None:
        """Return the target "database.table" of a source table, or None if it has no route.

        A source table has no route if it is not included or is excluded, if the name of its target
        is invalid, or if the routing is restricted to another target. Raises PolicyStopError if it
        is not included, is not excluded by name, and `unmatched` is "fail".
        """
        route = self.route_of(topic, source_table)
        return None if route is None else route.table

    def possible_target(self, topic: str, source_table: SourceTable) -> str | None:
        """Return the result of `route`, or None if records of the table stop the pipeline."""
        try:
            return self.route(topic, source_table)
        except PolicyStopError:
            return None  # `unmatched: fail` is about records, of which there may be none

    def route_of(self, topic: str, source_table: SourceTable) -> Route | None:
        """Return the route of a source table, or None if it has no route.

        A source table has no route if it is not included or is excluded, if the name of its target
        is invalid, or if the routing is restricted to another target. Raises PolicyStopError if it
        is not included, is not excluded by name, and `unmatched` is "fail".
        """
        forms = name_forms(source_table)
        if not self._takes(source_table, forms):
            if self._routing.unmatched == "fail" and not self._excludes(source_table, forms):
                raise PolicyStopError(
                    f"topic {topic}: no route for table {forms[-1]}; include it by routing "
                    "including-tables and including-dbs, exclude it by excluding-tables, or set "
                    "routing.unmatched to skip"
                )
            return None
        matched = self._matched(topic, source_table)
        given = None if matched is None else matched.to
        name = self._name(source_table, forms) if given is None else given
        table = f"{self._database}.{name}"
        try:
            if table not in self.mapped_tables:
                refuse_branch(Identifier(self._database, name))
            check_case([name], case_sensitive=self._routing.case_sensitive)
        except ConfigError as error:
            self._invalid[topic, source_table] = error.message
            return None
        if self._routing.only_target not in (None, table):
            return None
        if matched is None:
            return Route(table)
        return Route(table, matched.columns, matched.rule.key_columns)

    def complaint(self, topic: str, source_table: SourceTable) -> RouteRejection | None:
        """Return the reason for which records of a source table without a route are rejected.

        Returns None if the records are dropped, as for a table that is excluded by name. Raises
        PolicyStopError if the table is not included, is not excluded by name, and `unmatched` is
        "fail".
        """
        forms = name_forms(source_table)
        if self.route_of(topic, source_table) is None and (topic, source_table) in self._invalid:
            problem = self._invalid[topic, source_table]
            return RouteRejection(
                "invalid-table-name",
                f"topic {topic}: the target name of table {forms[-1]} is invalid: "
                f"{problem}; set another {NAMED_IN}",
            )
        if self._routing.unmatched != "dead-letter" or self._excludes(source_table, forms):
            return None
        return RouteRejection(
            "no-route",
            f"topic {topic}: no route for table {forms[-1]}; change routing.including-tables or "
            "including-dbs, or exclude it by excluding-tables or excluding-dbs",
        )

    def _takes(self, source_table: SourceTable, forms: tuple[str, ...]) -> bool:
        if not self._including_dbs.fullmatch(source_table.database or ""):
            return False
        taken = any(self._including.fullmatch(form) for form in forms)
        return taken and not self._excludes(source_table, forms)

    def _excludes(self, source_table: SourceTable, forms: tuple[str, ...]) -> bool:
        """Return whether a source table is excluded by name."""
        database = source_table.database
        if database and self._excluding_dbs.fullmatch(database):
            return True
        return any(self._excluding.fullmatch(form) for form in forms)

    def _matched(self, topic: str, source_table: SourceTable) -> Matched | None:
        """Return the result of the first rule that matches, or None."""
        for rule in self._rules:
            matched = rule.match(topic, source_table)
            if matched is not None:
                return matched
        return None

    def _name(self, source_table: SourceTable, forms: tuple[str, ...]) -> str:
        """Return the name of the target if no rule sets it."""
        routing, database = self._routing, source_table.database or ""
        mapped = _mapped(routing.table_mapping, forms)
        if mapped is not None:
            return mapped
        prefix = routing.table_prefix_db.get(database, routing.table_prefix)
        suffix = routing.table_suffix_db.get(database, routing.table_suffix)
        return f"{prefix}{sanitize(source_table.table)}{suffix}"


def check_sharing(
    routing: RoutingConfig, table: str, source_tables: frozenset[QualifiedSourceTable]
) -> None:
    """Raise SchemaConflictError if source tables must not share the target `table`."""
    problem = sharing_problem(routing, table, source_tables)
    if problem is not None:
        raise SchemaConflictError(problem)


def sharing_problem(
    routing: RoutingConfig, table: str, source_tables: frozenset[QualifiedSourceTable]
) -> str | None:
    """Return why source tables must not share a target; None if they may.

    They may share it if each of them is in the table mapping or matches a rule with `merge-shards`,
    or if `merge-shards` is set for the whole routing.
    """
    unnamed = _unnamed(routing, source_tables) if len(source_tables) > 1 else frozenset()
    if not unnamed:
        return None
    return (
        f"table {table} would take the rows of {', '.join(sorted(map(str, source_tables)))}; give "
        f"{min(map(str, unnamed))} a target of its own {NAMED_IN} (map all of them to mix them "
        "on purpose), or set merge-shards in that rule or in routing"
    )


def admitted_source_tables(
    routing: RoutingConfig,
    table: str,
    known: frozenset[QualifiedSourceTable],
    row_counts: Mapping[QualifiedSourceTable, int],
) -> frozenset[QualifiedSourceTable]:
    """Return the source tables from which a target accepts rows in a batch.

    `row_counts` maps the source tables with rows for the target to the numbers of these rows, and
    `known` are the source tables of the rows in the target. All are accepted if they may share the
    target. Otherwise a target with rows accepts the source tables in `known`, and those that may
    share it with them. A target without rows accepts the source tables that the configuration
    names, or else the source table with the most rows; if several have the most rows, the first by
    name.
    """
    everyone = frozenset(row_counts)
    if sharing_problem(routing, table, known | everyone) is None:
        return everyone
    if known:
        others = everyone - known
        may = (
            other for other in others if sharing_problem(routing, table, known | {other}) is None
        )
        return (everyone & known).union(may)
    named = everyone - _unnamed(routing, everyone)
    return named or frozenset(
        {
            min(
                everyone,
                key=lambda source_table: (-row_counts[source_table], str(source_table)),
            )
        }
    )


def _unnamed(
    routing: RoutingConfig, source_tables: frozenset[QualifiedSourceTable]
) -> frozenset[QualifiedSourceTable]:
    """Return the source tables that the routing does not allow to share a target."""
    if routing.merge_shards:
        return frozenset()
    rules = [rule for rule in _compiled(routing) if rule.merges]
    return frozenset(
        source_table
        for source_table in source_tables
        if _mapped(routing.table_mapping, name_forms(source_table.unqualified)) is None
        and not any(rule.may_match(source_table.unqualified) for rule in rules)
    )


def name_forms(source_table: SourceTable) -> tuple[str, ...]:
    """Return the names `table`, `schema.table` and `database.schema.table` of a source table.

    A schema or database that is unknown is left out. The last name is the longest.
    """
    forms = [source_table.table]
    for qualifier in (source_table.schema, source_table.database):
        if qualifier:
            forms.append(f"{qualifier}.{forms[-1]}")
    return tuple(forms)


def _mapped(mapping: Mapping[str, str], forms: tuple[str, ...]) -> str | None:
    return next((mapping[form] for form in reversed(forms) if form in mapping), None)


def _pattern(key: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(
            f"routing.{key}: '{text}' is not a regular expression: {error}"
        ) from error


def _compiled(routing: RoutingConfig) -> tuple[CompiledRule, ...]:
    return tuple(
        CompiledRule(rule, f"routing.rules[{number}]") for number, rule in enumerate(routing.rules)
    )
