"""Values that are no text, in columns that are declared as STRING."""

import json
from typing import Any

import pytest

from ingestd.cdc.base import FormatSettings, RecordChunk, SourceTable, load_data_format
from ingestd.paimon.spec.data_types import parse_type
from tests.support import registered
from tests.support.change_events import TABLE, chunk, event, field, wrapped
from tests.support.decoded import both_decoders

ITEMS = {"type": "string", "optional": True}
STRING = parse_type("STRING")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (field("v", "array", items={"type": "int32", "optional": True}), [1, None]),
        (field("v", "array", items=ITEMS), ['a"b', None, ""]),
        (field("v", "map", keys={"type": "string"}, values={"type": "double"}), {"a": 1.5}),
        (field("v", "array", items={"type": "array", "items": ITEMS}), [["a"], []]),
    ],
    ids=str,
)
def test_arrays_and_maps_with_a_schema_are_json(column: dict[str, Any], value: Any) -> None:
    columns = [field("id", "int32"), column]
    values = [event("c", {"id": 1, "v": value}), event("c", {"id": 2, "v": None})]
    for decoder in both_decoders():
        decoded = decoder.decode(
            chunk([wrapped(one, columns) for one in values]), {}, {TABLE: {"v": STRING}}
        )
        assert decoded.rejected == []
        texts = decoded.batches[0].columns.column("v").to_pylist()
        assert (json.loads(texts[0]), texts[1]) == (value, None)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "array", "items": ["null", "string"]}, ['a"b', None]),
        ({"type": "map", "values": "double"}, {"a": 1.5}),
    ],
    ids=str,
)
def test_arrays_and_maps_of_avro_are_json(kind: Any, value: Any) -> None:
    registry = registered.Registered()
    schema = registered.envelope(
        [{"name": "id", "type": "int"}, {"name": "v", "type": ["null", kind]}]
    )
    values = registry.avro(
        schema,
        registered.event("c", {"id": 1, "v": value}),
        registered.event("c", {"id": 2, "v": None}),
    )
    data_format = load_data_format("debezium-avro", FormatSettings(schemas=registry))
    table = SourceTable("inv", "public", "item")
    decoded = data_format.decode(registered.chunk_of(values), {}, {table: {"v": STRING}})
    assert decoded.rejected == []
    texts = decoded.batches[0].columns.column("v").to_pylist()
    assert (json.loads(texts[0]), texts[1]) == (value, None)


def test_sets_and_bit_strings_of_canal_are_their_text() -> None:
    message = {
        "data": [
            {"id": "1", "s": "3", "e": "2", "b": "5", "flag": "1"},
            {"id": "2", "s": "x", "e": "a", "b": "255", "flag": "0"},
            {"id": "3", "s": None, "e": None, "b": None, "flag": None},
        ],
        "type": "INSERT", "database": "db", "table": "t", "pkNames": ["id"], "isDdl": False,
        "mysqlType": {
            "id": "int", "s": "set('x','y')", "e": "enum('a','b')", "b": "bit(9)", "flag": "bit(1)",
        },
        "es": 1, "ts": 2,
    }  # fmt: skip
    names = ("s", "e", "b", "flag")
    for decoder in both_decoders("canal-json"):
        found = decoder.decode(
            _canal(message), {}, {SourceTable("db", None, "t"): dict.fromkeys(names, STRING)}
        )
        assert found.rejected == []
        rows = found.batches[0].columns.select(names).to_pylist()
        assert [tuple(row.values()) for row in rows] == [
            ("x,y", "b", "000000101", "1"), ("x", "a", "011111111", "0"), (None,) * 4,
        ]  # fmt: skip


def _canal(message: dict[str, Any]) -> RecordChunk:
    return chunk([json.dumps(message).encode()])
