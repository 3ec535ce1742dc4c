"""Rows come back from bytes as they went in, whatever their types."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import FormatError
from ingestd.paimon.spec.binary_row import (
    decode_row,
    deserialize_row,
    encode_row,
    null_area_size,
    serialize_row,
)
from ingestd.paimon.spec.data_types import DataType, RowKind
from tests.support.typed_cells import cells, column_types, same, scalar_types


@st.composite
def rows(
    draw: st.DrawFn, types: st.SearchStrategy[DataType]
) -> tuple[list[DataType], list[object]]:
    drawn = draw(st.lists(types, max_size=6))
    return drawn, [draw(cells(t)) for t in drawn]


@given(rows(column_types()))
def test_serialized_rows_come_back(row: tuple[list[DataType], list[object]]) -> None:
    types, values = row
    assert same(deserialize_row(types, serialize_row(types, values)), tuple(values))


@given(rows(column_types()))
def test_rows_are_whole_words_with_the_slots_in_front(
    row: tuple[list[DataType], list[object]],
) -> None:
    types, values = row
    data = encode_row(types, values)
    assert len(data) % 8 == 0
    assert len(data) >= null_area_size(len(types)) + 8 * len(types)


@given(rows(scalar_types()), st.sampled_from(RowKind))
def test_the_first_byte_is_the_row_kind_and_no_value(
    row: tuple[list[DataType], list[object]], kind: RowKind
) -> None:
    types, values = row
    kinded = bytes([kind]) + encode_row(types, values)[1:]
    assert same(decode_row(types, kinded), tuple(values))


@given(st.integers(0, 200), st.sets(st.integers(0, 199)))
def test_null_bits_of_wide_rows_do_not_meet_values(arity: int, nulls: set[int]) -> None:
    types = [DataType("INT")] * arity
    values = [None if i in nulls else i for i in range(arity)]
    assert deserialize_row(types, serialize_row(types, values)) == tuple(values)


@given(st.lists(scalar_types(), max_size=4), st.binary(max_size=64))
def test_any_bytes_are_a_row_or_a_format_error(types: list[DataType], data: bytes) -> None:
    try:
        assert len(deserialize_row(types, data)) == len(types)
    except FormatError as error:
        assert "no serialized row" in error.message


@given(rows(column_types()), st.data())
def test_truncated_rows_do_not_decode_to_something_else(
    row: tuple[list[DataType], list[object]], data: st.DataObject
) -> None:
    types, values = row
    whole = serialize_row(types, values)
    cut = data.draw(st.integers(0, max(len(whole) - 1, 0)))
    minimal = 4 + null_area_size(len(types)) + 8 * len(types)
    if cut < minimal:
        with pytest.raises(FormatError):
            deserialize_row(types, whole[:cut])
