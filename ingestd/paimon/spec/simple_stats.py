"""Collect column statistics for manifests from Arrow columns.

An uncertain bound is omitted (null): with a wrong bound, readers skip files that contain matching
rows; with a missing bound, they only read too much.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#simplestats
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Column, column_values
from ingestd.paimon.spec.binary_row import deserialize_row, serialize_row
from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataField, DataType
from ingestd.paimon.spec.extension import native_columns, text_parts

_BOUNDED_ROOTS = CHARACTER_ROOTS | {
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE",
    "TIME", "TIMESTAMP", "TIMESTAMP_LTZ",
}  # fmt: skip
_MAX_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def collect_stats(
    table: pa.Table,
    fields: Sequence[DataField],
    mode: Callable[[str], str],
    *,
    dense: bool = True,
) -> tuple[SimpleStats, tuple[str, ...] | None]:
    """Return bounds and null counts of columns, and the names of the columns with statistics.

    `mode` returns none, counts, truncate(n) or full for a column name. With `dense`, columns of
    mode none are omitted; otherwise their bounds and null counts are unknown. The names are None if
    the statistics include all `fields`. Binary and nested columns, and columns with NaN, have null
    counts only.
    """
    modes = {field.name: mode(field.name) for field in fields}
    kept = [field for field in fields if not dense or modes[field.name] != "none"]
    bounds = [_bounds(table.column(field.name), field.type, modes[field.name]) for field in kept]
    types = [field.type.as_nullable() for field in kept]
    counts = (
        None if modes[field.name] == "none" else table.column(field.name).null_count
        for field in kept
    )
    stats = SimpleStats(
        serialize_row(types, [least for least, _ in bounds]),
        serialize_row(types, [most for _, most in bounds]),
        tuple(counts),
    )
    return stats, None if len(kept) == len(fields) else tuple(field.name for field in kept)


def _bounds(column: Column, t: DataType, mode: str) -> tuple[object, object]:
    if mode in ("none", "counts") or t.root not in _BOUNDED_ROOTS:
        return None, None
    if t.root in ("FLOAT", "DOUBLE") and pc.any(pc.is_nan(column)).as_py():
        return None, None
    least, most = _text_bounds(column) or _extremes(column)
    if isinstance(least, float) and isinstance(most, float):
        return _ordered_zeros(column, least, most)
    if isinstance(least, str) and isinstance(most, str) and mode != "full":
        upper = truncate_upper(most, _length(mode))
        return (None, None) if upper is None else (least[: _length(mode)], upper)
    return least, most


def _extremes(column: Column) -> tuple[object, object]:
    bounds = pc.min_max(column)
    least, most = column_values(pa.array([bounds["min"], bounds["max"]], column.type))
    return least, most


def _text_bounds(column: Any) -> tuple[object, object] | None:  # noqa: ANN401  # a chunked array
    """Return the bounds of a text column, computed by the native extension.

    Returns None if the extension is not installed or does not support the column.
    """
    native = native_columns()
    if native is None or column.num_chunks != 1:
        return None
    texts = column.chunk(0)
    parts = text_parts(texts)
    if parts is None:
        return None
    bounds = native.text_bounds(len(texts), *parts)
    return (None, None) if bounds is None else (texts[bounds[0]].as_py(), texts[bounds[1]].as_py())


def _ordered_zeros(column: Column, least: float, most: float) -> tuple[float, float]:
    """Return bounds in Java's order, where -0.0 is less than 0.0; to Arrow they are equal."""
    if least != 0 and most != 0:
        return least, most
    numbers: npt.NDArray[np.float64] = np.asarray(column.drop_null())
    signs = np.signbit(numbers[numbers == 0])
    lower = -0.0 if least == 0 and signs.any() else least + 0.0
    upper = -0.0 if most == 0 and signs.all() else most + 0.0
    return lower, upper


def _length(mode: str) -> int:
    return int(mode.removeprefix("truncate(").removesuffix(")"))


def truncate_upper(text: str, length: int) -> str | None:
    """Return an upper bound, of at most `length` code points, for a text of any length.

    Returns None if no such bound exists.
    """
    if len(text) <= length:
        return text
    for i in range(length - 1, -1, -1):
        following = ord(text[i]) + 1
        if following in _SURROGATES:
            # A text cannot contain a lone surrogate; use the next valid code point.
            following = _SURROGATES.stop
        if following <= _MAX_CODE_POINT:
            return text[:i] + chr(following)
    return None


class StatsTotal:
    """Collects bounds and null counts over the rows of several Arrow tables.

    `fields` are the columns, and `mode` returns none, counts, truncate(n) or full for a column
    name. With `dense`, columns of mode none are omitted.
    """

    def __init__(
        self, fields: Sequence[DataField], mode: Callable[[str], str], *, dense: bool = True
    ) -> None:
        self._fields = fields
        self._mode = mode
        self._dense = dense
        self._kept = [field for field in fields if not dense or mode(field.name) != "none"]
        self._parts: list[tuple[SimpleStats, int]] = []

    def add(self, rows: pa.Table) -> None:
        """Add the bounds and null counts of more rows."""
        stats, _ = collect_stats(rows, self._fields, self._mode, dense=self._dense)
        self._parts.append((stats, rows.num_rows))

    def result(self) -> tuple[SimpleStats, tuple[str, ...] | None]:
        """Return the statistics, and the names of the columns that they include (None: all)."""
        stats = self._parts[0][0] if len(self._parts) == 1 else self._together()
        names = tuple(field.name for field in self._kept)
        return stats, None if len(self._kept) == len(self._fields) else names

    def _together(self) -> SimpleStats:
        types = [field.type.as_nullable() for field in self._kept]
        columns = [_Bounds() for _ in self._kept]
        for stats, rows in self._parts:
            least = deserialize_row(types, stats.min_values)
            most = deserialize_row(types, stats.max_values)
            cells = zip(columns, least, most, stats.null_counts, strict=True)
            for bounds, low, high, nulls in cells:
                bounds.add(low, high, nulls, rows)
        return SimpleStats(
            serialize_row(types, [column.least if column.known else None for column in columns]),
            serialize_row(types, [column.most if column.known else None for column in columns]),
            tuple(column.nulls for column in columns),
        )


class _Bounds:
    """Bounds and null count of a column so far; `known` is false once a bound is unknown."""

    def __init__(self) -> None:
        self.known = True
        self.least: object = None
        self.most: object = None
        self.nulls: int | None = 0

    def add(self, least: object, most: object, nulls: int | None, rows: int) -> None:
        if self.nulls is not None:
            self.nulls = None if nulls is None else self.nulls + nulls
        if nulls == rows:
            return
        if least is None or most is None:
            self.known = False
        elif self.least is None:
            self.least, self.most = least, most
        else:
            self.least = min(self.least, least, key=_comparable)
            self.most = max(self.most, most, key=_comparable)


def _comparable(value: object) -> Any:  # noqa: ANN401  (of any column type)
    """Return a sort key in which -0.0 is less than 0.0, as in Java's order."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value
