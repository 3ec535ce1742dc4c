from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.table.compact.sorted_input import touched_rows

NAN = float("nan")


def kept(kind: pa.DataType, rows: list[Any], keys: list[Any]) -> list[int]:
    table = pa.table({"k": pa.array(rows, kind), "place": range(len(rows))})
    found = touched_rows(table, pa.table({"k": pa.array(keys, kind)}))
    assert found.column_names == ["k", "place"]
    return found.column("place").to_pylist()


@pytest.mark.parametrize(
    ("kind", "rows", "keys", "places"),
    [
        (pa.int32(), [-5, 1, 3, 7, 9], [9, 3, 3, 4, -5, 100, -100], [0, 2, 4]),
        (pa.timestamp("us"), [1, 5, 8], [8, 2], [2]),
        (pa.date32(), [1, 5, 8], [5], [1]),
        (pa.string(), ["", "a", "é", "𝄞"], ["𝄞", "b", ""], [0, 3]),
        (pa.binary(), [b"", b"a\x00", b"b"], [b"a", b"a\x00"], [1]),
        (pa.bool_(), [False, True], [True], [1]),
        (pa.decimal128(30, 2), [Decimal(-1), Decimal("0.50"), Decimal(2)], [Decimal("0.50")], [1]),
        (pa.decimal128(9, 2), [Decimal(-1), Decimal(2)], [Decimal(3)], []),
        (pa.float64(), [-1.5, 0.0, 2.0, NAN], [-0.0, NAN, 1.0], [1, 3]),
        (pa.float32(), [-0.0, 2.0], [0.0], [0]),
    ],
)
def test_rows_of_the_keys_are_found_and_no_others(
    kind: pa.DataType, rows: list[Any], keys: list[Any], places: list[int]
) -> None:
    assert kept(kind, rows, keys) == places


def test_rows_in_chunks_and_without_any_keys() -> None:
    rows = pa.table({"k": pa.chunked_array([[1, 2], [5, 8]])})
    keys = pa.table({"k": pa.chunked_array([[8], [2]])})
    assert touched_rows(rows, keys).column("k").to_pylist() == [2, 8]
    assert touched_rows(rows, keys.slice(0, 0)).num_rows == 0


def test_no_row_of_a_key_of_several_columns_is_lost() -> None:
    random = np.random.default_rng(3)
    pairs = sorted({(f"t{a}", b / 2) for a, b in random.integers(-3, 4, (30, 2)).tolist()})
    rows = pa.table(
        {"v": range(len(pairs)), "a": [a for a, _ in pairs], "b": [b for _, b in pairs]}
    )
    for count in range(len(pairs)):
        wanted = [pairs[n] for n in random.choice(len(pairs), count, replace=False)]
        zeros = [-b if b == 0 else b for _, b in wanted]
        texts = pa.array([a for a, _ in wanted], pa.string())
        keys = pa.table({"a": texts, "b": pa.array(zeros, pa.float64())})
        found = touched_rows(rows, keys)
        left = list(zip(found.column("a").to_pylist(), found.column("b").to_pylist(), strict=True))
        assert set(wanted) <= set(left)
        assert {a for a, _ in left} == {a for a, _ in wanted}
        assert left == sorted(left)
