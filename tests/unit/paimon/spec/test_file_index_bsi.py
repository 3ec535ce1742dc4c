"""Indexes of numbers as bit slices: the bytes of Java, and every question about the rows."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_index_bsi import (
    BsiIndex,
    decode_bsi_index,
    encode_bsi_index,
    has_bsi,
)
from ingestd.paimon.spec.file_index_cells import may_hold
from tests.support.format_vectors import vector_type, vector_value, vectors
from tests.unit.paimon.spec.index_questions import OPERATORS, holds_of_some

CASES = [case for case in vectors("file_indexes") if case["index"] == "bsi"]
CELLS: dict[str, Any] = {
    "INT": st.integers(-9, 9),
    "BIGINT": st.sampled_from([-(1 << 63) + 1, -1, 0, 5, (1 << 63) - 1]),
    "DATE": st.integers(-3, 3),
    "TIMESTAMP(6)": st.integers(-(10**6), 10**6),
    "DECIMAL(18, 2)": st.decimals(-3, 3, places=2),
}


def decoded(data: bytes | None, t: Any) -> BsiIndex:
    assert data is not None
    index = decode_bsi_index(data, t, "f")
    assert index is not None
    return index


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["type"])
def test_indexes_are_those_of_java(case: Any) -> None:
    t = vector_type(case["type"])
    column = column_of([vector_value(t, raw) for raw in case["values"]], t)
    data = encode_bsi_index(column, t)
    assert data is not None
    assert data.hex() == case["bytes"]


@given(st.data(), st.sampled_from(sorted(CELLS)))
def test_every_question_is_answered(data: st.DataObject, text: str) -> None:
    t = parse_type(text)
    cells = data.draw(st.lists(st.none() | CELLS[text], max_size=20))
    value = data.draw(CELLS[text])
    column = column_of(cells, t)
    index = decoded(encode_bsi_index(column.slice(0), t), t)
    assert index.has_null == (None in cells)
    for operator in OPERATORS:
        assert may_hold(index, operator, value) == holds_of_some(cells, operator, value), operator
    assert index.content == decoded(encode_bsi_index(column, t), t).content


def test_a_part_of_a_column_is_indexed_by_its_own_rows() -> None:
    t = parse_type("DECIMAL(5, 1)")
    cells = [Decimal("9.5"), None, Decimal("-1.5"), Decimal("3.0")]
    index = decoded(encode_bsi_index(column_of(cells, t).slice(2), t), t)
    assert index.bounds == (Decimal("-1.5"), Decimal("3.0"))
    assert index.row_count == 2
    assert not index.has_null
    assert not index.contains(Decimal("3.05")), "a literal of a type with more digits"


def test_the_least_number_of_64_bits_has_no_index() -> None:
    t = parse_type("BIGINT")
    assert encode_bsi_index(column_of([-(1 << 63), 1], t), t) is None


def test_numbers_beyond_the_slices_are_not_there() -> None:
    t = parse_type("INT")
    index = decoded(encode_bsi_index(column_of([1, 5], t), t), t)
    assert not index.contains(1 << 40)
    assert not index.contains(-5)
    assert not may_hold(decoded(encode_bsi_index(column_of([None], t), t), t), "!=", 1)


def test_types_and_layouts_without_an_index() -> None:
    nanos = parse_type("TIMESTAMP(9)")
    data = encode_bsi_index(column_of([1000], nanos), nanos)
    assert data is not None
    assert decode_bsi_index(data, nanos, "f") is None
    assert decode_bsi_index(b"\x02" + data[1:], parse_type("BIGINT"), "f") is None
    assert not any(map(has_bsi, map(parse_type, ("STRING", "DOUBLE", "DECIMAL(19, 2)"))))
    with pytest.raises(ValueError, match="no bsi index"):
        encode_bsi_index(column_of([], parse_type("STRING")), parse_type("STRING"))


def test_damage_is_reported() -> None:
    data = bytes.fromhex(CASES[0]["bytes"])
    for part in (data[:3], data[:9], data[:40], data[:-2]):
        with pytest.raises(FormatError, match="f"):
            decode_bsi_index(part, vector_type("INT"), "f")
    with pytest.raises(FormatError, match="slices of version 7"):
        decode_bsi_index(data[:6] + b"\x07" + data[7:], vector_type("INT"), "f")
