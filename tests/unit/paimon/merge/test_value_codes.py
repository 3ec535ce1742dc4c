"""Numbers that compare as values do."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.merge.value_codes import order_codes, sequence_ranks

ORDERED: Any = [
    (pa.int8(), [-128, -1, 0, 127]),
    (pa.bool_(), [False, True]),
    (pa.string(), ["", "a", "ab", "b", "é", "𝄞"]),
    (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80"]),
    (pa.float64(), [float("-inf"), -1.5, -0.0, 0.0, 1e300, float("inf"), float("nan")]),
    (pa.float32(), [-2.5, -0.0, 0.0, 3.5]),
    (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("2.25")]),
    (pa.decimal128(38, 0), [Decimal(n) for n in (-(10**30), -1, 0, 2**64, 10**30)]),
    (pa.date32(), [-5, 0, 7]),
    (pa.timestamp("us"), [-(10**15), 0, 10**15]),
]


@pytest.mark.parametrize(("kind", "values"), ORDERED)
def test_codes_rise_with_values(kind: Any, values: list[Any]) -> None:
    codes = order_codes(pa.array([*values, None], kind))[:-1].tolist()
    assert codes == sorted(set(codes))


@pytest.mark.parametrize(("kind", "values"), ORDERED)
def test_nulls_rank_below_everything(kind: Any, values: list[Any]) -> None:
    ranks = sequence_ranks([pa.array([values[0], None, values[-1], None], kind)]).tolist()
    assert ranks == [1, 0, 2, 0]


def test_zeros_are_one_sequence() -> None:
    assert sequence_ranks([pa.array([0.0, -0.0])]).tolist() == [0, 0]
