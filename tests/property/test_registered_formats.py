"""Formats with registered schemas: any schema, any bytes, and neighbours that are not disturbed."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any
from unittest import mock

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.cdc.avro import reader as avro_reader
from ingestd.cdc.avro.nodes import parse_avro
from ingestd.cdc.avro.reader import AvroReader
from ingestd.cdc.base import FormatSettings, load_data_format
from tests.support.registered import Registered, chunk_of, envelope, event, framed, record

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=9),
    "string": TEXT,
}
Typed = tuple[Any, st.SearchStrategy[Any]]


@st.composite
def types(draw: st.DrawFn, depth: int = 3) -> Typed:
    """A schema and the values it has."""
    shapes = ["simple", "fixed", "enum"]
    if depth:
        shapes += ["nullable", "array", "map", "record"]
    shape = draw(st.sampled_from(shapes))
    name = "N"
    if shape == "simple":
        kind = draw(st.sampled_from(sorted(SIMPLE)))
        return kind, SIMPLE[kind]
    if shape == "fixed":
        size = draw(st.integers(0, 5))
        fixed = {"type": "fixed", "name": name, "size": size}
        return fixed, st.binary(min_size=size, max_size=size)
    if shape == "enum":
        return {"type": "enum", "name": name, "symbols": ["A", "B", "C"]}, st.sampled_from("ABC")
    if shape == "record":
        fields = draw(st.lists(types(depth - 1), min_size=1, max_size=3))
        named = [{"name": f"f{n}", "type": inner} for n, (inner, _) in enumerate(fields)]
        values = st.fixed_dictionaries({f"f{n}": v for n, (_, v) in enumerate(fields)})
        return {"type": "record", "name": name, "fields": named}, values
    inner, values = draw(types(depth - 1))
    if shape == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=4)
    if shape == "map":
        return {"type": "map", "values": inner}, st.dictionaries(TEXT, values, max_size=3)
    return ["null", inner] if draw(st.booleans()) else [inner, "null"], st.none() | values


def numbered(schema: Any, numbers: Iterator[int]) -> Any:
    """The schema with a name of its own for every named type."""
    if isinstance(schema, list):
        return [numbered(field, numbers) for field in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: numbered(one, numbers) for key, one in schema.items()}
    return {**found, "name": f"N{next(numbers)}"} if schema.get("name") == "N" else found


@st.composite
def histories(draw: st.DrawFn) -> tuple[Any, list[Any], list[bytes]]:
    """A schema, values, and as many odd bytes."""
    inner, values = draw(types())
    rows = draw(st.lists(values, min_size=1, max_size=6)) * draw(st.sampled_from([1, 5]))
    irregular = draw(st.lists(st.binary(max_size=20), min_size=len(rows), max_size=len(rows)))
    top = record("Top", [{"name": "x", "type": numbered(inner, count())}])
    return top, rows, irregular


def same(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(got, list):
        got = dict(got)
    if isinstance(wanted, dict):
        return wanted.keys() == got.keys() and all(same(wanted[k], got[k]) for k in wanted)
    if isinstance(wanted, list):
        return len(wanted) == len(got) and all(map(same, wanted, got))
    return type(wanted) is type(got) and bool(wanted == got)


@given(histories())
@settings(max_examples=120, deadline=None)
def test_avro_of_any_schema_is_read_as_it_was_written(history: tuple[Any, Any, Any]) -> None:
    schema, rows, irregular = history
    node = parse_avro(json.dumps(schema))
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    messages = []
    for row, bad in zip(rows, irregular, strict=True):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {"x": row})
        messages += [out.getvalue(), bad]
    native = AvroReader().read(messages, 0, node)
    with mock.patch.object(avro_reader, "native_module", lambda: None):
        python = AvroReader().read(messages, 0, node)
    array = native.arrays["x"]
    array.validate(full=True)
    assert not native.bad[::2].any()
    assert all(map(same, rows, array.to_pylist()[::2]))
    assert np.array_equal(native.bad, python.bad)
    assert np.array_equal(native.over, python.over)
    valid = pa.array(np.flatnonzero(~native.bad))
    assert array.take(valid).equals(python.arrays["x"].take(valid))
    assert np.array_equal(AvroReader().read(messages, 0, node, {}).bad, native.bad)
    for index in np.flatnonzero(~native.bad[1::2]).tolist():
        data = io.BytesIO(irregular[index])
        judged = fastavro.schemaless_reader(data, parsed, None)
        assert same(judged["x"], array.to_pylist()[2 * index + 1]) and not data.read()


FIELDS = [
    {"name": "id", "type": "int"},
    {"name": "n", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9}]},
    {"name": "v", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
    {"name": "u", "type": ["null", "int", "string"]},
    {"name": "m", "type": {"type": "map", "values": "long"}},
]
PLAIN = [{**FIELDS[1], "type": ["null", "bytes"]}]
ROW = {"id": 1, "n": b"\1", "v": ["a", None], "u": "x", "m": {"k": 1}}
PROTO = """syntax = "proto3"; message A { int64 id = 1; repeated int32 n = 2; map<string, A> m = 3;
  A inner = 4; string s = 5; } message B { A a = 1; }"""


def corpus(data_format: str) -> tuple[Registered, list[bytes]]:
    registry = Registered()
    if data_format == "protobuf":
        registry.add(PROTO, "PROTOBUF")
        body = b"\0\x08\x05\x12\x02\1\2\x1a\x05\x0a\1k\x12\0\x22\2\x08\1\x2a\1s"
        return registry, [framed(1, body)]
    row = [field for field in FIELDS if field["name"] != "n"] + PLAIN
    if data_format == "avro":
        messages = registry.avro(record("R", row), ROW)
        registry.add(json.dumps(record("R", [*row[:-1], FIELDS[1]])))
    else:
        messages = registry.avro(
            envelope(row), event("c", ROW), event("u", ROW, ROW), event("d", None, ROW)
        )
        registry.add(json.dumps(envelope([*row[:-1], FIELDS[1]])))
    return registry, [*messages, *(framed(2, message[5:]) for message in messages)]


@st.composite
def damaged(draw: st.DrawFn, messages: list[bytes]) -> bytes | None:
    """A message with bytes changed, added or cut off, or anything at all."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.none() | st.binary(max_size=40))
    data = bytearray(draw(st.sampled_from(messages)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(data) - 1))
        data[place] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))] if kind == 1 else data)


