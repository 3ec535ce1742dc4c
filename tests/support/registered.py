"""Messages framed for a schema registry, and the registry as a table in memory."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import fastavro
import numpy as np

from ingestd.cdc.base import RecordChunk
from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaId, SchemaKind
from ingestd.errors import SourceError

Schema = Mapping[str, Any] | Sequence[Any] | str
SOURCE: Schema = {
    "type": "record",
    "name": "Source",
    "namespace": "tests",
    "fields": [
        {"name": "version", "type": "string"},
        {"name": "snapshot", "type": ["string", "null"]},
        {"name": "db", "type": "string"},
        {"name": "schema", "type": "string"},
        {"name": "table", "type": "string"},
        {"name": "lsn", "type": ["null", "long"]},
        {"name": "ts_us", "type": ["null", "long"]},
    ],
}


class Registered:
    """A lookup over schemas given by hand; `down` makes it answer nothing."""

    def __init__(self) -> None:
        self._schemas: dict[SchemaId, RegisteredSchema] = {}
        self.down = False
        self.asked: list[SchemaId] = []

    def add(self, text: str, kind: SchemaKind = "AVRO", references: Iterable[str] = ()) -> int:
        """Register a schema; its id."""
        number = len(self._schemas) + 1
        inner = tuple(RegisteredSchema(kind, reference) for reference in references)
        self._schemas[number] = RegisteredSchema(kind, text, inner)
        return number

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        self.asked.append(schema_id)
        if self.down:
            raise SourceError("the registry is down")
        return self._schemas.get(schema_id)

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        """All that were registered before, the newest first."""
        if self.down:
            raise SourceError("the registry is down")
        numbers = sorted(
            (schema for schema in self._schemas if str(schema) < str(schema_id)), reverse=True
        )
        return tuple(self._schemas[number] for number in numbers)

    def avro(self, schema: Schema, *values: Any) -> list[bytes]:
        """Messages of a schema that is registered for them."""
        number = self.add(json.dumps(schema))
        parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
        return [framed(number, _body(parsed, value)) for value in values]


def framed(number: int, body: bytes) -> bytes:
    """A message with its schema id before it."""
    return b"\0" + number.to_bytes(4, "big") + body


def _body(parsed: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, value)
    return out.getvalue()


def envelope(fields: Sequence[Mapping[str, Any]]) -> Schema:
    """The schema of change events of a table with these columns."""
    row = {"type": "record", "name": "Value", "namespace": "tests", "fields": fields}
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "tests",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": SOURCE},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"]},
        ],
    }


def event(op: str, after: Any = None, before: Any = None, **source: Any) -> dict[str, Any]:
    """One change event of `inv.public.item`."""
    where = {"db": "inv", "schema": "public", "table": "item", "version": "3", "snapshot": "false"}
    return {
        "before": before,
        "after": after,
        "source": {**where, "lsn": 7, "ts_us": 1, **source},
        "op": op,
        "ts_ms": 2,
    }


def record(name: str, fields: Sequence[Mapping[str, Any]]) -> Schema:
    """A record schema."""
    return {"type": "record", "name": name, "fields": fields}


def chunk_of(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    *,
    topic: str = "p.public.item",
    headers: list[list[tuple[str, bytes | None]] | None] | None = None,
) -> RecordChunk:
    """Records at offsets 0, 1, 2, ..."""
    size = len(values)
    return RecordChunk(
        topic,
        0,
        np.arange(size, dtype=np.int64),
        np.full(size, 1_750_000_000_000, np.int64),
        [None] * size if keys is None else list(keys),
        list(values),
        headers,
    )
