"""Messages that are small on the wire and would be large in memory are rejected, and no others."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, load_data_format
from ingestd.cdc.cell_budget import CELLS_PER_BYTE, LEAST_CELLS, CellBudgetError, most_cells
from ingestd.cdc.columns.raw_cells import read_cell
from ingestd.paimon.spec.data_types import DataField, DataType
from tests.support.change_events import TABLE, chunk, event
from tests.support.decoded import both_decoders, in_python, outcome
from tests.support.registered import Registered, chunk_of, envelope, framed, record
from tests.support.registered import event as avro_event
from tests.support.varints import zigzag

NULLS = {"type": "array", "items": "null"}
EMPTY = {"type": "array", "items": record("E", [{"name": "f", "type": "null"}] * 1)}
WIDE = record("W", [{"name": f"f{index}", "type": "null"} for index in range(1000)])
FLAGGED = record("B", [{"name": "b", "type": "boolean"}, {"name": "w", "type": WIDE}])
ID = {"name": "id", "type": "int"}


AVRO_BOMBS: dict[str, tuple[Any, bytes]] = {
    "nulls": (NULLS, zigzag(900) * 5_000 + b"\0"),
    "records without bytes": (EMPTY, zigzag(900) * 5_000 + b"\0"),
    "one block": (NULLS, zigzag(2**62) + b"\0"),
    "wide items of one byte": (
        {"type": "array", "items": FLAGGED},
        zigzag(5_000) + b"\1" * 5_000 + b"\0",
    ),
    "wide entries": (
        {"type": "map", "values": WIDE},
        zigzag(2_000) + b"\2a" * 2_000 + b"\0",
    ),
    "wide items in items": (
        {"type": "array", "items": {"type": "array", "items": WIDE}},
        zigzag(2_000) + (zigzag(1) + b"\0") * 2_000 + b"\0",
    ),
    "a union of wide records": (
        {"type": "array", "items": ["null", "string", WIDE]},
        zigzag(2_000) + zigzag(2) * 2_000 + b"\0",
    ),
}


def avro(kind: Any, bodies: Sequence[bytes], *, form: str = "avro") -> Decoded:
    registry = Registered()
    number = registry.add(json.dumps(record("Item", [ID, {"name": "x", "type": kind}])))
    data_format = load_data_format(form, FormatSettings(schemas=registry))
    return data_format.decode(chunk_of([framed(number, body) for body in bodies]), {}, {})


@pytest.mark.parametrize("messages", [1, 20], ids=["one by one", "together"])
@pytest.mark.parametrize("bomb", AVRO_BOMBS)
def test_an_avro_message_beyond_its_budget_is_rejected_alone(bomb: str, messages: int) -> None:
    kind, body = AVRO_BOMBS[bomb]
    bodies = [zigzag(1) + body, zigzag(2) + b"\0"] * messages
    decoded = avro(kind, bodies)
    found = [
        (rejected_record.offset, rejected_record.stage, rejected_record.reason)
        for rejected_record in decoded.rejected
    ]
    bad = range(0, 2 * messages, 2)
    assert found == [(offset, "decode", "too-many-cells") for offset in bad]
    size = 5 + len(bodies[0])
    assert f"{most_cells(size):,} cells" in decoded.rejected[0].message
    assert f"{size:,} bytes" in decoded.rejected[0].message
    assert [value for b in decoded.batches for value in b.columns["id"].to_pylist()] == [
        2
    ] * messages


@pytest.mark.parametrize("messages", [1, 20], ids=["one by one", "together"])
def test_the_budget_is_counted_to_the_cell(messages: int) -> None:
    body = zigzag(LEAST_CELLS + CELLS_PER_BYTE * 10)  # of 5 + 1 + 3 + 1 bytes
    bodies = [zigzag(0) + body + b"\0", zigzag(0) + zigzag(most_cells(10) + 1) + b"\0"] * messages
    assert {len(body) for body in bodies} == {5}
    decoded = avro(NULLS, bodies)
    assert [rejected_record.offset for rejected_record in decoded.rejected] == list(
        range(1, 2 * messages, 2)
    )
    assert [len(x) for b in decoded.batches for x in b.columns["x"].to_pylist()] == [
        most_cells(10)
    ] * messages


def test_items_with_a_cell_and_a_byte_each_are_never_too_many() -> None:
    count = 300_000
    decoded = avro(
        {"type": "array", "items": "int"}, [b"\0" + zigzag(count) + b"\4" * count + b"\0"]
    )
    assert decoded.rejected == []
    assert decoded.batches[0].columns["x"].to_pylist() == [[2] * count]


def test_an_envelope_and_a_key_beyond_their_budget_are_rejected_alone() -> None:
    registry = Registered()
    bomb: dict[str, Any] = {"name": "x", "type": NULLS}
    rows = [{"id": 1, "x": [None] * 50_000}, {"id": 2, "x": [None]}]
    values = registry.avro(envelope([ID, bomb]), *(avro_event("c", row) for row in rows))
    data_format = load_data_format("debezium-avro", FormatSettings(schemas=registry))
    decoded = data_format.decode(chunk_of(values), {}, {})
    assert [
        (rejected_record.offset, rejected_record.stage, rejected_record.reason)
        for rejected_record in decoded.rejected
    ] == [(0, "decode", "too-many-cells")]
    assert decoded.batches[0].columns["id"].to_pylist() == [2]
    values = registry.avro(envelope([ID]), *(avro_event("c", {"id": one}) for one in (1, 2)))
    keys = registry.avro(record("Key", [ID, bomb]), *rows)
    decoded = data_format.decode(chunk_of(values, keys), {}, {})
    assert [
        (rejected_record.offset, rejected_record.stage, rejected_record.reason)
        for rejected_record in decoded.rejected
    ] == [(0, "key", "too-many-cells")]


FIELDS = " ".join(f"optional string f{index} = {index};" for index in range(1, 1001))
PROTO = (
    """syntax = "proto3"; message Item { int64 id = 1; repeated Wide many = 2;
    map<string, Wide> named = 3; Wide one = 4; repeated bool flags = 5; Outer outer = 6; }
    message Outer { repeated Wide many = 2; } message Wide { """
    + FIELDS
    + "}"
)
PROTO_BOMBS = {
    "empty messages": b"\x12\0" * 2_000,
    "entries without anything": b"\x1a\0" * 2_000,
    "one field time and again": b"\x22\0" * 2_000,
    "messages in a message": b"\x32\xa0\x1f" + b"\x12\0" * 2_000,
}


@pytest.mark.parametrize("bomb", PROTO_BOMBS)
def test_a_protobuf_message_beyond_its_budget_is_rejected_alone(bomb: str) -> None:
    registry = Registered()
    number = registry.add(PROTO, "PROTOBUF")
    data_format = load_data_format("protobuf", FormatSettings(schemas=registry))
    bodies = [PROTO_BOMBS[bomb], b"\x08\2" + b"\x12\0" * 5, b"\x2a\x90\x4e" + b"\1" * 10_000]
    decoded = data_format.decode(
        chunk_of([framed(number, b"\0" + body) for body in bodies]), {}, {}
    )
    assert [
        (rejected_record.offset, rejected_record.reason) for rejected_record in decoded.rejected
    ] == [(0, "too-many-cells")]
    assert decoded.batches[0].columns["id"].to_pylist() == [2, 0]
    assert len(decoded.batches[0].columns["flags"].to_pylist()[1]) == 10_000


def rows_type(width: int) -> DataType:
    fields = tuple(DataField(index, f"f{index}", DataType("INT")) for index in range(width))
    return DataType("ARRAY", element=DataType("ROW", fields=fields))


@pytest.mark.parametrize(
    "kind",
    [rows_type(1000), DataType("MAP", key=DataType("STRING"), value=rows_type(1000).element)],
    ids=["array", "map"],
)
def test_json_of_empty_rows_beyond_its_budget_is_rejected_alone(kind: DataType) -> None:
    small: Any = [{}] * 3 if kind.element else {"a": {}}
    large: Any = [{}] * 2_000 if kind.element else {str(index): {} for index in range(2_000)}
    values = [event("c", {"id": 1, "x": large}), event("c", {"id": 2, "x": small})]
    declared = {TABLE: {"x": kind}}
    found = [
        outcome(decoder, [chunk(values)], declared=declared)[0]
        for decoder in (*both_decoders(), in_python(load_data_format("debezium-json")))
    ]
    assert found[0] == found[1] == found[2]
    (rejected,) = found[0]["rejected"]  # type: ignore[misc]  # a list
    assert (rejected.offset, rejected.stage, rejected.reason) == (0, "cast", "too-many-cells")
    assert rejected.message.startswith("the value of column x makes more than")


def test_an_entry_of_a_map_in_json_counts_as_its_key_and_its_value() -> None:
    raw = b'{"a":{}}'
    left = most_cells(len(raw)) - 2
    kinds = [DataType("MAP", key=DataType("STRING"), value=rows_type(width).element)
             for width in (left, left + 1)]  # fmt: skip
    assert len(read_cell(raw, kinds[0])) == 1  # type: ignore[arg-type]
    with pytest.raises(CellBudgetError):
        read_cell(raw, kinds[1])
