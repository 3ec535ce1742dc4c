"""Detect timestamps that the library's ORC reader and writer do not preserve.

For timestamps before 1970 with digits below the millisecond, the library writes a negative fraction
of a second, which Java's reader rejects. It cannot read timestamps outside the range of
nanoseconds.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import Array

_TICKS = {"us": 1000, "ns": 1_000_000}
"""Number of units in a millisecond."""
_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Number of nanoseconds in a unit."""
_DAY = 86_400
_UTC = frozenset({"", "UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z"})


def refuse_doubtful(rows: pa.Table, zones: Collection[str]) -> None:
    """Raise UnsupportedError for timestamps that the library may read one second too early or late.

    These are timestamps near 1970 with a fraction of a second. `zones` are the time zones of the
    file's writers. For a writer in another time zone than UTC, the library decides by the sign of
    the shifted value whether the fraction was rounded up; the writer decided by the sign of the
    unshifted value.
    """
    if set(zones) <= _UTC:
        return
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if any(_is_doubtful(chunk) for chunk in column.chunks):
            raise UnsupportedError(
                f"column {name}: TIMESTAMP with a fraction of a second within a day of 1970-01-01 "
                f"is not supported in ORC files written in the time zone {', '.join(sorted(zones))}"
            )


def _is_doubtful(column: Array) -> bool:
    array: Any = column
    if not pa.types.is_timestamp(array.type):
        return any(map(_is_doubtful, _children(array)))
    if array.type.tz is not None:
        return False
    numbers = array.drop_null().view(pa.int64()).to_numpy()
    second = 10**9 // _NANOS[array.type.unit]
    return bool(((np.abs(numbers) <= _DAY * second) & (numbers % second != 0)).any())


def timestamp_problem(rows: pa.Table) -> str | None:
    """Return a description of timestamps that ORC cannot store, with their column.

    The result is None if all timestamps can be stored.
    """
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        for chunk in column.chunks:
            problem = _problem(chunk)
            if problem is not None:
                return f"column {name}: timestamps {problem} are not supported in ORC"
    return None


def _problem(column: Array) -> str | None:
    array: Any = column
    kind: Any = column.type
    if pa.types.is_timestamp(kind):
        return _timestamp_problem(array)
    children = _children(array)
    return next(filter(None, map(_problem, children)), None)


def _children(column: Array) -> Sequence[Array]:
    array: Any = column
    kind: Any = array.type
    if pa.types.is_struct(kind):
        flat: list[Array] = array.flatten()
        return flat
    if pa.types.is_list(kind):
        return [array.flatten()]
    return [array.keys, array.items] if pa.types.is_map(kind) else []


def _timestamp_problem(column: Array) -> str | None:
    array: Any = column
    unit = array.type.unit
    numbers = array.drop_null().view(pa.int64()).to_numpy()
    furthest = (2**63 - 1) // _NANOS[unit]
    if ((numbers > furthest) | (numbers < -furthest)).any():
        return "before 1677 and after 2262"
    if unit in _TICKS and ((numbers < 0) & (numbers % _TICKS[unit] != 0)).any():
        return "before 1970 with digits below the millisecond"
    return None
