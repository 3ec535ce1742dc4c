import json
import math
from datetime import UTC, date, datetime
from typing import Any

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, SourceTable, load_data_format
from ingestd.cdc.schema_lookup import Framing
from tests.support.registered import Registered, chunk_of, framed, record

ID = {"name": "id", "type": "long"}
KEY = record("Key", [ID])


def decode(registry: Registered, values: list[Any], keys: Any = None, **more: Any) -> Decoded:
    framing = more.pop("framing", Framing())
    data_format = load_data_format("avro", FormatSettings(schemas=registry, framing=framing))
    return data_format.decode(chunk_of(values, keys, **more), {}, {})


def test_each_message_is_a_row_of_the_table_that_the_topic_names() -> None:
    registry = Registered()
    values = registry.avro(record("Item", [ID]), {"id": 1}, {"id": 2})
    (batch,) = decode(registry, values, topic="shop.inv.item").batches
    assert batch.source == SourceTable("shop", "inv", "item")
    assert batch.columns.to_pydict() == {"id": [1, 2]}
    assert batch.primary_keys == () and batch.row_kind.tolist() == [0, 0]
    assert batch.position.tolist() == [-1, -1] and not batch.snapshot_row.any()


def test_with_a_key_a_message_without_value_deletes() -> None:
    registry = Registered()
    values = registry.avro(record("Item", [{"name": "n", "type": "int"}]), {"n": 5})
    keys = registry.avro(KEY, {"id": 1}, {"id": 2})
    decoded = decode(registry, [values[0], None, None], [*keys, None])
    rows = [
        (int(o), int(k), cells)
        for b in decoded.batches
        for o, k, cells in zip(b.offset, b.row_kind, b.columns.to_pylist(), strict=True)
    ]
    assert rows == [(0, 0, {"n": 5, "id": 1}), (1, 3, {"id": 2})]
    assert [batch.primary_keys for batch in decoded.batches] == [("id",), ("id",)]
    assert decoded.control == 1


def test_keys_without_a_schema_are_left_alone() -> None:
    registry = Registered()
    values = registry.avro(record("Item", [ID]), {"id": 1}, {"id": 2})
    decoded = decode(registry, [*values, None], [b"\0" * 8, b"text", b"text"])
    (batch,) = decoded.batches
    assert batch.primary_keys == () and batch.columns["id"].to_pylist() == [1, 2]
    assert decoded.control == 1 and decoded.rejected == []


