"""Sound messages of every data format, from which the odd ones are made."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from ingestd.cdc.base import DATA_FORMATS
from tests.fuzz.cases import Case, Message
from tests.support import cdc_samples, corpus
from tests.support.captured_avro import schema_texts
from tests.support.captured_chunks import mariadb
from tests.support.registered import Registered, envelope, event, framed, record

FORMATS = tuple(sorted(DATA_FORMATS))
_EACH = 3
"""Messages of a table in a case."""
_LARGEST = 20_000
_DATA_WORKS = {
    "schema": {
        "dataColumn": [
            {"name": "id", "type": "LONG"},
            {"name": "at", "type": "DATE"},
            {"name": "n", "type": "DOUBLE"},
            {"name": "ok", "type": "BOOLEAN"},
            {"name": "raw", "type": "BYTES"},
        ],
        "primaryKey": ["id"],
        "source": {"dbName": "inv", "tableName": "item"},
    },
    "payload": {
        "before": {"dataColumn": {"id": 2, "at": 1731661114000, "n": 1.5, "ok": True}},
        "after": {"dataColumn": {"id": "3", "at": None, "n": 2, "ok": False, "raw": "AQ=="}},
        "sequenceId": "1731663842292000001",
        "op": "UPDATE_AFTER",
        "ddl": None,
    },
}
_FIELDS: Sequence[Any] = [
    {"name": "id", "type": "int"},
    {"name": "v", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
    {"name": "u", "type": ["null", "int", "string"]},
    {"name": "m", "type": {"type": "map", "values": "long"}},
    {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
    {"name": "f", "type": ["null", {"type": "fixed", "name": "F", "size": 3}]},
    {"name": "d", "type": ["double", "null"]},
    {"name": "b", "type": "boolean"},
    {"name": "r", "type": ["null", record("R2", [{"name": "x", "type": "float"}])]},
    {"name": "n", "type": ["null", "bytes"]},
    {"name": "at", "type": "long"},
]
_ROW = {
    "id": 1, "v": ["a", None, "é"], "u": "x", "m": {"k": 1, "l": -5}, "e": "B", "f": b"abc",
    "d": 1.25, "b": True, "r": {"x": 0.5}, "n": b"\1\2", "at": 1_700_000_000_000_000,
}  # fmt: skip
_LOGICAL = {
    "n": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
    "at": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
}
_PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message A { int64 id = 1; repeated int32 n = 2; map<string, A> m = 3; A inner = 4; string s = 5;
  bytes raw = 6; double d = 7; float f = 8; bool b = 9; sint32 z = 10; fixed64 x = 11; Kind k = 12;
  google.protobuf.Timestamp at = 13; confluent.type.Decimal amount = 14; optional uint64 o = 15;
  oneof c { string left = 16; B right = 17; } enum Kind { NEW = 0; OLD = 1; } }
message B { A a = 1; }"""
_PROTO_BODY = (
    b"\x08\x05\x12\x02\1\2\x1a\x05\x0a\1k\x12\0\x22\2\x08\1\x2a\1s\x32\1\xff"
    b"\x39\0\0\0\0\0\0\xf8\x3f\x45\0\0\x80\x3f\x48\1\x50\3\x59\1\0\0\0\0\0\0\0\x60\1"
    b"\x6a\4\x08\5\x10\6\x72\7\x0a\1\x05\x10\x05\x18\1\x78\7\x8a\1\2\x0a\0"
)


@cache
def seeds(data_format: str) -> tuple[Case, ...]:
    """Cases whose messages are all sound."""
    find = {
        "debezium-avro": _debezium_avro,
        "avro": _avro,
        "protobuf": _protobuf,
        "raw": _raw,
    }.get(data_format)
    if find is not None:
        return tuple(find())
    found = [*_collected(data_format)]
    if data_format == "debezium-json":
        found += _tables(data_format, _captured("json-schema"))
        found += _tables(data_format, _captured("json"))
        found += _tables(data_format, _mariadb())
    if data_format == "debezium-flat-json":
        found += _tables(data_format, _captured("flat"))
    if data_format == "aliyun-json":
        found.append(_case(data_format, [(None, json.dumps(_DATA_WORKS).encode())]))
    return tuple(found)


