"""The budget of cells is one rule: whatever reads a message, and whatever is read with it."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import FormatSettings, load_data_format
from ingestd.cdc.cell_budget import most_cells
from ingestd.paimon.spec.data_types import DataField, DataType
from tests.support.change_events import TABLE, chunk, event
from tests.support.decoded import both_decoders, outcome
from tests.support.examples import examples
from tests.support.registered import Registered, chunk_of, framed, record

INT = DataType("INT")
ID = {"name": "id", "type": "int"}


@st.composite
def nested_types(draw: st.DrawFn, depth: int = 2) -> DataType:
    """Types whose values make more cells than bytes, and such that do not."""
    shape = draw(st.sampled_from(["leaf", "array", "map", "row"] if depth else ["leaf"]))
    if shape == "leaf":
        return INT
    if shape == "array":
        return DataType("ARRAY", element=draw(nested_types(depth=depth - 1)))
    if shape == "map":
        return DataType("MAP", key=DataType("STRING"), value=draw(nested_types(depth=depth - 1)))
    width = draw(st.sampled_from([1, 2, 400]))
    inner = draw(nested_types(depth=depth - 1))
    fields = [DataField(index, f"f{index}", inner if index == 0 else INT) for index in range(width)]
    return DataType("ROW", fields=tuple(fields))


def value_of(draw: st.DrawFn, kind: DataType) -> tuple[Any, int]:
    """A JSON value of a type, and the cells that it makes."""
    if kind.element is not None or kind.value is not None:
        count = draw(st.sampled_from([0, 1, 26, 40]))
        inner, cells = value_of(draw, kind.element or kind.value or INT)
        if kind.element is not None:
            return [inner] * count, count * (1 + cells)
        return {str(index): inner for index in range(count)}, count * (2 + cells)
    if kind.fields:
        inner, cells = value_of(draw, kind.fields[0].type)
        if draw(st.booleans()):
            return {"f0": inner}, len(kind.fields) + cells
        return {}, len(kind.fields)
    return 7, 0


@given(st.data())
@settings(max_examples=examples(30), deadline=None)
def test_json_is_judged_by_the_same_rule_by_native_and_python(data: st.DataObject) -> None:
    draw: Any = data.draw
    kind = DataType("ARRAY", element=draw(nested_types()))
    cells = [value_of(draw, kind) for _ in range(draw(st.integers(1, 6)))]
    values = [event("c", {"id": one, "x": value}) for one, (value, _) in enumerate(cells)]
    declared = {TABLE: {"x": kind}}
    native, pure = both_decoders()
    chunks = [chunk(values), *(chunk([value]) for value in values)]
    found = outcome(native, chunks, declared=declared)
    assert found == outcome(pure, chunks, declared=declared)
    over = [made > most_cells(len(json.dumps(value))) for value, made in cells]
    rejected: Any = [one["rejected"] for one in found]
    assert [one.offset for one in rejected[0]] == [i for i, one in enumerate(over) if one]
    assert [len(rejected_record) for rejected_record in rejected[1:]] == over


@given(
    st.sampled_from([1, 3, 700]),
    st.lists(st.lists(st.integers(0, 60), max_size=4), min_size=1, max_size=30),
)
@settings(max_examples=examples(30), deadline=None)
def test_avro_read_together_is_judged_as_alone(width: int, messages: list[list[int]]) -> None:
    item = record("W", [{"name": f"f{index}", "type": "null"} for index in range(width)])
    inner = {"type": "array", "items": item}
    registry = Registered()
    schema = record("Item", [ID, {"name": "x", "type": {"type": "array", "items": inner}}])
    number = registry.add(json.dumps(schema))
    bodies = [_avro(counts) for counts in messages]
    values = [framed(number, body) for body in bodies]
    data_format = load_data_format("avro", FormatSettings(schemas=registry))
    together = data_format.decode(chunk_of(values), {}, {}).rejected
    alone = [data_format.decode(chunk_of([value]), {}, {}).rejected for value in values]
    assert [one.reason for one in together] == ["too-many-cells"] * len(together)
    made = [len(message) + sum(message) * (1 + width) for message in messages]
    over = [cells > most_cells(len(one)) for cells, one in zip(made, values, strict=True)]
    assert [one.offset for one in together] == [i for i, one in enumerate(over) if one]
    assert [len(one) for one in alone] == over


def _avro(counts: list[int]) -> bytes:
    """An id and an array of arrays of records without bytes; counts of one byte each."""
    blocks = b"".join(bytes([2 * count]) + (b"\0" if count else b"") for count in counts)
    head = bytes([2 * len(counts)]) + blocks if counts else b""
    return b"\2" + head + b"\0"
