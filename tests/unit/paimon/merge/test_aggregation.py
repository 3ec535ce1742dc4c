"""Columns computed one by one."""

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.merge_rules import FieldFunction
from tests.support.merges import aggregate, merge

SUM = {"v": FieldFunction("sum")}


def test_the_row_of_a_key_that_has_only_one_stays_as_it_is() -> None:
    rows = [{"k": 1, "v": 5, "_kind": 3}, {"k": 2, "v": 1, "_kind": 2}]
    assert merge(rows, {"v": "INT"}, engine="aggregation", functions=SUM) == rows


def test_deletions_are_taken_back_and_the_row_remains() -> None:
    rows = [{"k": 1, "v": 5}, {"k": 1, "v": 5, "_kind": 3}]
    assert merge(rows, {"v": "INT"}, engine="aggregation", functions=SUM) == [{"k": 1, "v": 0}]


def test_a_deletion_can_remove_the_record() -> None:
    rows = [{"k": 1, "v": 5}, {"k": 1, "v": 7, "_kind": 3}]
    removed = merge(rows, {"v": "INT"}, engine="aggregation", functions=SUM, remove_on_delete=True)
    assert removed == [{"k": 1, "v": 7, "_kind": 3}]
    # What comes after goes on from the values of the deleted row.
    rows += [{"k": 1, "v": 1}]
    again = merge(rows, {"v": "INT"}, engine="aggregation", functions=SUM, remove_on_delete=True)
    assert again == [{"k": 1, "v": 8}]


def test_functions_that_take_nothing_back_say_so_unless_told_to_ignore_it() -> None:
    with pytest.raises(UnsupportedError, match=r"'max' of column 'v'.*fields\.v\.ignore-retract"):
        aggregate("max", "INT", [1, (1,)])
    assert aggregate("max", "INT", [1, (1,)], ignore_retract=True) == 1


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(UnsupportedError, match="'hll_sketch' of column 'v' is not supported"):
        aggregate("hll_sketch", "BYTES", [b"", b""])
