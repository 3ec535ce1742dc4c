"""Debezium messages made by hand, and chunks of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ingestd.cdc.base import RecordChunk, SourceTable

TABLE = SourceTable("shopdb", "public", "orders")
TOPIC = "shop.public.orders"


def event(
    op: str,
    after: Mapping[str, Any] | None = None,
    *,
    before: Mapping[str, Any] | None = None,
    table: SourceTable = TABLE,
    **source: Any,
) -> bytes:
    """A change event without schema; `source` adds to or overrides fields of source."""
    fields = {"connector": "postgresql", "snapshot": "false", "db": table.database}
    fields |= {"schema": table.schema, "table": table.table, "lsn": 1000} | source
    document = {"before": before, "after": after, "source": fields, "op": op, "ts_ms": 1}
    return json.dumps(document, ensure_ascii=False).encode()


def raw_event(after: str, op: str = "c") -> bytes:
    """A change event whose after image is this JSON text."""
    return event(op, {"@": 1}).replace(b'{"@": 1}', after.encode())


def key(**fields: Any) -> bytes:
    """A message key without schema."""
    return json.dumps(fields).encode()


def field(name: str, kind: str, semantic: str | None = None, **more: Any) -> dict[str, Any]:
    """A field of a Connect schema."""
    found = {"type": kind, "optional": True, "field": name, **more}
    return found if semantic is None else found | {"name": semantic, "version": 1}


def wrapped(payload: bytes, columns: Sequence[Mapping[str, Any]]) -> bytes:
    """An event inside the wrapper that names its columns."""
    images = [
        {"type": "struct", "fields": columns, "optional": True, "field": name}
        for name in ("before", "after")
    ]
    schema = {"type": "struct", "fields": [*images, field("op", "string")], "optional": False}
    return b'{"schema":' + json.dumps(schema).encode() + b',"payload":' + payload + b"}"


def wrapped_key(payload: bytes, columns: Sequence[Mapping[str, Any]]) -> bytes:
    """A key inside the wrapper that names its fields."""
    schema = {"type": "struct", "fields": columns, "optional": False}
    return b'{"schema":' + json.dumps(schema).encode() + b',"payload":' + payload + b"}"


def chunk(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    *,
    first: int = 0,
    topic: str = TOPIC,
) -> RecordChunk:
    """A chunk with consecutive offsets from `first`; without `keys` all keys are null."""
    offsets = np.arange(first, first + len(values), dtype=np.int64)
    found: list[bytes | None] = [None] * len(values) if keys is None else list(keys)
    return RecordChunk(topic, 0, offsets, offsets + 5000, found, list(values), None)
