"""Rules that route source tables by regular expressions, with references to their groups.

A rule matches if each of its patterns matches the whole name; the first matching rule applies. In
references, groups are numbered across the patterns in the order topic, database, schema, table:
`$1` is the first group. `${name}` is the group of this name, or the whole topic, database, schema
or table; `$$` is a dollar sign.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ingestd.cdc.base import SourceTable
from ingestd.errors import ConfigError

_UNFIT = re.compile(r"[^\w-]")
_REFERENCE = re.compile(r"\$(?:(\$)|(\d+)|\{(\w+)\}|)")
PARTS = ("topic", "database", "schema", "table")
"""The names for which a rule can have patterns."""


@dataclass(frozen=True, slots=True)
class TableLimits:
    """The maximum number of tables of a pipeline, and of tables created within 24 hours."""

    in_all: int = 10_000
    per_day: int = 5_000


def sanitize(name: str) -> str:
    """Replace characters other than letters, digits, - and _ by _, to get a valid table name.

    Letters and digits of all scripts are kept.
    """
    return _UNFIT.sub("_", name)


@dataclass(frozen=True, slots=True)
class RouteRule:
    """A routing rule: patterns, and where matching source tables are routed.

    `match` maps "topic", "database", "schema" or "table" to regular expressions; a name that a
    source lacks is matched as "". `to` is the name of the target table; if it is None, the rule
    does not change the name. `add_columns` are STRING columns with constant values. The columns in
    `key_columns` precede the columns of the message key in the primary key. `merge_shards` allows
    source tables that match to share a target.
    """

    match: Mapping[str, str] = field(default_factory=dict)
    to: str | None = None
    add_columns: Mapping[str, str] = field(default_factory=dict)
    key_columns: tuple[str, ...] = ()
    merge_shards: bool = False


@dataclass(frozen=True, slots=True)
class Matched:
    """A routing rule that matches a source table, with all references replaced by their values.

    `to` is the name of the target, or None if the rule does not set it, and `columns` maps the
    added columns to their values.
    """

    rule: RouteRule
    to: str | None
    columns: Mapping[str, str]


class CompiledRule:
    """A rule with compiled patterns; `where` is its configuration key in error messages.

    The constructor raises ConfigError if the rule is invalid: for instance a pattern, a reference
    or the table name, or if the rule has no pattern or no effect.
    """

    def __init__(self, rule: RouteRule, where: str) -> None:
        self._rule = rule
        self._where = where
        self._patterns = {part: self._compiled(part) for part in PARTS if part in rule.match}
        self._check()

    def _compiled(self, part: str) -> re.Pattern[str]:
        text = self._rule.match[part]
        try:
            return re.compile(text)
        except re.error as error:
            problem = f"'{text}' is not a regular expression: {error}"
            raise ConfigError(f"{self._where}.match.{part}: {problem}") from error

    def _check(self) -> None:
        rule = self._rule
        if not self._patterns:
            raise ConfigError(f"{self._where}.match: give patterns for some of {', '.join(PARTS)}")
        if rule.to is None and not (rule.add_columns or rule.merge_shards):
            raise ConfigError(
                f"{self._where} has no effect: set 'to', 'add-columns' or 'merge-shards'"
            )
        strangers = sorted(set(rule.key_columns) - set(rule.add_columns))
        if strangers:
            raise ConfigError(f"{self._where}.key-columns: {strangers} are not in add-columns")
        groups = dict.fromkeys(self._group_names(), "x")
        if rule.to is not None:
            name = self._rendered("to", rule.to, groups, sanitize)
            if not name or name != sanitize(name):
                raise ConfigError(f"{self._where}.to: '{rule.to}' is not a valid table name")
        for column, text in rule.add_columns.items():
            self._rendered(f"add-columns.{column}", text, groups, str)

    def _group_names(self) -> list[str]:
        """Return the names and numbers that references may use.

        Raises ConfigError if two groups have the same name.
        """
        names = list(PARTS)
        for pattern in self._patterns.values():
            names += pattern.groupindex
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ConfigError(f"{self._where}.match: two groups have the name '{twice[0]}'")
        count = sum(pattern.groups for pattern in self._patterns.values())
        return names + [str(number) for number in range(1, count + 1)]

    def match(self, topic: str, source_table: SourceTable) -> Matched | None:
        """Return the result of the rule for a source table, or None if a pattern does not match."""
        names = dict(zip(PARTS, (topic, *(part or "" for part in source_table)), strict=True))
        groups = dict(names)
        numbered: list[str | None] = []
        for part, pattern in self._patterns.items():
            matched = pattern.fullmatch(names[part])
            if matched is None:
                return None
            numbered += matched.groups()
            groups.update({name: text or "" for name, text in matched.groupdict().items()})
        groups.update({str(number): text or "" for number, text in enumerate(numbered, 1)})
        rule = self._rule
        to = None if rule.to is None else self._rendered("to", rule.to, groups, sanitize)
        columns = {
            column: self._rendered(column, text, groups, str)
            for column, text in rule.add_columns.items()
        }
        return Matched(rule, to, columns)

    @property
    def merges(self) -> bool:
        """Whether source tables that match this rule may share a target."""
        return self._rule.merge_shards

    def may_match(self, source_table: SourceTable) -> bool:
        """Return whether the rule can match the source table in some topic.

        Only the patterns for database, schema and table are compared, not the one for the topic.
        """
        names = dict(zip(PARTS[1:], (part or "" for part in source_table), strict=True))
        return all(
            pattern.fullmatch(names[part]) is not None
            for part, pattern in self._patterns.items()
            if part != "topic"
        )

    def _rendered(
        self, key: str, text: str, groups: Mapping[str, str], fit: Callable[[str], str]
    ) -> str:
        def value(reference: re.Match[str]) -> str:
            dollar, number, name = reference.groups()
            if dollar:
                return "$"
            group = groups.get(number or name or "")
            if group is None:
                raise ConfigError(
                    f"{self._where}.{key}: '{reference[0]}' is not one of the groups "
                    f"{', '.join(sorted(groups))}; write $$ for a dollar"
                )
            return fit(group)

        return _REFERENCE.sub(value, text)
