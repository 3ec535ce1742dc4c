"""Dates and timestamps that are declared as each other."""

import pyarrow as pa

from ingestd.cdc.columns.wire_column import WireColumn, recast
from ingestd.paimon.spec.data_types import parse_type

DAY_MICROS = 86_400_000_000


def declared(array: pa.Array, sent: str, as_type: str) -> pa.Array:
    column = WireColumn("c", parse_type(sent)).declared_as(parse_type(as_type))
    return recast(array, column)


def test_a_date_becomes_its_first_moment() -> None:
    found = declared(pa.array([1, None, -1], pa.date32()), "DATE", "TIMESTAMP(6)")
    assert found.cast(pa.int64()).to_pylist() == [DAY_MICROS, None, -DAY_MICROS]


def test_a_timestamp_becomes_its_day_also_before_1970() -> None:
    moments = pa.array([DAY_MICROS + 1, None, -1], pa.timestamp("us"))
    found = declared(moments, "TIMESTAMP(6)", "DATE")
    assert found.cast(pa.int32()).to_pylist() == [1, None, -1]
