"""Texts as numbers of eight bytes each."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.merge.text_ranks import LONGEST, text_ranks

TEXTS = [
    b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0b", b"ab", b"abcdefgh", b"abcdefgh\0", b"abcdefghi",
    b"abcdefghijklmnop", b"b", b"\x7f", b"\x80", "\uffff".encode(), "𝄞".encode(), b"\xff" * 9,
]  # fmt: skip


def _tuples(array: Any) -> list[tuple[int, ...]]:
    return list(zip(*(rank.tolist() for rank in text_ranks(array)), strict=True))


def test_numbers_compare_as_bytes_do() -> None:
    found = _tuples(pa.array(TEXTS, pa.binary()))
    assert sorted(range(len(TEXTS)), key=found.__getitem__) == sorted(
        range(len(TEXTS)), key=TEXTS.__getitem__
    )
    assert len(set(found)) == len(TEXTS)


def test_the_neighbours_of_a_slice_do_not_count() -> None:
    whole = pa.array(["zz", "b", "a", "bb", "yyyyyyyyyyyyyyyyyyyyyyyyy"])
    found = _tuples(whole.slice(1, 3))
    assert sorted(range(3), key=found.__getitem__) == [1, 0, 2]
    assert len(found[0]) == 1


@pytest.mark.parametrize("text", ["", "same", "x" * 40])
def test_equal_texts_are_equal(text: str) -> None:
    assert len(set(_tuples(pa.array([text] * 3)))) == 1


def test_texts_of_one_length_need_one_number_for_eight_bytes() -> None:
    assert len(text_ranks(pa.array(["12345678", "87654321"]))) == 1
    assert len(text_ranks(pa.array(["123456789", "987654321"]))) == 2


def test_long_texts_are_numbered_by_their_order() -> None:
    long = "x" * (LONGEST + 1)
    (found,) = text_ranks(pa.array([long, "b", long, "a"]))
    assert found.tolist() == [2, 1, 2, 0]


def test_no_texts_have_no_numbers() -> None:
    (found,) = text_ranks(pa.array([], pa.string()))
    assert len(found) == 0
    assert found.dtype == np.uint64
