"""Indexes of ranks: the bytes of Java, and every question about the rows."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_index_cells import may_hold
from ingestd.paimon.spec.file_index_range import (
    RangeBitmapIndex,
    decode_range_bitmap,
    default_chunk_size,
    encode_range_bitmap,
    has_range_bitmap,
)
from tests.support.format_vectors import vector_type, vector_value, vectors
from tests.unit.paimon.spec.index_questions import OPERATORS, holds_of_some

CASES = [case for case in vectors("file_indexes") if case["index"] == "range-bitmap"]
CELLS: dict[str, Any] = {
    "STRING": st.text(max_size=4),
    "INT": st.integers(-9, 9),
    "SMALLINT": st.integers(-3, 3),
    "BOOLEAN": st.booleans(),
    "DOUBLE": st.sampled_from([-1.5, -0.0, 0.0, 2.5, float("inf"), float("nan")]),
    "TIMESTAMP(3)": st.integers(-3, 3),
    "DECIMAL(18, 2)": st.decimals(-3, 3, places=2),
}


def decoded(data: bytes, t: Any) -> RangeBitmapIndex:
    index = decode_range_bitmap(data, t, "f")
    assert index is not None
    return index


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["type"])
def test_indexes_are_those_of_java(case: Any) -> None:
    t = vector_type(case["type"])
    column = column_of([vector_value(t, raw) for raw in case["values"]], t)
    assert encode_range_bitmap(column, t, default_chunk_size(t)).hex() == case["bytes"]


@given(st.data(), st.sampled_from(sorted(CELLS)), st.integers(0, 40))
def test_every_question_is_answered(data: st.DataObject, text: str, chunk: int) -> None:
    t = parse_type(text)
    cells = data.draw(st.lists(st.none() | CELLS[text], max_size=20))
    value = data.draw(CELLS[text])
    index = decoded(encode_range_bitmap(column_of(cells, t), t, chunk), t)
    assert index.has_null == (None in cells)
    for operator in OPERATORS:
        assert may_hold(index, operator, value) == holds_of_some(cells, operator, value), operator
    for cell in cells:
        assert cell is None or index.contains(cell)
    other = decoded(encode_range_bitmap(column_of(cells, t), t, 1000), t)
    assert index.content == other.content, "the size of the chunks does not matter"


def test_other_rows_have_another_content() -> None:
    t = parse_type("INT")
    contents = [
        decoded(encode_range_bitmap(column_of(cells, t), t, 100), t).content
        for cells in ([1, 2], [2, 1], [1, None], [1, 3])
    ]
    assert all(contents.count(content) == 1 for content in contents)


def test_types_and_layouts_without_an_index() -> None:
    fitting = ("TIMESTAMP(6)", "DECIMAL(18, 2)", "CHAR(3)", "TIME(3)")
    assert all(map(has_range_bitmap, map(parse_type, fitting)))
    others = ("TIMESTAMP(9)", "DECIMAL(19, 2)", "BYTES")
    assert not any(map(has_range_bitmap, map(parse_type, others)))
    t = parse_type("INT")
    data = encode_range_bitmap(column_of([1], t), t, 10)
    assert decode_range_bitmap(data[:4] + b"\x02" + data[5:], t, "f") is None
    with pytest.raises(ValueError, match="no range-bitmap index"):
        encode_range_bitmap(column_of([], parse_type("BYTES")), parse_type("BYTES"), 10)


def test_a_literal_with_more_digits_is_compared_exactly() -> None:
    t = parse_type("DECIMAL(5, 1)")
    index = decoded(encode_range_bitmap(column_of([Decimal("1.5")], t), t, 10), t)
    assert may_hold(index, ">", Decimal("1.49"))
    assert not may_hold(index, "=", Decimal("1.49"))


def test_damage_is_reported() -> None:
    data = bytes.fromhex(CASES[2]["bytes"])
    with pytest.raises(FormatError, match="range-bitmap index of f is damaged"):
        decode_range_bitmap(data[:14], vector_type("STRING"), "f")
    with pytest.raises(FormatError, match="damaged"):
        decoded(data[:60], vector_type("STRING")).contains("b")
    with pytest.raises(FormatError, match="damaged"):
        _ = decoded(data[:100], vector_type("STRING")).has_null
