"""Nested columns in types with NOT NULL fields."""

from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.casts.evolution import cast_nested

LOOSE = pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])
STRICT = pa.struct(
    [pa.field("x", pa.int64(), nullable=False), ("y", pa.struct([pa.field("z", pa.string())]))]
)
VALUES: list[Any] = [{"x": 1, "y": {"z": "a"}}, None, {"x": 2, "y": None}]


def test_a_null_row_has_null_fields_whatever_they_are() -> None:
    found = cast_nested(pa.array(VALUES, LOOSE), STRICT)
    assert found.type == STRICT
    assert found.to_pylist() == VALUES
    assert found.slice(1).to_pylist() == VALUES[1:]


@pytest.mark.parametrize("wrap", [lambda t: pa.list_(t), lambda t: pa.map_(pa.string(), t)])
def test_rows_inside_collections_are_cast_as_well(wrap: Any) -> None:
    source, target = wrap(LOOSE), wrap(STRICT)
    is_map = pa.types.is_map(source)
    cells: list[Any] = [VALUES, None, [], [None]]
    if is_map:
        cells = [None if c is None else [(f"k{i}", v) for i, v in enumerate(c)] for c in cells]
    found = cast_nested(pa.array(cells, source), target)
    assert found.type == target
    assert found.to_pylist() == cells
    found.validate(full=True)


def test_parts_of_an_array_keep_their_rows() -> None:
    array = pa.array([VALUES, None, VALUES[:1], []], pa.list_(LOOSE)).slice(1, 2)
    assert cast_nested(array, pa.list_(STRICT)).to_pylist() == [None, VALUES[:1]]


@pytest.mark.parametrize("target", [pa.struct([("a", pa.int32())]), pa.list_(pa.int32())])
def test_another_shape_is_an_error(target: pa.DataType) -> None:
    with pytest.raises(pa.ArrowException):
        cast_nested(pa.array(VALUES, LOOSE), target)


@pytest.mark.parametrize("target", [pa.list_(pa.int32()), pa.struct([("other", pa.int32())])])
def test_another_nesting_is_invalid(target: pa.DataType) -> None:
    with pytest.raises(pa.ArrowInvalid):
        cast_nested(pa.array(VALUES, LOOSE), target)
    with pytest.raises(pa.ArrowInvalid):
        cast_nested(pa.array([[1]], pa.list_(pa.int32())), LOOSE)
