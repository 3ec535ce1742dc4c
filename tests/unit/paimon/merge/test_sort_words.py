"""Words compare as the values do, and interleaved ranks as the z-order does."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.merge.sort_words import interleaved, words

UTC = datetime.UTC
ORDERED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [None, -128, -1, 0, 127]),
    (pa.int64(), [None, -(2**63) + 1, -1, 0, 2**63 - 1]),
    (pa.bool_(), [None, False, True]),
    (pa.float32(), [None, float("-inf"), -1.5, -0.0, 0.0, 1e-30, 2.5, float("inf"), float("nan")]),
    (pa.float64(), [None, -1e300, -1e-300, 0.0, 1e300, float("nan")]),
    (pa.date32(), [None, datetime.date(1969, 1, 1), datetime.date(2024, 1, 1)]),
    (pa.time32("ms"), [None, datetime.time(0, 0), datetime.time(23, 59)]),
    (
        pa.timestamp("us", "UTC"),
        [
            None,
            datetime.datetime(1960, 1, 1, tzinfo=UTC),
            datetime.datetime(2024, 1, 1, tzinfo=UTC),
        ],
    ),
    (pa.decimal128(20, 2), [None, Decimal("-5.25"), Decimal("0.10"), Decimal("12345678.00")]),
    (pa.string(), [None, "\x01", "a", "a\x00b", "ab", "b", "é", "日本"]),
    (pa.binary(), [None, b"\x00\x01", b"\x01", b"\xff"]),
]


@pytest.mark.parametrize(("kind", "values"), ORDERED, ids=[str(kind) for kind, _ in ORDERED])
def test_words_ascend_with_the_values(kind: pa.DataType, values: list[Any]) -> None:
    found = words(pa.array(values, kind)).tolist()
    assert found[0] == 0
    assert found == sorted(found)
    assert len(set(found)) == len(found)


def test_texts_are_known_by_their_first_bytes_also_in_a_slice() -> None:
    column = pa.array(["zz", "abcdefgh", "abcdefgh-and-more", None, ""]).slice(1)
    found = words(column).tolist()
    assert found == [int.from_bytes(b"abcdefgh"), int.from_bytes(b"abcdefgh"), 0, 0]
    assert words(pa.array(["", None])).tolist() == [0, 0]


def test_bits_take_turns() -> None:
    ranks = [np.array([0xFFFF, 0, 1], np.uint16), np.array([0, 0xFFFF, 1], np.uint16)]
    keys = interleaved(ranks).tolist()
    assert keys[0] == b"\xaa\xaa\xaa\xaa"
    assert keys[1] == b"\x55\x55\x55\x55"
    assert keys[2] == b"\x00\x00\x00\x03"
