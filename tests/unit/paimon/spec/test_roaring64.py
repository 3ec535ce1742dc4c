"""Bitmaps of 64 bits are those that Java's RoaringBitmap64 writes, byte for byte."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from ingestd.errors import FormatError
from ingestd.paimon.spec.roaring64 import Bitmap64, decode_roaring64, encode_roaring64
from tests.support.merge_cases import bitmap64

ONTO = (9 << 20, 2, 3 << 50, 5 << 32, 1 << 17)
SMALL = (
    "010400000000000000000200000000ff00000200010000000100000200020000000001000400000000000000000000"
    "0000000000000004000000000000000001010000000000000004000000000001000000020000000000000004000000"
    "ffffffffffff030000000000000001000000fe0400000001020200000001000200010201000000701101020200000000"
    "000500010201000000ffff04000000000000000000000003000000"
)
FANS = {
    16: "76506bfabcd1709088b9ca24af8c0072c183e86293222e5c30c101781222f1e6",
    17: "c73098469c64f2f15fe3fef85d806b99f280b124d2c7d18d8a579149d313a3cb",
    48: "dc0544c49c264ae2477b1181347034bb10484d569db2ce03ca5a0d025feeafc7",
    49: "fbcbe0d5ec2196b5336d73afd571824cf9d276fc3d0f4954e817e141b9dfbb02",
    300: "1abf82351edf9a653748c23031d5b87549cabf71d91ecdcd44ffc0db034d458f",
}
"""Digests of what Java writes, by the number of containers below one node."""
RUNS_AND_BITS = "8b524138fdb09a833570680db943a3c0d4fb46797a6cc1713924a20e668d0e64"


def numbers(bitmap: Bitmap64) -> list[int]:
    return sorted(
        int.from_bytes(key) << 16 | low for key, lows in bitmap.containers.items() for low in lows
    )


def digest(bitmap: Bitmap64) -> str:
    return hashlib.sha256(encode_roaring64(bitmap)).hexdigest()


def test_bytes_are_those_of_java() -> None:
    assert encode_roaring64(bitmap64(())) == b"\0"
    small = bitmap64((1, 2, 70_000, 1 << 40, (1 << 64) - 1, (1 << 40) + 5))
    assert encode_roaring64(small).hex() == SMALL
    for count, expected in FANS.items():
        assert digest(bitmap64((7 * i) << 16 | i for i in range(count))) == expected
    every_second = ((1 << 50) + i for i in range(0, 30_000, 2))
    assert digest(bitmap64([*range(100_000), *every_second])) == RUNS_AND_BITS


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ((5 << 32, 1), "06a240b944b6f12277312d032589a3330a8062bdc10d5bafa480fee6ec2d8aa3"),
        ((), "8980f7c2ab8872aafb575708e2d05c2316337ea95a142b93a064274a0d14be04"),
    ],
)
def test_unions_are_those_of_java(first: tuple[int, ...], expected: str) -> None:
    bitmap = bitmap64(first)
    bitmap.add(bitmap64(ONTO))
    assert digest(bitmap) == expected
    assert numbers(decode_roaring64(encode_roaring64(bitmap))) == sorted({*first, *ONTO})


@given(st.sets(st.integers(0, 2**64 - 1) | st.integers(0, 2**20)))
def test_numbers_come_back(values: set[int]) -> None:
    bitmap = bitmap64(sorted(values))
    data = encode_roaring64(bitmap)
    again = decode_roaring64(data)
    assert numbers(again) == sorted(values)
    assert encode_roaring64(again) == data


@given(st.data())
def test_damage_is_reported_or_harmless(data: st.DataObject) -> None:
    whole = bytearray(encode_roaring64(bitmap64([*range(6000), *ONTO, *range(1 << 30, 70_000, 2)])))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = decode_roaring64(bytes(whole))
    except FormatError:
        return
    assert all(len(key) == 6 and 0 < len(lows) <= 1 << 16 for key, lows in found.containers.items())


@pytest.mark.parametrize("damaged", [b"", b"no bitmap", b"\1", BitMap([1]).serialize()])
def test_what_is_no_bitmap_is_refused(damaged: bytes) -> None:
    with pytest.raises(FormatError, match="Roaring bitmap of 64 bits is damaged"):
        decode_roaring64(damaged)
    whole = encode_roaring64(bitmap64([*range(6000), *ONTO]))
    for end in range(1, len(whole)):
        with pytest.raises(FormatError, match="is damaged"):
            decode_roaring64(whole[:end])
