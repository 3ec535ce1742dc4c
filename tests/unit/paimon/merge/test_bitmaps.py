"""Unions of Roaring bitmaps."""

import pytest
from pyroaring import BitMap

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.spec.roaring64 import decode_roaring64, encode_roaring64
from tests.support.merge_cases import bitmap64
from tests.support.merges import aggregate


def bitmap(*numbers: int) -> bytes:
    data: bytes = BitMap(numbers).serialize()
    return data


def numbers(cell: object) -> list[int]:
    assert isinstance(cell, bytes)
    return list(BitMap.deserialize(cell))


def test_bitmaps_of_a_key_are_united() -> None:
    cells = [bitmap(1, 2**32 - 1), None, bitmap(), bitmap(5, 1), bitmap(*range(10, 5000))]
    united = aggregate("rbm32", "BYTES", cells)
    assert numbers(united) == [1, 5, *range(10, 5000), 2**32 - 1]


def test_a_single_value_stays_as_it_is() -> None:
    assert aggregate("rbm32", "BYTES", [None, b"no bitmap", None]) == b"no bitmap"
    assert aggregate("rbm32", "BYTES", [None, None]) is None


def test_a_value_that_is_no_bitmap_is_named() -> None:
    for damaged in (b"", b"no bitmap", bitmap(1, 2, 3)[:-1]):
        with pytest.raises(FormatError, match=f"a value of {len(damaged)} bytes is not a Roaring"):
            aggregate("rbm32", "BYTES", [bitmap(1), damaged])


def test_bitmaps_take_nothing_back() -> None:
    with pytest.raises(UnsupportedError, match="'rbm32' of column 'v' cannot take back"):
        aggregate("rbm32", "BYTES", [bitmap(1), (bitmap(1),)])


def test_bitmaps_of_64_bits_are_united() -> None:
    first, second = bitmap64((1, 2**40)), bitmap64((5, 1, 2**64 - 1))
    cells = [encode_roaring64(first), None, b"\0", encode_roaring64(second)]
    united = decode_roaring64(aggregate("rbm64", "BYTES", cells))
    assert {key: list(lows) for key, lows in united.containers.items()} == {
        bytes(6): [1, 5], (2**24).to_bytes(6): [0], b"\xff" * 6: [2**16 - 1],
    }  # fmt: skip
    with pytest.raises(FormatError, match=r"'rbm64': a value of 12 bytes.*Java's Roaring64Bitmap"):
        aggregate("rbm64", "BYTES", [cells[0], b"no bitmap at"])
