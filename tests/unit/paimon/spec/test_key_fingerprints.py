"""Prints of keys: equal for equal keys, different for all others."""

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.key_fingerprints import KeyFingerprints, key_fingerprints

SEEDS = (3, 1 << 63)
TEXT, NUMBER = parse_type("STRING"), parse_type("BIGINT")


def _pairs(prints: KeyFingerprints) -> list[tuple[int, int]]:
    return list(zip(prints.first.tolist(), prints.second.tolist(), strict=True))


def test_equal_keys_have_equal_prints_wherever_they_stand() -> None:
    texts = ["", "a", "seven77", "eightchr", "a longer text of more than sixteen bytes", None, "a"]
    column = column_of(texts, TEXT)
    whole = _pairs(key_fingerprints([column], [TEXT], SEEDS))
    assert whole[1] == whole[6]
    assert len(set(whole)) == 6
    chunked = pa.chunked_array([column.slice(2, 2), column.slice(4)])
    assert _pairs(key_fingerprints([chunked], [TEXT], SEEDS)) == whole[2:]


def test_a_single_number_is_distinguished_from_every_other_by_either_half() -> None:
    numbers = np.concatenate([np.arange(-50_000, 50_000), np.arange(50_000) << 44])
    prints = key_fingerprints([pa.array(numbers)], [NUMBER], SEEDS)
    distinct = len(np.unique(numbers))
    assert len(np.unique(prints.first)) == distinct
    assert len(np.unique(prints.second)) == distinct


def test_all_columns_count_and_so_does_their_order() -> None:
    left, right = column_of(["a", "b", "a"], TEXT), column_of(["b", "a", "a"], TEXT)
    assert len(set(_pairs(key_fingerprints([left, right], [TEXT, TEXT], SEEDS)))) == 3


def test_other_seeds_give_other_prints() -> None:
    column = pa.array([1, 2])
    one, other = (key_fingerprints([column], [NUMBER], seeds) for seeds in (SEEDS, (4, 5)))
    assert set(_pairs(one)).isdisjoint(_pairs(other))


def test_prints_are_picked_and_put_together() -> None:
    prints = key_fingerprints([pa.array([1, 2, 3])], [NUMBER], SEEDS)
    again = KeyFingerprints.concat(
        [prints.take(np.array([True, False, False])), prints.take(np.arange(1, 3))]
    )
    assert _pairs(again) == _pairs(prints)
    assert len(KeyFingerprints.concat([])) == 0


def test_a_key_needs_columns() -> None:
    with pytest.raises(ValueError, match="0 columns"):
        key_fingerprints([], [], SEEDS)
