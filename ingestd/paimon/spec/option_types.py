"""Types for declaring table options.

The declarations are in `table_options` and `honoured_options`. Parsers take the name of an option,
for error messages, and its value.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Generic, TypeVar

from ingestd.errors import ConfigError

Options = Mapping[str, str]
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_NUMBER_AND_UNIT = re.compile(r"(\d+)\s*([a-zµ]*)")
_PLACEHOLDER = re.compile(r"<[^>]*>")
_KB = 1024
_SIZE_UNITS = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), _KB),
    **dict.fromkeys(("m", "mb", "mebibytes"), _KB**2),
    **dict.fromkeys(("g", "gb", "gibibytes"), _KB**3),
    **dict.fromkeys(("t", "tb", "tebibytes"), _KB**4),
}
_MILLIS_OF_UNIT = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}


def _scaled(name: str, value: str, units: Mapping[str, int], example: str) -> int:
    match = _NUMBER_AND_UNIT.fullmatch(value.strip().lower())
    if match is None or match[2] not in units:
        raise ConfigError(f"option '{name}' = '{value}' cannot be read; write it like {example}")
    return int(match[1]) * units[match[2]]


def parse_size(name: str, value: str) -> int:
    """Parse a size such as "128 mb", and return it in bytes; a number without a unit is in bytes.

    Raises ConfigError, naming the option, if it is invalid.
    """
    return _scaled(name, value, _SIZE_UNITS, "'128 mb'")


def parse_millis(name: str, value: str) -> int:
    """Parse a duration such as "10 s", and return it in milliseconds.

    A number without a unit is in milliseconds. Raises ConfigError, naming the option, if it is
    invalid.
    """
    return _scaled(name, value, _MILLIS_OF_UNIT, "'10 s'")


def parse_int(name: str, value: str) -> int:
    """Parse an integer. Raises ConfigError, naming the option, if it is invalid."""
    try:
        return int(value)
    except ValueError as error:
        raise ConfigError(f"option '{name}' = '{value}' is not a whole number") from error


def parse_float(name: str, value: str) -> float:
    """Parse a float. Raises ConfigError, naming the option, if it is invalid."""
    try:
        return float(value)
    except ValueError as error:
        raise ConfigError(f"option '{name}' = '{value}': use a number like 0.2") from error


def parse_bool(name: str, value: str) -> bool:
    """Parse a boolean, `true` or `false` in any case of letters.

    Raises ConfigError, naming the option, if it is neither.
    """
    if value.strip().lower() not in ("true", "false"):
        raise ConfigError(f"option '{name}' = '{value}' is neither 'true' nor 'false'")
    return value.strip().lower() == "true"


def parse_directory(name: str, value: str) -> str:
    """Parse a directory, relative to the table, and return it with a trailing slash.

    A blank value, which stands for the table's own directory, is returned as "". Raises
    ConfigError, naming the option, for a directory that leads out of the table.
    """
    directory = value.strip().strip("/")
    if ".." in directory.split("/"):
        raise ConfigError(f"option '{name}' = '{value}' leads out of the table")
    return f"{directory}/" if directory else ""


def parse_text(name: str, value: str) -> str:
    """Return the value of an option unchanged, for options whose value is free text."""
    return value


def parse_word(name: str, value: str) -> str:
    """Return the value in lower case, without surrounding spaces."""
    return value.strip().lower()


def parse_names(name: str, value: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list, without surrounding spaces and empty names."""
    return tuple(text for text in map(str.strip, value.split(",")) if text)


class Support(Enum):
    """How ingestd treats an option that it accepts: it is implemented, or has no effect."""

    HONOURED = "honoured"
    IGNORED = "ignored"


class Access(IntEnum):
    """A kind of access to a table; what is refused for one kind is refused for all later kinds."""

    READ = 1
    WRITE = 2
    CREATE = 3


class ChangeRule(Enum):
    """The changes of an option that are allowed once the table has snapshots."""

    ANY = "any"
    TO_TRUE = "from false to true"
    NEVER = "none"


_UNITS: Mapping[object, Mapping[str, int]] = {
    parse_millis: {"h": 3_600_000, "min": 60_000, "s": 1000, "ms": 1},
    parse_size: {"mb": 1 << 20, "kb": 1 << 10, "bytes": 1},
}


