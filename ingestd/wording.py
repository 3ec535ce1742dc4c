"""Numbers with their nouns, and times, for messages that people read."""

from datetime import UTC, datetime


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the singular `thing`: `1 file`, `2 files`, `2 entries`."""
    if number == 1:
        return f"1 {thing}"
    if thing.endswith("y") and thing[-2] not in "aeiou":
        return f"{number:,} {thing[:-1]}ies"
    return f"{number:,} {thing}{'es' if thing.endswith('ch') else 's'}"


def utc_text(seconds: float, unit: str = "seconds") -> str:
    """Return a time in seconds since 1970 as ISO 8601 in UTC, rounded down to the unit.

    `unit` is the name of a unit of `datetime.isoformat`.
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=unit).replace("+00:00", "Z")
