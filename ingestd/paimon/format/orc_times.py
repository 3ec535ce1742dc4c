"""Which timestamps the library's ORC writer and reader keep.

Of those before 1970 with digits below the millisecond it writes a negative fraction of the second,
on which Java stops; and it reads none that has no form in nanoseconds.
"""

from typing import Any

import pyarrow as pa

from ingestd.paimon.spec.arrow import Array

_TICKS = {"us": 1000, "ns": 1_000_000}
"""Per millisecond."""
_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""In one unit of each."""


def timestamp_problem(rows: pa.Table) -> str | None:
    """Return what of the rows ORC cannot hold, naming the column; None: it holds all of them."""
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
    children: list[Array] = []
    if pa.types.is_struct(kind):
        children = array.flatten()
    elif pa.types.is_list(kind):
        children = [array.flatten()]
    elif pa.types.is_map(kind):
        children = [array.keys, array.items]
    return next(filter(None, map(_problem, children)), None)


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