@dataclass(frozen=True, slots=True)
class TableOption(Generic[T_co]):
    """The declaration of a table option.

    `name` may contain placeholders in angle brackets, each for one or more characters. `parse`
    converts a text to the value, given the option's name for errors; `default` is the value if the
    option is not set. `values` are the supported values (None: all); other values are refused for
    the access `refused_from` and all kinds of access after it. `note` describes an implemented
    option, or is the reason why an option is refused or ignored; `refusal` is the reason why a
    value of an implemented option is refused. `change` is the rule for a table with snapshots.
    `aliases` are older names, in lookup order.
    """

    name: str
    parse: Callable[[str, str], T_co]
    default: T_co
    support: Support
    note: str
    values: frozenset[str] | None = None
    refused_from: Access = Access.WRITE
    change: ChangeRule = ChangeRule.ANY
    aliases: tuple[str, ...] = ()
    refusal: str = ""

    def of(self, options: Options, column: str | None = None) -> T_co:
        """Return the value in `options`, or the default if neither the name nor an alias is set.

        If `column` is given, it replaces the placeholder in the name, and aliases are not
        considered. Raises ConfigError, naming the option, if the value is invalid.
        """
        names = (self.name, *self.aliases) if column is None else (self.name_for(column),)
        for name in names:
            if name in options:
                return self.parse(name, options[name])
        return self.default

    def default_text(self) -> str:
        """Return the default as a user would write it, with a unit; "" if there is none."""
        default = self.default
        if default is None or default in ("", ()):
            return ""
        if self.parse is parse_bool:
            return str(default).lower()
        for unit, factor in _UNITS.get(self.parse, {}).items():
            if isinstance(default, int) and default and default % factor == 0:
                return f"{default // factor} {unit}"
        return str(default)

    def given(self, options: Options) -> str | None:
        """Return the name, or the first alias, under which the option is set; None if not set."""
        return next((name for name in (self.name, *self.aliases) if name in options), None)

    def name_for(self, column: str) -> str:
        """Return the option's name with a column in place of its placeholder."""
        before, _, rest = self.name.partition("<")
        return f"{before}{column}{rest.partition('>')[2]}"

    def refuses(self, value: str, access: Access) -> bool:
        """Return whether a value of the option is refused for a kind of access."""
        supported = self.values is None or value.strip().lower() in self.values
        return not supported and access >= self.refused_from

    @property
    def pattern(self) -> str | None:
        """The name as a regular expression for a full match; None if it contains no placeholder."""
        parts = _PLACEHOLDER.split(self.name)
        return ".+".join(map(re.escape, parts)) if len(parts) > 1 else None


def honoured(
    name: str,
    parse: Callable[[str, str], T],
    default: T,
    note: str,
    *,
    values: Iterable[str] | None = None,
    refused_from: Access = Access.WRITE,
    change: ChangeRule = ChangeRule.ANY,
    aliases: tuple[str, ...] = (),
    refusal: str = "",
) -> TableOption[T]:
    """Declare an implemented option with a default.

    `parse` converts a text to the value, given the name of the option and the text. `note`
    describes the option, `values` are the supported values (None: all), `refused_from` is the
    access from which other values are refused, with the reason `refusal`, `change` is the rule for
    a table with snapshots, and `aliases` are older names.
    """
    supported = None if values is None else frozenset(values)
    return TableOption(
        name, parse, default, Support.HONOURED, note, supported, refused_from, change, aliases,
        refusal,
    )  # fmt: skip


def optional(
    name: str,
    parse: Callable[[str, str], T],
    note: str,
    *,
    change: ChangeRule = ChangeRule.ANY,
    aliases: tuple[str, ...] = (),
) -> TableOption[T | None]:
    """Declare an implemented option without a default; its value is None if it is not set.

    `parse` converts a text to the value, given the name of the option and the text. `note`
    describes the option, `change` is the rule for a table with snapshots, and `aliases` are older
    names.
    """
    return TableOption(name, parse, None, Support.HONOURED, note, change=change, aliases=aliases)
