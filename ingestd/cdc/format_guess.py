"""Which data format messages most likely have, by the look of them; nothing is decoded for good."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaLookup

_Fields = Mapping[str, Any]
_MAGIC = 0
_FRAME_BYTES = 5
_MAXWELL = re.compile(r"insert|update|delete|(bootstrap|table|database)-\w+")
_FLAT = frozenset({"__op", "__deleted", "__table", "__source_ts_ms"})
_REGISTERED = "registered"


class Guess(NamedTuple):
    """The likeliest format (None: no message told), and how many of the messages look like it.

    `needs_registry` if their schemas are in a registry that was not asked.
    """

    data_format: str | None
    agreeing: int
    telling: int
    needs_registry: bool = False


def guess_format(values: Iterable[bytes | None], schemas: SchemaLookup | None = None) -> Guess:
    """The format that most message values look like; with a registry binary ones, too.

    Raises SourceError if the registry does not answer.
    """
    looks = (look_of(value, schemas) for value in values if value)
    return best_guess(Counter(look for look in looks if look))


def best_guess(counts: Mapping[str, int]) -> Guess:
    """The format for what messages look like, by `look_of`, and how many of them."""
    total = sum(counts.values())
    if not total:
        return Guess(None, 0, 0)
    # Rows of some tables look plain where those of others tell their format.
    telling = [one for one in counts if one not in ("json", "raw")] or list(counts)
    best = max(telling, key=lambda one: counts[one])
    if best == _REGISTERED:
        return Guess("debezium-avro", counts[best], total, needs_registry=True)
    return Guess(best, counts[best], total)


def look_of(value: bytes, schemas: SchemaLookup | None = None) -> str | None:
    """What one message looks like; None if that tells nothing. SourceError as `guess_format`."""
    if value[0] == _MAGIC and len(value) > _FRAME_BYTES:
        text = value[_FRAME_BYTES:]
        if text[:1] != b"{":
            return _registered(value, schemas)
        value = text
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return "raw"
    return _of_document(document) if isinstance(document, dict) else "raw"


def _registered(value: bytes, schemas: SchemaLookup | None) -> str:
    if schemas is None:
        return _REGISTERED
    schema = schemas.find(int.from_bytes(value[1:_FRAME_BYTES]))
    return "raw" if schema is None else _of_schema(schema)


def _of_schema(schema: RegisteredSchema) -> str:
    if schema.kind != "AVRO":
        return "protobuf" if schema.kind == "PROTOBUF" else "json"
    record = json.loads(schema.text)
    fields = record.get("fields", ()) if isinstance(record, dict) else ()
    names = {field.get("name") for field in fields}
    return "debezium-avro" if {"op", "source"} <= names else "avro"


def _of_document(document: _Fields) -> str | None:
    inner = document.get("payload") if document.keys() >= {"schema", "payload"} else document
    if not isinstance(inner, dict):
        return None
    if _is_aliyun(document):
        return "aliyun-json"
    found = next((name for name, test in _TESTS if test(inner)), None)
    if found is None and _tells_nothing(inner):
        return None
    return found or "json"


def _is_aliyun(document: _Fields) -> bool:
    payload = document.get("payload")
    images = [payload.get("before"), payload.get("after")] if isinstance(payload, dict) else []
    return any(isinstance(one, dict) and "dataColumn" in one for one in images)


def _is_bson(fields: _Fields) -> bool:
    if not _is_debezium(fields):
        return False
    source = fields.get("source")
    mongo = isinstance(source, dict) and source.get("connector") == "mongodb"
    return mongo or isinstance(fields.get("after"), str) or isinstance(fields.get("before"), str)


def _is_debezium(fields: _Fields) -> bool:
    return "op" in fields and bool({"before", "after", "source"} & fields.keys())


def _is_canal(fields: _Fields) -> bool:
    return "isDdl" in fields or (isinstance(fields.get("data"), list) and "type" in fields)


def _is_maxwell(fields: _Fields) -> bool:
    named = fields.keys() >= {"database", "table", "type"}
    return named and _MAXWELL.fullmatch(str(fields["type"])) is not None


def _is_dms(fields: _Fields) -> bool:
    metadata = fields.get("metadata")
    return isinstance(metadata, dict) and "operation" in metadata


_TESTS: Sequence[tuple[str, Callable[[_Fields], bool]]] = (
    ("debezium-bson", _is_bson),
    ("debezium-json", _is_debezium),
    ("debezium-flat-json", lambda fields: bool(_FLAT & fields.keys())),
    ("ogg-json", lambda fields: "op_type" in fields),
    ("aws-dms-json", _is_dms),
    ("canal-json", _is_canal),
    ("maxwell-json", _is_maxwell),
)


def _tells_nothing(fields: _Fields) -> bool:
    """Heartbeats, borders of transactions and statements: many formats have such messages."""
    return fields.keys() <= {"ts_ms", "ts_us", "ts_ns", "databaseName", "source"} or (
        fields.keys() >= {"status", "id", "event_count"} or "ddl" in fields
    )
