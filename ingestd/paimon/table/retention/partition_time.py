"""When a partition is of: the time in its values, by the patterns of the table's options.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-partitions/

Pure. Patterns are those of Java: digits of a year, month,
day, hour, minute, second, fraction, and what stands between them.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured

FORMATTER = honoured.PARTITION_FORMATTER.name

_DEFAULT = re.compile(
    r"(?P<y>-?\d{1,10})-(?P<M>\d{1,2})-(?P<d>\d{1,2})"
    r"(?: (?P<H>\d{1,2}):(?P<m>\d{1,2}):(?P<s>\d{1,2})(?:\.(?P<S>\d{1,9}))?)?"
)
_YEAR = {"y", "u"}
_MONTHS = 12


@dataclass(frozen=True, slots=True)
class _Format:
    """A pattern as a regular expression with a group for each letter."""

    expression: re.Pattern[str]
    lenient: bool


def partition_time(
    names: Sequence[str], values: Sequence[str | None], options: Mapping[str, str]
) -> datetime | None:
    """The time of a partition, without a time zone; None if its values do not tell.

    `values` are texts as Java prints the inner form of the columns' values. UnsupportedError
    names a letter of the option that is not known here.
    """
    pattern = honoured.PARTITION_PATTERN.of(options)
    by_name = dict(zip(names, values, strict=True))
    text = values[0] if pattern is None else _filled(pattern, by_name)
    if text is None:
        return None
    wanted = honoured.PARTITION_FORMATTER.of(options)
    return _parse(text, _Format(_DEFAULT, lenient=True) if wanted is None else _format(wanted))


def _filled(pattern: str, values: Mapping[str, str | None]) -> str | None:
    """The pattern with `$column` replaced; a longer name is looked for first."""
    names = sorted(map(re.escape, values), key=len, reverse=True)
    wanted = re.findall(rf"\$({'|'.join(names)})", pattern)
    if any(values[name] is None for name in wanted):
        return None
    return re.sub(rf"\$({'|'.join(names)})", lambda found: str(values[found[1]]), pattern)


def _parse(text: str, wanted: _Format) -> datetime | None:
    found = wanted.expression.fullmatch(text)
    if found is None:
        return None
    parts = {letter: value for letter, value in found.groupdict().items() if value is not None}
    numbers = {letter: int(parts.get(letter, "0")) for letter in "yMdHms"}
    if len(parts.get("y", "")) == 2 and not wanted.lenient:
        numbers["y"] += 2000
    nanos = int(parts.get("S", "0").ljust(9, "0")[:9])
    return _moment(numbers, nanos // 1000, lenient=wanted.lenient)


def _moment(numbers: Mapping[str, int], micros: int, *, lenient: bool) -> datetime | None:
    year, month, day = numbers["y"], numbers["M"], numbers["d"]
    clock = timedelta(
        hours=numbers["H"], minutes=numbers["m"], seconds=numbers["s"], microseconds=micros
    )
    if not lenient and not _is_possible(numbers):
        return None
    year, month = year + (month - 1) // _MONTHS, (month - 1) % _MONTHS + 1
    try:
        if lenient:
            return datetime(year, month, 1) + timedelta(days=day - 1) + clock  # noqa: DTZ001  (a partition names no time zone)
        return _last_valid(year, month, day) + clock
    except (ValueError, OverflowError):
        return None


def _is_possible(numbers: Mapping[str, int]) -> bool:
    limits = {"M": (1, 12), "d": (1, 31), "H": (0, 23), "m": (0, 59), "s": (0, 59)}
    return all(low <= numbers[letter] <= high for letter, (low, high) in limits.items())


def _last_valid(year: int, month: int, day: int) -> datetime:
    """A day of a month; the month's last one if it has none of that number."""
    first = datetime(year, month, 1)  # noqa: DTZ001  (a partition names no time zone)
    next_month = (first + timedelta(days=31)).replace(day=1)
    return min(first + timedelta(days=day - 1), next_month - timedelta(days=1))


@lru_cache(maxsize=64)
def _format(pattern: str) -> _Format:
    expressions = [_expression(pattern, *part) for part in _parts(pattern)]
    text = "".join(expressions)
    if not all(f"(?P<{letter}>" in text for letter in "yMd"):
        raise UnsupportedError(
            f"option '{FORMATTER}' = '{pattern}' is not supported: it names no day"
        )
    return _Format(re.compile(text), lenient=False)


def _parts(pattern: str) -> Iterator[tuple[str, str]]:
    """Runs of a letter as (letter, run), and what stands between them as ("", text)."""
    pieces = re.findall(r"'(?:[^']|'')*'|.", pattern, re.DOTALL)
    for key, run in itertools.groupby(pieces, key=lambda piece: piece):
        text = "".join(run)
        if len(key) > 1:
            yield "", text[1:-1].replace("''", "'") or "'"
        elif key.isascii() and key.isalpha():
            yield key, text
        else:
            yield "", text


def _expression(pattern: str, letter: str, run: str) -> str:
    if not letter:
        return re.escape(run)
    if letter in _YEAR and len(run) in (2, 4):
        return rf"(?P<y>\d{{{len(run)}}})"
    if letter == "S":
        return rf"(?P<S>\d{{{len(run)}}})"
    if letter in "MdHms" and len(run) <= 2:
        return rf"(?P<{letter}>\d{{{len(run)},2}})"
    raise UnsupportedError(
        f"option '{FORMATTER}' = '{pattern}' is not supported: what '{run}' stands for is not "
        "implemented; use yyyy, MM, dd, HH, mm, ss and SSS"
    )
