"""Format numbers, dates and timestamps as strings, as in Java.

Each function formats a whole column. Years before 1 and after 9999 are supported.
"""

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.civil_dates import civil_date

_MILLIS_OF_DAY = 86_400_000
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

_Longs = npt.NDArray[np.int64]


def decimal_texts(array: Array) -> Array:
    """Return decimals as strings with their full scale and without an exponent; nulls stay null."""
    return pa.array([None if v is None else _plain(v) for v in array.to_pylist()], pa.string())


def _plain(value: Decimal) -> str:
    return format(value, "f")


def date_texts(array: Array) -> Array:
    """Return dates as ISO 8601 strings; nulls stay null.

    The year has at least four digits; `+` precedes years from 10000 on, `-` negative years.
    """
    dates = _dates(_numbers(array))
    return pa.array(dates, pa.string(), mask=_nulls(array))


def time_texts(array: Array) -> Array:
    """Return times (milliseconds of the day) as `HH:MM:SS.mmm`; nulls stay null."""
    millis = _numbers(array) % _MILLIS_OF_DAY
    texts = [f"{clock}.{rest:03d}" for clock, rest in _clocks(millis, 1000)]
    return pa.array(texts, pa.string(), mask=_nulls(array))


def timestamp_texts(array: Array, precision: int, suffix: str) -> Array:
    """Return timestamps as ISO 8601 strings with `precision` fraction digits and then `suffix`.

    Further digits are dropped. Nulls stay null.
    """
    kind: Any = array.type
    ticks = _TICKS[kind.unit]
    width = len(str(ticks)) - 1
    days, within = np.divmod(_numbers(array), ticks * 86_400)
    texts = []
    for date, (clock, rest) in zip(_dates(days), _clocks(within, ticks), strict=True):
        digits = f"{rest:0{width}d}"[:precision].ljust(precision, "0") if precision else ""
        texts.append(f"{date}T{clock}{'.' if digits else ''}{digits}{suffix}")
    return pa.array(texts, pa.string(), mask=_nulls(array))


def _numbers(array: Array) -> _Longs:
    whole: Any = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    numbers: _Longs = whole.fill_null(0).to_numpy().astype(np.int64)
    return numbers


def _nulls(array: Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _clocks(within: _Longs, ticks: int) -> list[tuple[str, int]]:
    """Return HH:MM:SS of each time of day, and its remaining ticks; `ticks` is ticks per second."""
    seconds, rest = np.divmod(within, ticks)
    minutes, second = np.divmod(seconds, 60)
    hour, minute = np.divmod(minutes, 60)
    parts = zip(hour.tolist(), minute.tolist(), second.tolist(), rest.tolist(), strict=True)
    return [(f"{h:02d}:{m:02d}:{s:02d}", r) for h, m, s, r in parts]


def _dates(days: _Longs) -> list[str]:
    """Return the ISO 8601 dates of days since 1970, in the proleptic Gregorian calendar."""
    year, month, day = civil_date(days)
    parts = zip(year.tolist(), month.tolist(), day.tolist(), strict=True)
    return [f"{_year(y)}-{m:02d}-{d:02d}" for y, m, d in parts]


def _year(year: int) -> str:
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"+{year}" if year > 0 else f"-{-year:04d}"
