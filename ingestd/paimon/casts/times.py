"""Casts between dates, times, timestamps and whole seconds, as in Java.

Java rounds towards zero in some of these casts, so that times before 1970 are one unit too late;
this module returns the same results. The local time zone is UTC.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import Array, timestamp_unit, to_arrow_type
from ingestd.paimon.spec.data_types import TIMESTAMP_ROOTS, DataType

TIME_ROOTS = TIMESTAMP_ROOTS | {"DATE", "TIME"}

_DAY = 86_400_000
_TICKS = {"ms": 1, "us": 1000, "ns": 1_000_000}
"""Ticks per millisecond of each Arrow unit."""
_Longs = npt.NDArray[np.int64]


def cast_time(array: Array, source: DataType, target: DataType) -> Array:
    """Cast temporal values to temporal types or to whole seconds, or whole seconds to timestamps.

    Raises UnsupportedError if a timestamp exceeds the range of the target's unit.
    """
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    numbers = longs(array)
    if source.root in TIMESTAMP_ROOTS and target.root in TIMESTAMP_ROOTS:
        return timestamps(_rescaled(numbers, source, target), nulls, target)
    if source.root in TIMESTAMP_ROOTS:
        millis = numbers // _TICKS[timestamp_unit(source.precision or 0)]
        zoned = source.root == "TIMESTAMP_LTZ"
        return _typed(_FROM_MILLIS[target.root](millis, zoned), nulls, target)
    millis = _TO_MILLIS[source.root](numbers)
    return timestamps(_times(millis, _TICKS[timestamp_unit(target.precision or 0)]), nulls, target)


def longs(array: Array) -> _Longs:
    """Return the integers of a temporal or integer column, 0 for nulls."""
    kind: Any = array.type
    plain: Any = array.view(pa.int32()) if kind in (pa.date32(), pa.time32("ms")) else array
    plain = plain.view(pa.int64()) if pa.types.is_timestamp(kind) else plain
    numbers: _Longs = plain.fill_null(0).to_numpy().astype(np.int64)
    return numbers


def timestamps(numbers: _Longs, nulls: npt.NDArray[np.bool_], target: DataType) -> Array:
    """Return integers in the unit of a timestamp type as timestamps, null where `nulls` is true."""
    return pa.array(numbers, mask=nulls).cast(to_arrow_type(target))


def _rescaled(numbers: _Longs, source: DataType, target: DataType) -> _Longs:
    old = _TICKS[timestamp_unit(source.precision or 0)]
    new = _TICKS[timestamp_unit(target.precision or 0)]
    moved: _Longs = _times(numbers, new // old) if new >= old else numbers // (old // new)
    precision = target.precision or 0
    if precision >= (source.precision or 0):
        return moved
    if precision <= 3:
        unit = 10 ** (3 - precision)
        cut: _Longs = _towards_zero(moved, unit) * unit
        return cut
    unit = 10 ** ((6 if new == _TICKS["us"] else 9) - precision)
    return np.asarray(moved // unit * unit)


def _times(numbers: _Longs, factor: int) -> _Longs:
    bound = np.iinfo(np.int64).max // factor
    outside = (numbers > bound) | (numbers < -bound)
    if outside.any():
        raise UnsupportedError(f"{int(numbers[outside][0])} is out of the range of the new type")
    return numbers * factor


def _towards_zero(numbers: _Longs, divisor: int) -> _Longs:
    return np.where(numbers < 0, -(-numbers // divisor), numbers // divisor)


def _days(millis: _Longs, zoned: bool) -> _Longs:
    return millis // _DAY if zoned else _towards_zero(millis, _DAY)


def _millis_of_day(millis: _Longs, zoned: bool) -> _Longs:
    return millis % _DAY if zoned else millis - _towards_zero(millis, _DAY) * _DAY


def _seconds(millis: _Longs, zoned: bool) -> _Longs:
    return _towards_zero(millis, 1000)


_FROM_MILLIS: Mapping[str, Callable[[_Longs, bool], _Longs]] = {
    "DATE": _days,
    "TIME": _millis_of_day,
    "BIGINT": _seconds,
    "INT": _seconds,
}
_TO_MILLIS: Mapping[str, Callable[[_Longs], _Longs]] = {
    "DATE": lambda days: days * _DAY,
    "TIME": lambda millis: millis,
    "BIGINT": lambda seconds: _times(seconds, 1000),
    "INT": lambda seconds: seconds * 1000,
}


def _typed(numbers: _Longs, nulls: npt.NDArray[np.bool_], target: DataType) -> Array:
    if target.root == "BIGINT":
        return pa.array(numbers, mask=nulls)
    return pa.array(numbers.astype(np.int32), mask=nulls).cast(to_arrow_type(target))
