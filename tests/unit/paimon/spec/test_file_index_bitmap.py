from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_index_bitmap import (
    BitmapIndex,
    decode_bitmap_index,
    encode_bitmap_index,
)
from ingestd.paimon.spec.file_index_cells import sort_key
from tests.support.format_vectors import vector_type, vector_value, vectors

CASES = [case for case in vectors("file_indexes") if case["index"] == "bitmap"]
CELLS: dict[str, Any] = {
    "STRING": st.text(max_size=5),
    "INT": st.integers(-3, 3),
    "DATE": st.integers(-3, 3),
    "BOOLEAN": st.booleans(),
    "DOUBLE": st.sampled_from([-1.5, -0.0, 0.0, 2.5, float("inf")]),
    "TIMESTAMP(3)": st.integers(-3, 3),
}


def decoded(data: bytes, t: Any) -> BitmapIndex:
    index = decode_bitmap_index(data, t, "f")
    assert index is not None
    return index


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["type"])
def test_indexes_are_those_of_java(case: Any) -> None:
    t = vector_type(case["type"])
    column = column_of([vector_value(t, raw) for raw in case["values"]], t)
    assert encode_bitmap_index(column, t).hex() == case["bytes"]
    index = decoded(bytes.fromhex(case["bytes"]), t)
    for value in set(case["values"]):
        rows = [i for i, one in enumerate(case["values"]) if one == value]
        assert index.positions(value).tolist() == rows
    assert not index.contains("zz" if case["type"] == "STRING" else 99)


@given(st.data(), st.sampled_from(sorted(CELLS)), st.integers(40, 200), st.sampled_from([1, 2]))
def test_rows_of_every_value_come_back(
    data: st.DataObject, text: str, block: int, version: int
) -> None:
    t = parse_type(text)
    cells = data.draw(st.lists(st.none() | CELLS[text], max_size=30))
    index = decoded(encode_bitmap_index(column_of(cells, t), t, block, version), t)
    assert index.row_count == len(cells)
    for value in {None, *cells}:
        rows = [i for i, cell in enumerate(cells) if repr(cell) == repr(value)]
        assert index.positions(value).tolist() == rows
        assert (index.has_null if value is None else index.contains(value)) == bool(rows)
    ordered = sorted((cell for cell in cells if cell is not None), key=sort_key)
    assert repr(index.bounds) == repr((ordered[0], ordered[-1]) if ordered else None)
    assert len(list(index.values())) == len({repr(cell) for cell in cells} - {"None"})


def test_layouts_of_other_versions_are_not_understood() -> None:
    data = bytes.fromhex(CASES[0]["bytes"])
    assert decode_bitmap_index(b"\x03" + data[1:], vector_type("INT"), "f") is None
    assert decode_bitmap_index(b"", vector_type("INT"), "f") is None
    assert decode_bitmap_index(data, parse_type("DECIMAL(5, 1)"), "f") is None


def test_truncation_is_reported() -> None:
    t = vector_type("STRING")
    data = bytes.fromhex(CASES[2]["bytes"])
    with pytest.raises(FormatError, match="bitmap index of f is damaged"):
        decode_bitmap_index(data[:20], t, "f")
    with pytest.raises(FormatError, match="damaged"):
        decoded(data[:-6], t).positions("b")


def test_types_without_an_order_have_none() -> None:
    with pytest.raises(ValueError, match="no bitmap index"):
        encode_bitmap_index(column_of([], parse_type("BYTES")), parse_type("BYTES"))


def test_values_in_nanoseconds_are_found_by_their_microseconds() -> None:
    t = parse_type("TIMESTAMP(9)")
    index = decoded(encode_bitmap_index(column_of([3000, 1000, 3000], t), t), t)
    assert index.positions(3000).tolist() == [0, 2]
    assert index.contains(1000)
    assert not index.contains(2000)