def test_a_first_key_that_is_broken_does_not_lose_later_deletes() -> None:
    registry = Registered()
    values = registry.avro(record("Item", [{"name": "n", "type": "int"}]), {"n": 5})
    keys = registry.avro(KEY, {"id": 1}, {"id": 2})
    decoder = load_data_format("avro", FormatSettings(schemas=registry))
    broken = keys[0] + b"x"
    decoder.decode(chunk_of(values, [broken]), {}, {})
    decoded = decoder.decode(chunk_of([values[0], values[0], None], [broken, *keys]), {}, {})
    assert [b.row_kind.tolist() for b in decoded.batches] == [[0], [3]]
    assert [(bad.offset, bad.stage) for bad in decoded.rejected] == [(0, "key")]
    assert decoded.control == 0


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
LOGICAL: list[tuple[Any, Any, str, Any]] = [
    ({"type": "int", "logicalType": "date"}, 20255, "DATE", date(2025, 6, 16)),
    ({"type": "int", "logicalType": "time-millis"}, 1, "TIME(3)", None),
    ({"type": "long", "logicalType": "time-micros"}, 7, "BIGINT", 7),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        1,
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        datetime(1970, 1, 1, 0, 0, 0, 1000, UTC),
    ),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        -1,
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    ),
    (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        1,
        "TIMESTAMP(6)",
        datetime(1970, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001
    ),
    ({"type": "enum", "name": "E", "symbols": ["a", "b"]}, "b", "STRING", "b"),
    ({"type": "fixed", "name": "F", "size": 3}, b"\xff\0\1", "BYTES", b"\xff\0\1"),
    ("bytes", b"\xff\xfe\0", "BYTES", b"\xff\xfe\0"),
    ("float", 0.5, "FLOAT", 0.5),
    ("double", -1e300, "DOUBLE", -1e300),
    (["null", "boolean"], True, "BOOLEAN", True),
    (["string", "null"], None, "STRING", None),
    (["null", "int", "string"], "x", "STRING", '"x"'),
    (["int", "string"], 5, "STRING", "5"),
    ("null", None, "STRING", None),
    ({"type": "array", "items": ["null", "long"]}, [1, None], "ARRAY<BIGINT>", [1, None]),
    (
        {"type": "map", "values": ["null", "int"]},
        {"a": 1, "b": None},
        "MAP<STRING NOT NULL, INT>",
        [("a", 1), ("b", None)],
    ),
    ({"type": "array", "items": "int"}, [], "ARRAY<INT>", []),
    (
        {"type": "array", "items": {"type": "long", "logicalType": "timestamp-millis"}},
        [1],
        "ARRAY<TIMESTAMP(3) WITH LOCAL TIME ZONE>",
        [datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)],
    ),
    (
        {"type": "map", "values": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"a": 7},
        "MAP<STRING NOT NULL, TIMESTAMP(6) WITH LOCAL TIME ZONE>",
        [("a", datetime(1970, 1, 1, 0, 0, 0, 7, UTC))],
    ),
    (
        record("Price", [{"name": "of", "type": DECIMAL}]),
        {"of": b"\xff\x85"},
        "STRING",
        '{"of":-1.23}',
    ),
    (["null", "int", DECIMAL], b"\x04\xd2", "STRING", "12.34"),
    (
        {"type": "array", "items": record("Q", [{"name": "of", "type": ["null", DECIMAL]}])},
        [{"of": b"\x05"}, {"of": None}],
        "STRING",
        '[{"of":0.05},{"of":null}]',
    ),
]


