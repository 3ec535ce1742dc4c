"""The order of rows by several numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ingestd.paimon.merge.key_order import positions_by_number, stable_order

RANDOM = np.random.default_rng(7)
SMALL = RANDOM.integers(-3, 3, 5000)
WIDE = RANDOM.integers(-(2**63), 2**63 - 1, 5000)
RUNS = np.concatenate([np.sort(RANDOM.integers(0, 10**6, 2500)) for _ in range(2)])


def _expected(ranks: Sequence[Any]) -> list[int]:
    rows = list(zip(*(rank.tolist() for rank in ranks), strict=True))
    return sorted(range(len(rows)), key=rows.__getitem__)


@pytest.mark.parametrize(
    "ranks",
    [
        [SMALL],
        [WIDE],
        [RUNS],
        [SMALL.astype(np.int8)],
        [WIDE.view(np.uint64)],
        [SMALL, RUNS],
        [SMALL, SMALL[::-1], RUNS],
        [SMALL, WIDE],
        [SMALL, WIDE, SMALL[::-1]],
        [WIDE // 2**61, WIDE, SMALL],
        [np.zeros(5000, np.int64), WIDE],
        [WIDE, SMALL],
    ],
    ids=str,
)
def test_rows_stand_by_their_numbers_and_equal_ones_as_they_stood(ranks: list[Any]) -> None:
    assert stable_order(ranks).tolist() == _expected(ranks)


def test_runs_that_share_a_first_number_are_put_in_order() -> None:
    first = np.array([2**62, 2**62, 5, 2**62, 5, 7, 7])
    second = np.array([9, 2**62, -(2**62), 9, -(2**62), 1, 0])
    assert stable_order([first, second]).tolist() == _expected([first, second])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_rows_have_an_order(count: int) -> None:
    numbers = np.arange(count)[::-1].copy()
    assert stable_order([numbers, numbers]).tolist() == list(range(count))[::-1]


def test_the_numbers_stay_as_they_are() -> None:
    numbers = np.array([3, 1, 2])
    stable_order([numbers])
    stable_order([numbers, numbers])
    assert numbers.tolist() == [3, 1, 2]


def test_places_of_a_number_keep_their_order() -> None:
    found = [(n, at.tolist()) for n, at in positions_by_number(np.array([3, -1, 3, 7, -1]))]
    assert found == [(-1, [1, 4]), (3, [0, 2]), (7, [3])]
    assert list(positions_by_number(np.empty(0, np.int32))) == []
