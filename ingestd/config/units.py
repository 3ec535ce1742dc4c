"""Parse and format durations and sizes: `10s`, `1 min`, `512mb`."""

import re

_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_SECONDS = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
}
_BYTES = {
    "b": 1,
    "bytes": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
}


def parse_duration(text: str) -> float:
    """Parse a duration, such as `500ms` or `1.5h`, to seconds.

    Raises ValueError if it is malformed or has no unit.
    """
    number, unit = _parts(text, "10s, 500ms, 1 min, 2h or 1d")
    if unit not in _SECONDS:
        raise ValueError(f"'{text}' is not a duration; write 10s, 500ms, 1 min, 2h or 1d")
    return number * _SECONDS[unit]


def parse_size(text: str) -> int:
    """Parse a size, such as `64mb`, to bytes; kb, mb and gb are powers of 1024.

    Raises ValueError if the size is malformed, has no unit or is not a whole number of bytes.
    """
    number, unit = _parts(text, "512kb, 32mb or 1gb")
    size = number * _BYTES.get(unit, 0)
    if unit not in _BYTES or size != int(size):
        raise ValueError(f"'{text}' is not a size; write 512kb, 32mb or 1gb")
    return int(size)


def format_duration(seconds: float) -> str:
    """Format a duration for `parse_duration`, in the largest unit that gives a whole number.

    Zero and durations that are not a whole number of seconds are in ms, with up to three decimals.
    """
    for unit in ("d", "h", "min", "s"):
        count = seconds / _SECONDS[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    millis = f"{seconds * 1000:.3f}".rstrip("0").rstrip(".")
    return f"{millis}ms"


def format_size(size: int) -> str:
    """Format a size for `parse_size`, in the largest unit that gives a whole number.

    Zero, and sizes that are not a whole number of kb, are in bytes, such as `100b`.
    """
    for unit in ("gb", "mb", "kb"):
        if size and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return f"{size}b"


def _parts(text: str, examples: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a number with a unit; write {examples}")
    if not match[2]:
        raise ValueError(f"'{text}' has no unit; write {examples}")
    return float(match[1]), match[2].lower()