def physical(schema: Any) -> Any:
    """The schema without logical types, so that the serializer takes the stored values."""
    if isinstance(schema, list):
        return [physical(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: physical(part) for key, part in schema.items() if key != "logicalType"}


@pytest.mark.parametrize(("schema", "value", "wanted", "cell"), LOGICAL, ids=str)
def test_types_are_those_of_the_schema(schema: Any, value: Any, wanted: str, cell: Any) -> None:
    registry = Registered()
    plain = physical(schema)
    (message,) = registry.avro(record("R", [{"name": "x", "type": plain}]), {"x": value})
    number = registry.add(json.dumps(record("R", [{"name": "x", "type": schema}])))
    decoded = decode(registry, [framed(number, message[5:])])
    assert decoded.rejected == []
    (batch,) = decoded.batches
    assert str(batch.types["x"]) == wanted
    if wanted != "TIME(3)":
        assert batch.columns["x"].to_pylist() == [cell]


@pytest.mark.parametrize("kind", ["bytes", "fixed"])
def test_decimals_are_exact(kind: str) -> None:
    registry = Registered()
    unscaled = 12345678901234567890123456789012345678
    inner = {"type": kind, "logicalType": "decimal", "precision": 38, "scale": 10}
    plain: dict[str, Any] = {"type": kind}
    if kind == "fixed":
        inner |= {"name": "D", "size": 16}
        plain |= {"name": "D", "size": 16}
    raw = [n.to_bytes(16, "big", signed=True) for n in (unscaled, -unscaled, 0)]
    messages = registry.avro(
        record("R", [{"name": "x", "type": plain}]), *({"x": value} for value in raw)
    )
    number = registry.add(json.dumps(record("R", [{"name": "x", "type": inner}])))
    (batch,) = decode(registry, [framed(number, message[5:]) for message in messages]).batches
    assert [str(value) for value in batch.columns["x"].to_pylist()] == [
        "1234567890123456789012345678.9012345678",
        "-1234567890123456789012345678.9012345678",
        "0E-10",
    ]


def test_numbers_that_json_lacks_are_texts_in_json() -> None:
    registry = Registered()
    inner = record("Inner", [{"name": "x", "type": "double"}, {"name": "y", "type": "float"}])
    fields = [
        {"name": "u", "type": ["null", "double", "string"]},
        {"name": "r", "type": inner},
        {"name": "l", "type": {"type": "array", "items": {"type": "array", "items": "double"}}},
    ]
    row = {"u": math.nan, "r": {"x": math.inf, "y": 0.5}, "l": [[-math.inf, 1.5], []]}
    decoded = decode(registry, registry.avro(record("Item", fields), row))
    assert decoded.batches[0].columns.to_pylist() == [
        {"u": '"NaN"', "r": '{"x":"Infinity","y":0.5}', "l": '[["-Infinity",1.5],[]]'}
    ]


def test_ids_in_headers_name_the_schema_of_a_body_without_frame() -> None:
    registry = Registered()
    values = registry.avro(record("Item", [ID]), {"id": 1}, {"id": 2})
    keys = registry.avro(KEY, {"id": 1}, {"id": 2})
    headers: list[Any] = [
        [("x", b"y"), ("__value_schema_id", values[0][:5]), ("__key_schema_id", keys[0][:5])],
        None,
    ]
    bodies, own = [values[0][5:], values[1]], [keys[0][5:], keys[1]]
    decoded = decode(registry, bodies, own, headers=headers, framing=Framing("auto"))
    assert [batch.columns.to_pydict() for batch in decoded.batches] == [{"id": [1]}, {"id": [2]}]
    only = decode(registry, bodies, own, headers=headers, framing=Framing("header"))
    assert [rejected_record.reason for rejected_record in only.rejected] == ["no-schema-id"]
    assert sum(len(batch.offset) for batch in only.batches) == 1


def test_ids_of_eight_bytes_are_read_when_asked_for() -> None:
    registry = Registered()
    (value,) = registry.avro(record("Item", [ID]), {"id": 3})
    wide = b"\0" + value[1:5].rjust(8, b"\0") + value[5:]
    (batch,) = decode(registry, [wide], framing=Framing("prefix", 8)).batches
    assert batch.columns["id"].to_pylist() == [3]


def test_what_is_no_record_is_refused() -> None:
    registry = Registered()
    decoded = decode(registry, registry.avro("string", "plain"))
    assert [rejected_record.reason for rejected_record in decoded.rejected] == ["not-an-object"]


@pytest.mark.parametrize("native", [True, False])
def test_a_map_has_the_last_value_of_a_repeated_key(
    native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Avro's GenericDatumReader, which puts entries into a hash map one after the other."""
    if not native:
        monkeypatch.setattr("ingestd.cdc.avro.reader.native_module", lambda: None)
    registry = Registered()
    schema = record("Item", [{"name": "m", "type": {"type": "map", "values": "int"}}])
    number = registry.add(json.dumps(schema))
    entry = {"a": b"\x02a", "b": b"\x02b"}
    repeated = b"\x06" + entry["a"] + b"\x02" + entry["b"] + b"\x04" + entry["a"] + b"\x06\0"
    values = [framed(number, body) for body in (repeated, b"\0", b"\x02" + entry["a"] + b"\x08\0")]
    (batch,) = decode(registry, values).batches
    assert [dict(value) for value in batch.columns["m"].to_pylist()] == [
        {"a": 3, "b": 2},
        {},
        {"a": 4},
    ]
    assert [len(value) for value in batch.columns["m"].to_pylist()] == [2, 0, 1]


def test_floats_in_json_text_have_the_digits_of_their_type() -> None:
    """As in the JSON that Connect's converter writes of the same values."""
    registry = Registered()
    inner = record("Inner", [{"name": "f", "type": "float"}, {"name": "d", "type": "double"}])
    schema = record("Item", [{"name": "m", "type": {"type": "array", "items": inner}}])
    values = registry.avro(schema, {"m": [{"f": 0.1, "d": 0.1}, {"f": 3.4028235e38, "d": -0.0}]})
    (batch,) = decode(registry, values).batches
    texts = [json.loads(text) for text in batch.columns["m"].to_pylist()]
    assert texts == [[{"f": 0.1, "d": 0.1}, {"f": 3.4028235e38, "d": 0.0}]]
