"""Values of a column are within its type, and their text does not depend on where it is declared.

The types of tables that exist and those of `schema.column-types` lead to the same texts.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.cdc.base import ChangeBatch, SourceTable
from ingestd.cdc.columns.wire_column import WireColumn, recast
from ingestd.ingest.rows.conform import Conformed, conform
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import DataType, parse_type
from ingestd.paimon.spec.schema import new_schema

STRING = parse_type("STRING")


def conformed(
    source: DataType, values: list[Any], target: str | DataType, *, declared: bool
) -> Conformed:
    """Conform a column `v`, whose type is configured if `declared`."""
    to_type = parse_type(target) if isinstance(target, str) else target
    count = len(values)
    columns = {"id": pa.array(range(count), pa.int32()), "v": column_of(values, source)}
    batch = ChangeBatch(
        source=SourceTable("db", "shop", "orders"),
        columns=pa.table(columns),
        types={"id": parse_type("INT"), "v": source},
        primary_keys=("id",),
        offset=np.arange(count, dtype=np.int64),
        row_kind=np.zeros(count, np.int8),
        position=np.arange(count, dtype=np.int64),
        snapshot_row=np.zeros(count, np.bool_),
        unavailable={},
    )
    schema = new_schema([("id", parse_type("INT")), ("v", to_type)], ("id",), (), {}, 0)
    return conform(batch, schema, {"v": to_type} if declared else {})


@pytest.mark.parametrize(
    ("source", "value", "text"),
    [
        ("TIMESTAMP(0)", 1000, "1970-01-01 00:00:01"),
        ("TIMESTAMP(3)", -1, "1969-12-31 23:59:59.999"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", 500_000, "1970-01-01 00:00:00.500000Z"),
        ("TIMESTAMP(0) WITH LOCAL TIME ZONE", 0, "1970-01-01 00:00:00Z"),
        ("TIME(0)", 1000, "00:00:01"),
        ("TIME(3)", 1500, "00:00:01.500"),
        ("DATE", -1, "1969-12-31"),
        ("BYTES", b"abc", "YWJj"),
        ("BYTES", b"\xff", "/w=="),
        ("DOUBLE", 1e20, "1.0E20"),
        ("DECIMAL(20, 10)", Decimal("1E-10"), "0.0000000001"),
        ("BOOLEAN", True, "true"),
    ],
)
def test_a_value_has_one_text_in_every_string_column(source: str, value: Any, text: str) -> None:
    from_type = parse_type(source)
    done = conformed(from_type, [value, None], "STRING", declared=False)
    assert done.failures == ()
    assert done.rows is not None
    assert done.rows.column("v").to_pylist() == [text, None]
    column = WireColumn("v", from_type).declared_as(STRING)
    assert recast(column_of([value, None], from_type), column).to_pylist() == [text, None]


@pytest.mark.parametrize(
    ("target", "long", "short"),
    [("VARCHAR(3)", "äöüß", "äöü"), ("CHAR(3)", "abcd", "abc"), ("VARBINARY(2)", b"abc", b"ab")],
)
def test_a_value_longer_than_its_declared_type_fails(target: str, long: Any, short: Any) -> None:
    # Messages with a schema have no lengths, so that their type is the declared one.
    done = conformed(parse_type(target), [long, short, None], target, declared=True)
    assert [failure.rows.tolist() for failure in done.failures] == [[True, False, False]]
    assert done.rows is not None
    assert done.rows.column("v").to_pylist() == [None, short, None]


@pytest.mark.parametrize(
    ("target", "value", "rounded"),
    [
        ("TIMESTAMP(0)", 1999, 1000),
        ("TIMESTAMP(0)", -1, -1000),
        ("TIMESTAMP(1)", -1, -100),
        ("TIMESTAMP(3)", -1, -1),
        ("TIMESTAMP(4)", 1_500_099, 1_500_000),
        ("TIMESTAMP(7) WITH LOCAL TIME ZONE", -1, -100),
        ("TIMESTAMP(9)", -(2**63), -(2**63)),
        ("TIME(0)", 1999, 1000),
        ("TIME(2)", 1999, 1990),
        ("TIME(6)", 1999, 1999),
    ],
)
def test_times_have_the_digits_of_their_type(target: str, value: int, rounded: int) -> None:
    t = parse_type(target)
    done = conformed(t, [value, None], target, declared=True)
    assert done.rows is not None
    assert done.rows.column("v").combine_chunks().equals(column_of([rounded, None], t))


def test_a_timestamp_of_a_finer_type_is_rounded_down_in_a_column_that_stays() -> None:
    done = conformed(parse_type("TIMESTAMP(3)"), [-1], "TIMESTAMP(0)", declared=True)
    assert done.rows is not None
    before = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC).replace(tzinfo=None)
    assert done.rows.column("v").to_pylist() == [before]


@pytest.mark.parametrize("declared", [True, False])
def test_elements_are_within_the_length_of_their_type(declared: bool) -> None:
    source, target = parse_type({"type": "ARRAY", "element": "STRING"}), "VARCHAR(3)"
    wanted = parse_type({"type": "ARRAY", "element": target})
    source = wanted if declared else source  # a reader returns columns in their declared type
    found = conformed(source, [["abc"], ["abcd"]], wanted, declared=declared)
    assert found.rows is not None
    [failure] = found.failures
    assert failure.rows.tolist() == [False, True]
