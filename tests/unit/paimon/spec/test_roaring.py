import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import FormatError
from ingestd.paimon.spec.roaring import decode_roaring, encode_roaring

SPARSE = st.sets(st.integers(0, 2**32 - 1), max_size=60)
RUNS = st.lists(st.tuples(st.integers(0, 2**18), st.integers(1, 9000)), max_size=4)


@given(SPARSE, RUNS)
def test_numbers_come_back(sparse: set[int], runs: list[tuple[int, int]]) -> None:
    parts = [np.arange(start, start + count) for start, count in runs]
    numbers = np.unique(np.concatenate([np.array(sorted(sparse), np.int64), *parts]))
    data = encode_roaring(numbers.astype(np.uint32))
    found, end = decode_roaring(b"xy" + data, "f", 2)
    assert end == len(data) + 2
    assert found.tolist() == numbers.tolist()


def test_dense_numbers_without_runs_make_a_bit_set() -> None:
    numbers = np.arange(0, 20_000, 2, dtype=np.uint32)
    data = encode_roaring(numbers)
    assert len(data) == 8 + 4 + 4 + 8192
    assert decode_roaring(data, "f")[0].tolist() == numbers.tolist()


def test_offsets_stand_in_front_of_many_containers_with_runs() -> None:
    numbers = np.concatenate([np.arange(n << 16, (n << 16) + 50) for n in range(5)])
    data = encode_roaring(numbers.astype(np.uint32))
    first = int.from_bytes(data[5 + 20 : 5 + 24], "little")
    assert first == 5 + 20 + 20
    assert int.from_bytes(data[first : first + 2], "little") == 1


@pytest.mark.parametrize(
    "broken", [b"", b"\x00" * 8, b"\x3a\x30\x00\x00\xff\xff\xff\xff", b"\x3b\x30\x00\x00"]
)
def test_what_is_no_bitmap_is_refused(broken: bytes) -> None:
    with pytest.raises(FormatError, match="f: its Roaring bitmap is damaged"):
        decode_roaring(broken, "f")


@given(st.data())
def test_damage_is_reported_or_harmless(data: st.DataObject) -> None:
    numbers = np.array([1, 2, 3, 4, 5, 6, 7, 70_000, 200_000], np.uint32)
    whole = bytearray(encode_roaring(numbers))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found, _ = decode_roaring(bytes(whole), "f")
    except FormatError:
        return
    assert np.all(found[1:] > found[:-1])
