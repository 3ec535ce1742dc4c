"""Statistics of rows that are never in memory together: those of their parts, put together.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/

A bound that is not known of one part is not known of the whole.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ingestd.paimon.spec.binary_row import deserialize_row, serialize_row
from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.stats import collect_stats


class StatsTotal:
    """Bounds and null counts of columns over several tables, as `collect_stats` gives them."""

    def __init__(
        self, fields: Sequence[DataField], mode: Callable[[str], str], *, dense: bool = True
    ) -> None:
        self._fields = fields
        self._mode = mode
        self._dense = dense
        self._kept = [field for field in fields if not dense or mode(field.name) != "none"]
        self._parts: list[tuple[SimpleStats, int]] = []

    def add(self, rows: pa.Table) -> None:
        """Take in more rows."""
        stats, _ = collect_stats(rows, self._fields, self._mode, dense=self._dense)
        self._parts.append((stats, rows.num_rows))

    def result(self) -> tuple[SimpleStats, tuple[str, ...] | None]:
        """The statistics, and which columns they are of (None: all)."""
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
            serialize_row(types, [one.least if one.known else None for one in columns]),
            serialize_row(types, [one.most if one.known else None for one in columns]),
            tuple(one.nulls for one in columns),
        )


class _Bounds:
    """What is known of one column so far."""

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
    """-0.0 is below 0.0 as Java orders them."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value
