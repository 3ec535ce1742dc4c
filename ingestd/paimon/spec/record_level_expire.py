"""Expire the rows of a primary-key table by a time in one of their columns.

A compaction drops expired rows that it reads; readers return the rows that no compaction has
dropped yet. Deletions expire like other rows, and a row whose time is null never expires.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#record-level-expire
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import timestamp_unit
from ingestd.paimon.spec.data_types import TIMESTAMP_ROOTS, DataField
from ingestd.paimon.spec.predicate_stats import ColumnStats
from ingestd.paimon.spec.row_selection import Mask
from ingestd.paimon.spec.table_schema import TableSchema

_TIME_ROOTS = TIMESTAMP_ROOTS | {"INT", "BIGINT"}
_FIRST_MILLIS = 10**12
"""The smallest BIGINT that is a time in milliseconds; smaller ones are in seconds."""
_UNITS_PER_SECOND = {"ms": 1000, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True)
class ExpiredRows:
    """The condition for expired rows: the time in their column `field` is before `limit`.

    `limit` is in seconds since 1970.
    """

    field: DataField
    limit: int

    def mask(self, rows: pa.Table) -> Mask:
        """Return a mask of the expired rows; shape (rows,).

        A row whose time is null is not expired.
        """
        times: Any = rows.column(self.field.name).cast(pa.int64())
        known: Mask = pc.is_valid(times).to_numpy()
        filled: Any = pc.fill_null(times, 0)
        return known & (self._seconds(filled.to_numpy()) < self.limit)

    def drop(self, rows: pa.Table) -> pa.Table:
        """Return the rows that are not expired."""
        expired = self.mask(rows)
        return rows.filter(pa.array(~expired)) if bool(expired.any()) else rows

    def may_be_among(self, stats: ColumnStats | None) -> bool:
        """Return whether a file may have an expired row, by the smallest time in its statistics.

        `stats` are the statistics of the column `field`; without them, the result is False.
        """
        if stats is None or not isinstance(stats.low, int):
            return False
        return bool(self._seconds(np.array([stats.low], np.int64))[0] < self.limit)

    def _seconds(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        t = self.field.type
        if t.root == "INT":
            return times
        if t.root == "BIGINT":
            return np.where(times >= _FIRST_MILLIS, times // 1000, times)
        return times // _UNITS_PER_SECOND[timestamp_unit(t.precision or 0)]


def expired_rows(schema: TableSchema, now_ms: int) -> ExpiredRows | None:
    """Return the condition for rows that are expired at `now_ms`, in milliseconds since 1970.

    The result is None if rows of the table do not expire. Raises ConfigError if the options do not
    name a column with times.
    """
    expire_ms = honoured.RECORD_EXPIRE_TIME.of(schema.options)
    if expire_ms is None or not schema.primary_keys:
        return None
    field = _time_field(schema)
    if field is None:
        raise ConfigError(
            f"option '{honoured.RECORD_EXPIRE_TIME.name}' needs the option "
            f"'{honoured.RECORD_TIME_FIELD.name}', the column with the time of a row"
        )
    return ExpiredRows(field, now_ms // 1000 - expire_ms // 1000)


def check_record_level_expire(schema: TableSchema) -> None:
    """Raise ConfigError if the options for expiring rows do not name a column with times."""
    _time_field(schema)
    expired_rows(schema, 0)


def _time_field(schema: TableSchema) -> DataField | None:
    name = honoured.RECORD_TIME_FIELD.of(schema.options)
    if name is None:
        return None
    named = f"column '{name}' of option '{honoured.RECORD_TIME_FIELD.name}'"
    if name not in schema.field_names:
        raise ConfigError(
            f"{named} does not exist; the columns are {', '.join(schema.field_names)}"
        )
    field = schema.field(name)
    if field.type.root not in _TIME_ROOTS:
        raise ConfigError(
            f"{named} has type {field.type}; use INT (seconds), BIGINT (seconds or milliseconds) "
            "or TIMESTAMP"
        )
    return field