@given(st.data(), st.sampled_from(["debezium-avro", "avro", "protobuf"]))
@settings(max_examples=150, deadline=None)
def test_every_damaged_record_is_counted_exactly_once(data: st.DataObject, name: str) -> None:
    registry, messages = corpus(name)
    values = data.draw(st.lists(damaged(messages), min_size=1, max_size=8))
    keys = data.draw(
        st.lists(st.none() | damaged(messages), min_size=len(values), max_size=len(values))
    )
    data_format = load_data_format(name, FormatSettings(schemas=registry))
    decoded = data_format.decode(chunk_of([*values, messages[0]], [*keys, None]), {}, {})
    seen = [rejected_record.offset for rejected_record in decoded.rejected]
    seen += [truncate.offset for truncate in decoded.truncates]
    for batch in decoded.batches:
        batch.columns.validate(full=True)
        seen += sorted(set(batch.offset.tolist()))
    assert len(seen) == len(set(seen))
    assert len(seen) + decoded.control == len(values) + 1
    assert len(values) in seen


@given(st.data(), st.sampled_from(["debezium-avro", "avro"]))
@settings(max_examples=40, deadline=None)
def test_messages_in_memory_of_the_kafka_client_are_decoded_as_lists(
    data: st.DataObject, name: str
) -> None:
    texts = pytest.importorskip("ingestd_native").Texts
    registry, messages = corpus(name)
    drawn = data.draw(st.lists(st.none() | damaged(messages), min_size=1, max_size=8))
    values = [messages[0], *drawn]
    size = len(values)
    keys = data.draw(
        st.just([None] * size)
        | st.lists(st.none() | damaged(messages), min_size=size, max_size=size)
    )
    chunk = chunk_of(values, keys)
    in_memory = replace(chunk, keys=texts(keys), values=texts(values))
    data_format = load_data_format(name, FormatSettings(schemas=registry))
    expected, decoded = (data_format.decode(it, {}, {}) for it in (chunk, in_memory))
    assert decoded.rejected == expected.rejected
    assert decoded.control == expected.control
    for batch, other in zip(decoded.batches, expected.batches, strict=True):
        assert batch.columns.equals(other.columns)
        assert batch.offset.tolist() == other.offset.tolist()
