import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import FormatError
from ingestd.paimon.spec.file_index_bloom import encode_bloom_filter, may_contain
from tests.support.format_vectors import vectors

WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40, unique=True)


@pytest.mark.parametrize("case", vectors("bloom_filters"), ids=lambda case: case["type"])
def test_filters_are_those_of_java(case: Any) -> None:
    hashes = np.array([one for one in case["hash64"] if one is not None], np.int64)
    data = encode_bloom_filter(hashes.view(np.uint64), case["items"], case["fpp"])
    assert data.hex() == case["bytes"]


def test_the_default_size_is_that_of_java() -> None:
    case = vectors("bloom_default_size")
    data = encode_bloom_filter(np.empty(0, np.uint64), case["items"], case["fpp"])
    assert (8 * (len(data) - 4), data[3]) == (case["numBits"], case["numHashFunctions"])


@given(WORDS, st.integers(1, 1000), st.floats(0.001, 0.9))
def test_nothing_that_was_put_in_is_denied(words: list[int], items: int, fpp: float) -> None:
    hashes = np.array(words, np.uint64)
    assert may_contain(encode_bloom_filter(hashes, items, fpp), hashes, "f").all()


def test_most_of_what_was_not_put_in_is_denied() -> None:
    words = np.random.default_rng(7).integers(0, 2**64, 20_000, np.uint64)
    data = encode_bloom_filter(words[:10_000], 10_000, 0.05)
    rate = may_contain(data, words[10_000:], "f").mean()
    assert math.isclose(rate, 0.05, abs_tol=0.01)


@pytest.mark.parametrize("broken", [b"", b"\0\0\0\3", bytes(9), b"\0\0\4\1\0"])
def test_damage_is_reported(broken: bytes) -> None:
    with pytest.raises(FormatError, match="bloom filter of f is damaged"):
        may_contain(broken, np.zeros(1, np.uint64), "f")
