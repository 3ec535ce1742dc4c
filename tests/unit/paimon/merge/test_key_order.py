"""Key order."""

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.merge.key_order import is_key_sorted, key_order, sort_keys

COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, -1, 0, 127]),
    (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
    (pa.bool_(), [False, True]),
    (pa.date32(), [-5, 0, 7]),
    (pa.time32("ms"), [0, 5]),
    (pa.timestamp("us"), [-1, 0, 10**17]),
    (pa.timestamp("ms", tz="UTC"), [-1, 0, 10**15]),
    (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("1.49")]),
    (
        pa.decimal128(38, 0),
        [-(10**37), -(2**64), -1, 0, 2**63, 2**64 - 1, 2**64, 10**37],
    ),
    (pa.string(), ["", "B", "a", "aa", "é", "\uffff", "𝄞"]),
    (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    (pa.float64(), [-np.inf, -1.5, 0.0, 5e-324, np.inf, np.nan]),
    (pa.float32(), [-1.5, 0.0, 3.0]),
]


def _column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_temporal(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, whole).cast(kind)
    return pa.array(values, kind)


@pytest.mark.parametrize(("kind", "ordered"), COLUMNS, ids=[str(kind) for kind, _ in COLUMNS])
def test_keys_of_a_type_are_ordered_as_its_values(kind: pa.DataType, ordered: list[Any]) -> None:
    shuffled = random.Random(3).sample(range(len(ordered)), len(ordered))
    table = pa.table({"k": _column(kind, [ordered[n] for n in shuffled])})
    assert [shuffled[n] for n in key_order(table, ["k"])] == list(range(len(ordered)))


def test_slices_are_ordered_as_what_they_show() -> None:
    values = [Decimal(9), Decimal(-(10**30)), Decimal(10**30), Decimal(5), Decimal(0)]
    table = pa.table({"k": pa.array(values, pa.decimal128(38, 0))}).slice(1, 3)
    assert key_order(table, ["k"]).tolist() == [0, 2, 1]


def test_first_column_counts_most_and_rows_of_one_key_keep_their_order() -> None:
    table = pa.table({"a": ["y", "x", "x", "y", "x"], "b": [1, 2, 1, 1, 2]})
    assert key_order(table, ["a", "b"]).tolist() == [2, 1, 4, 0, 3]


def test_chunks_are_one_column() -> None:
    table = pa.table({"k": pa.chunked_array([["b"], [], ["a", "c"]])})
    assert key_order(table, ["k"]).tolist() == [1, 0, 2]


def test_sequence_numbers_order_rows_of_one_key() -> None:
    table = pa.table({"k": [1, 0, 1, 1]})
    keys = sort_keys(table, ["k"], np.array([9, 1, 3, 3]))
    assert keys.order.tolist() == [1, 2, 3, 0]
    assert keys.first.tolist() == [True, True, False, False]
    assert keys.last.tolist() == [True, False, False, True]


def test_no_rows_have_no_order() -> None:
    keys = sort_keys(pa.table({"k": pa.array([], pa.string())}), ["k"])
    assert (keys.order.tolist(), keys.first.tolist(), keys.last.tolist()) == ([], [], [])


def test_zeros_are_one_key_whatever_their_sign() -> None:
    assert sort_keys(pa.table({"k": [0.0, -0.0]}), ["k"]).first.tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "expected"), [([1, 2, 3], True), ([1, 1], False), ([2, 1], False), ([], True)]
)
def test_sorted_keys_are_recognized(values: list[int], expected: bool) -> None:
    assert is_key_sorted(pa.table({"k": pa.array(values, pa.int32())}), ["k"]) is expected


def test_sortedness_looks_at_later_columns_only_where_earlier_ones_are_equal() -> None:
    assert is_key_sorted(pa.table({"a": [1, 2, 2], "b": [9, 1, 2]}), ["a", "b"])
    assert not is_key_sorted(pa.table({"a": [1, 2, 1], "b": [1, 2, 3]}), ["a", "b"])


@pytest.mark.parametrize("column", [pa.array([1, None]), pa.array([[1]])])
def test_what_cannot_be_a_key_is_refused(column: pa.Array) -> None:
    with pytest.raises(ValueError, match="key"):
        key_order(pa.table({"k": column}), ["k"])
