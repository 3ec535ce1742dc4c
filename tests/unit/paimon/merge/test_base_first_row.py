"""The oldest row of a key wins."""

import pytest

from ingestd.errors import UnsupportedError
from tests.support.merges import merge

ROWS = [{"k": 2, "v": 1}, {"k": 1, "v": 2, "_kind": 2}, {"k": 2, "v": 3}]


def test_the_first_row_of_each_key_stays() -> None:
    first = [{"k": 1, "v": 2, "_kind": 2}, {"k": 2, "v": 1}]
    assert merge(ROWS, {"v": "INT"}, engine="first-row") == first


def test_deletions_are_refused_unless_ignored() -> None:
    rows = [{"k": 2, "_kind": 3}, {"k": 3, "_kind": 1}, {"k": 3, "_kind": 3}, *ROWS]
    with pytest.raises(UnsupportedError, match="'ignore-delete' = 'true'"):
        merge(rows, {"v": "INT"}, engine="first-row")
    found = merge(rows, {"v": "INT"}, engine="first-row", ignore_delete=True)
    assert [row["k"] for row in found] == [1, 2]
