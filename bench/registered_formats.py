"""How fast formats with registered schemas are decoded, beside fastavro's bare read of Avro.

python -m bench.registered_formats [--records N] [--rounds N]

Processor time of one thread, the best of the rounds, the same changes as in `bench.formats`.
"""

import argparse
import io
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import numpy as np

from bench.format_messages import changes
from ingestd.cdc.base import FormatSettings, RecordChunk, load_data_format
from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaId

_CHUNK = 5000
_COLUMNS = {
    "id": "long",
    "tenant": "int",
    "status": "string",
    "total": "double",
    "note": "string",
    "email": "string",
    "qty": "int",
    "vip": "boolean",
    "city": "string",
    "created": "long",
}
_NUMBERS = {"long": "int64", "int": "int32", "boolean": "bool"}
_KEY, _ROW, _EVENT, _PROTO = 1, 2, 3, 4
Schema = dict[str, Any]


def _record(name: str, columns: Mapping[str, Any]) -> Schema:
    fields = [{"name": field, "type": kind} for field, kind in columns.items()]
    return {"type": "record", "name": name, "fields": fields}


def _schemas() -> dict[int, Schema]:
    row = _record("Value", {name: ["null", kind] for name, kind in _COLUMNS.items()})
    source = {"db": "string", "schema": "string", "table": "string", "snapshot": "string"}
    source |= {"connector": "string", "ts_ms": "long", "lsn": "long"}
    fields = {"before": ["null", row], "after": ["null", "Value"], "op": "string", "ts_ms": "long"}
    event = _record("Envelope", {**fields, "source": _record("Source", source)})
    return {_KEY: _record("Key", {"id": "long"}), _ROW: row, _EVENT: event}


def _proto() -> str:
    fields = "".join(
        f"optional {_NUMBERS.get(kind, kind)} {name} = {number};"
        for number, (name, kind) in enumerate(_COLUMNS.items(), 1)
    )
    return f'syntax = "proto3"; message Value {{ {fields} }}'


def registered_schema(schema_id: SchemaId) -> RegisteredSchema:
    """The schema with an id; that of the messages in Protobuf, of a key, a row or an event."""
    if schema_id == _PROTO:
        return RegisteredSchema("PROTOBUF", _proto())
    return RegisteredSchema("AVRO", json.dumps(_schemas()[int(schema_id)]))


class _Lookup:
    """The schemas of this benchmark."""

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        return registered_schema(schema_id)


def _framed(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def _writer(number: int) -> Callable[[Any], bytes]:
    parsed = fastavro.parse_schema(_schemas()[number])

    def write(value: object) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        return _framed(number, out.getvalue())

    return write


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _proto_message(row: Mapping[str, Any]) -> bytes:
    parts = [b"\0"]
    for number, (name, kind) in enumerate(_COLUMNS.items(), 1):
        if kind == "double":
            parts.append(_varint(number << 3 | 1) + np.float64(row[name]).tobytes())
        elif kind == "string":
            text = row[name].encode()
            parts.append(_varint(number << 3 | 2) + _varint(len(text)) + text)
        else:
            parts.append(_varint(number << 3) + _varint(int(row[name])))
    return _framed(_PROTO, b"".join(parts))


def registered_messages(name: str, count: int) -> tuple[list[bytes], list[bytes]]:
    """Keys and values of the messages of a format."""
    found = changes(count)
    key, row, event = _writer(_KEY), _writer(_ROW), _writer(_EVENT)
    keys = [key({"id": number}) for number, _, _, _ in found]
    if name == "avro":
        return keys, [row(after) for _, _, after, _ in found]
    if name == "protobuf":
        return keys, [_proto_message(after) for _, _, after, _ in found]
    source = {"db": "shop", "schema": "inv", "table": "item", "snapshot": "false"}
    source |= {"connector": "postgresql"}
    values = [
        event(
            {
                "before": before if operation != "d" else after,
                "after": None if operation == "d" else after,
                "op": operation,
                "ts_ms": 1_750_000_000_000,
                "source": {**source, "ts_ms": 1_750_000_000_000, "lsn": number},
            }
        )
        for number, operation, after, before in found
    ]
    return keys, values


def _best(rounds: int, work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def _decode_seconds(name: str, keys: list[bytes], values: list[bytes], rounds: int) -> float:
    offsets = np.arange(len(values), dtype=np.int64)
    chunks = []
    for start in range(0, len(values), _CHUNK):
        part = slice(start, start + _CHUNK)
        own: list[bytes | None] = [None] * len(offsets[part])
        own = own if name == "protobuf" else [*keys[part]]
        where = offsets[part]
        chunks.append(RecordChunk("shop.inv.item", 0, where, where, own, [*values[part]], None))
    data_format = load_data_format(name, FormatSettings(schemas=_Lookup()))
    if any(data_format.decode(chunk, {}, {}).rejected for chunk in chunks):
        raise ValueError(f"{name}: records were rejected")
    return _best(rounds, lambda: [data_format.decode(chunk, {}, {}) for chunk in chunks])


def _bare_seconds(name: str, values: list[bytes], rounds: int) -> float | None:
    if name == "protobuf":
        return None
    parsed = fastavro.parse_schema(_schemas()[_ROW if name == "avro" else _EVENT])
    read = fastavro.schemaless_reader
    return _best(rounds, lambda: [read(io.BytesIO(value[5:]), parsed, None) for value in values])


def main(arguments: list[str]) -> None:
    """Print a line for each format."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args(arguments)
    sys.stdout.write("format               records/s fastavro/s  bytes/record\n")
    for name in ("debezium-avro", "avro", "protobuf"):
        keys, values = registered_messages(name, wanted.records)
        rate = wanted.records / _decode_seconds(name, keys, values, wanted.rounds)
        bare = _bare_seconds(name, values, wanted.rounds)
        shown = "-" if bare is None else f"{wanted.records / bare:,.0f}"
        size = sum(map(len, values)) / len(values)
        sys.stdout.write(f"{name:20}{rate:10,.0f} {shown:>10} {size:13.0f}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
