"""Texts of table options as numbers: sizes, durations, whole numbers, yes or no."""

import re
from collections.abc import Mapping

from ingestd.errors import ConfigError

_NUMBER_AND_UNIT = re.compile(r"(\d+)\s*([a-zµ]*)")
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

Options = Mapping[str, str]


def _scaled(options: Options, name: str, units: Mapping[str, int], example: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    match = _NUMBER_AND_UNIT.fullmatch(text.strip().lower())
    if match is None or match[2] not in units:
        raise ConfigError(f"option '{name}' = '{text}' cannot be read; write it like {example}")
    return int(match[1]) * units[match[2]]


def size_option(options: Options, name: str, default: int) -> int:
    """Bytes; ConfigError names the option."""
    size = _scaled(options, name, _SIZE_UNITS, "'128 mb'")
    return default if size is None else size


def millis_option(options: Options, name: str, default: int) -> int:
    """Milliseconds; ConfigError names the option."""
    millis = _scaled(options, name, _MILLIS_OF_UNIT, "'10 s'")
    return default if millis is None else millis


def int_option(options: Options, name: str, default: int) -> int:
    """A whole number; ConfigError names the option."""
    number = optional_int_option(options, name)
    return default if number is None else number


def optional_int_option(options: Options, name: str) -> int | None:
    """A whole number, or None if the option is not given; ConfigError names the option."""
    text = options.get(name)
    try:
        return None if text is None else int(text)
    except ValueError as error:
        raise ConfigError(f"option '{name}' = '{text}' is not a whole number") from error


def bool_option(options: Options, name: str, default: bool) -> bool:
    """true or false; ConfigError names the option."""
    text = options.get(name)
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise ConfigError(f"option '{name}' = '{text}' is neither 'true' nor 'false'")
    return text.strip().lower() == "true"