def _case(data_format: str, messages: Sequence[Message], schemas: Sequence[str] = ()) -> Case:
    return Case(data_format, tuple(messages), tuple(messages), tuple(schemas))


def _collected(data_format: str) -> Iterator[Case]:
    for sample in cdc_samples.samples():
        if sample.format == data_format and sample.value is not None:
            key, value = (
                None if part is None else json.dumps(part).encode()
                for part in (sample.key, sample.value)
            )
            yield _case(data_format, [(key, value)])


Named = tuple[str, bytes | None, bytes | None]


def _captured(mode: corpus.Mode) -> Iterator[Named]:
    return ((one.topic, one.key, one.value) for one in corpus.captured(mode))


def _mariadb() -> Iterator[Named]:
    for chunk in mariadb():
        yield from ((chunk.topic, *pair) for pair in zip(chunk.keys, chunk.values, strict=True))


def _tables(data_format: str, records: Iterable[Named]) -> Iterator[Case]:
    """A case for each topic, of its first messages."""
    ordered = sorted(records, key=lambda record: record[0])
    for _, named in groupby(ordered, key=lambda one: one[0]):
        sound = [(key, value) for _, key, value in named if value is None or len(value) < _LARGEST]
        picked = [*sound[:2], *sound[len(sound) // 2 :][: _EACH - 2]]
        if picked:
            yield _case(data_format, picked)


def _debezium_avro() -> Iterator[Case]:
    for fields in (_FIELDS, [_logical(field) for field in _FIELDS]):
        registry = Registered()
        messages = registry.avro(
            envelope(_FIELDS), event("c", _ROW), event("u", _ROW, _ROW), event("d", None, _ROW)
        )
        key = record("Key", [_FIELDS[0]])
        keys = registry.avro(key, {"id": 1})
        pairs = [(keys[0], message) for message in messages]
        yield _case("debezium-avro", pairs, [json.dumps(envelope(fields)), json.dumps(key)])
    yield from _captured_avro()


def _logical(one: Any) -> Any:
    return {**one, "type": _LOGICAL.get(one["name"], one["type"])}


def _captured_avro() -> Iterator[Case]:
    """Captured messages, their schemas numbered again."""
    ordered = sorted(_captured("avro-inline"), key=lambda one: one[0])
    for _, named in groupby(ordered, key=lambda one: one[0]):
        numbers: dict[int, int] = {}
        messages: list[Message] = []
        for _, key, value in list(named)[:_EACH]:
            parts = []
            for part in (key, value):
                if part is None:
                    parts.append(None)
                    continue
                number = int.from_bytes(part[1:5], "big")
                parts.append(framed(numbers.setdefault(number, len(numbers) + 1), part[5:]))
            messages.append((parts[0], parts[1]))
        yield _case("debezium-avro", messages, [schema_texts(number)[0] for number in numbers])


def _avro() -> Iterator[Case]:
    for fields in (_FIELDS, [_logical(field) for field in _FIELDS]):
        messages = Registered().avro(record("R", _FIELDS), _ROW, {**_ROW, "v": None, "u": 5})
        yield _case(
            "avro", [(None, message) for message in messages], [json.dumps(record("R", fields))]
        )


def _protobuf() -> Iterator[Case]:
    for start in (b"\0", b"\2\0", b"\2\2"):
        messages = [framed(1, start + _PROTO_BODY), framed(1, start + _PROTO_BODY[:2])]
        yield _case("protobuf", [(None, message) for message in messages], [_PROTO])


def _raw() -> Iterator[Case]:
    yield _case("raw", [(b"k", b"v"), (None, b"\xff\0"), (b"", b"")])
