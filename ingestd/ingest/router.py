"""Where the rows of a source table go.

A route depends on names only, so that every task finds the same one and the driver can tell which
source tables would meet in one target.
"""

import re
from collections.abc import Mapping

from ingestd.cdc.base import SourceTable
from ingestd.errors import ConfigError, PolicyStopError, SchemaConflictError
from ingestd.ingest.context import Feed, RoutingConfig

_UNFIT = re.compile(r"[^\w-]")


def sanitize(name: str) -> str:
    """A name that may be the directory of a table: other than letters, digits, - and _ give _."""
    return _UNFIT.sub("_", name)


class Router:
    """Finds target tables by the routing of a configuration; remembers what it found.

    Raises ConfigError for a pattern that is no regular expression.
    """

    def __init__(self, routing: RoutingConfig, database: str) -> None:
        self._routing = routing
        self._database = database
        self._including = _pattern("including_tables", routing.including_tables)
        self._excluding = _pattern("excluding_tables", routing.excluding_tables)
        self._known: dict[SourceTable, str | None] = {}

    def route(self, topic: str, source_table: SourceTable) -> str | None:
        """Identifier "database.table" of the target; None if the source table is left out.

        PolicyStopError if the configuration says so of source tables that are left out.
        """
        if source_table not in self._known:
            self._known[source_table] = self._find(topic, source_table)
        return self._known[source_table]

    def _find(self, topic: str, source_table: SourceTable) -> str | None:
        forms = name_forms(source_table)
        taken = any(self._including.fullmatch(form) for form in forms)
        if not taken or any(self._excluding.fullmatch(form) for form in forms):
            if self._routing.unmatched == "fail":
                raise PolicyStopError(
                    f"topic {topic}: no route for table {forms[-1]}; change routing "
                    "including_tables or excluding_tables, or set routing.unmatched to skip"
                )
            return None
        mapped = _mapped(self._routing.table_mapping, forms)
        if mapped is None:
            name = sanitize(source_table.table)
            mapped = f"{self._routing.table_prefix}{name}{self._routing.table_suffix}"
        return f"{self._database}.{mapped}"


def check_sharing(routing: RoutingConfig, table: str, feeds: frozenset[Feed]) -> None:
    """SchemaConflictError if several source tables meet in one target unintended.

    Intended are those that the table mapping names, or all of them with `merge_shards`.
    """
    if len(feeds) < 2 or routing.merge_shards:
        return
    unnamed = [
        feed
        for feed in feeds
        if _mapped(routing.table_mapping, name_forms(feed.source_table)) is None
    ]
    if unnamed:
        raise SchemaConflictError(
            f"table {table} would take the rows of {', '.join(sorted(map(str, feeds)))}; give "
            f"{min(map(str, unnamed))} a target of its own in routing.table_mapping (map all of "
            "them to mix them on purpose), or set routing.merge_shards"
        )


def name_forms(source_table: SourceTable) -> tuple[str, ...]:
    """The name of a source table, then with its schema, then with its database too."""
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
        raise ConfigError(f"routing.{key}: '{text}' is no regular expression: {error}") from error
