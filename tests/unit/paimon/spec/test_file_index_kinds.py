"""What every kind of file index promises, whatever its layout."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import DataType, parse_type
from ingestd.paimon.spec.file_index_cells import DecodedIndex
from ingestd.paimon.spec.file_index_kinds import INDEX_KINDS, ColumnIndex

INT = parse_type("INT")
VALUES: Sequence[int | None] = (3, None, 7, 3, -2)
EVERY_KIND = pytest.mark.parametrize("kind", INDEX_KINDS)


def decoded(kind: str, values: Sequence[Any], t: DataType = INT) -> DecodedIndex:
    index = INDEX_KINDS[kind].configure(ColumnIndex("a", kind), {}, t)
    data = INDEX_KINDS[kind].encode(column_of(values, t), t, index)
    assert data is not None
    made = INDEX_KINDS[kind].decode(data, t, "f")
    assert made is not None
    return made


@EVERY_KIND
def test_values_nulls_and_ranges_of_the_rows_are_not_excluded(kind: str) -> None:
    index = decoded(kind, VALUES)
    assert index.may_hold_null
    assert index.may_hold_value
    assert all(index.may_hold("=", [value]) for value in VALUES if value is not None)
    assert index.may_hold("=", [100, 7])
    assert index.may_hold(">", [6])
    assert index.may_hold("<=", [-2])


@EVERY_KIND
def test_a_value_that_no_row_has_is_excluded(kind: str) -> None:
    index = decoded(kind, VALUES)
    assert not index.may_hold("=", [100])
    assert not index.may_hold("=", [2**40]), "outside the type of the column"


@EVERY_KIND
def test_an_index_matches_the_column_that_it_was_made_of(kind: str) -> None:
    index = decoded(kind, VALUES)
    assert index.matches(column_of(VALUES, INT))
    assert not index.matches(column_of([3, None, 8, 3, -2], INT))


@pytest.mark.parametrize("kind", sorted({*INDEX_KINDS} - {"bloom-filter"}))
def test_kinds_with_all_values_answer_exactly(kind: str) -> None:
    index = decoded(kind, VALUES)
    assert not index.may_hold(">", [7])
    assert not index.matches(column_of([None, 3, 7, 3, -2], INT)), "another row has null"
    assert not decoded(kind, [1]).may_hold_null
    assert not decoded(kind, [None]).may_hold_value


@EVERY_KIND
def test_types_that_a_kind_does_not_fit_are_not_decoded(kind: str) -> None:
    bytes_of_int: Mapping[str, bytes | None] = {
        name: made.encode(column_of(VALUES, INT), INT, ColumnIndex("a", name))
        for name, made in INDEX_KINDS.items()
    }
    array = DataType("ARRAY", element=INT)
    assert not INDEX_KINDS[kind].fits(array)
    assert INDEX_KINDS[kind].decode(bytes_of_int[kind] or b"", array, "f") is None
