"""Recognise the data format of messages by their outer fields or registered schema.

The descriptor of each format contains the function that recognises its messages.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ingestd.cdc.base import Fallback, JsonObject, describe_format, format_descriptors
from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaLookup, is_glue

_MAGIC = 0
_FRAME_BYTES = 5
_REGISTERED = "registered"


class Guess(NamedTuple):
    """The result of format detection on sampled messages.

    `data_format` is the most likely format, `agreeing` the number of messages that look like it,
    and `telling` the number of messages that look like any known format. If `telling` is 0,
    `data_format` is None. `needs_registry` states whether the schemas are in a registry that was
    not queried.
    """

    data_format: str | None
    agreeing: int
    telling: int
    needs_registry: bool = False


def guess_format(values: Iterable[bytes | None], schemas: SchemaLookup | None = None) -> Guess:
    """Return the data format that the sampled message values most likely have.

    A format that is only a fallback, such as `json` for any JSON object, is considered only if no
    message looks like another format. The result is `Guess(None, 0, 0)` if no format is recognized.
    `schemas` looks up the schemas of binary messages (None: not available, so that their format is
    unknown). Raises SourceError if the registry does not respond, ConfigError if it rejects the
    credentials.
    """
    looks = (look_of(value, schemas) for value in values if value)
    return best_guess(Counter(look for look in looks if look))


def best_guess(counts: Mapping[str, int]) -> Guess:
    """Return the most likely format, given the number of messages that look like each format.

    This is the most frequent one. A format that is only a fallback, such as `json` for any JSON
    object, is considered only if no message looks like another format. Without messages, the result
    is `Guess(None, 0, 0)`.
    """
    total = sum(counts.values())
    if not total:
        return Guess(None, 0, 0)
    # A topic may contain some rows that look like plain JSON, and others that have an envelope.
    specific = [look for look in counts if not _is_fallback(look)] or list(counts)
    best = max(specific, key=lambda look: counts[look])
    if best == _REGISTERED:
        return Guess(_first_registered(), counts[best], total, needs_registry=True)
    return Guess(best, counts[best], total)


def look_of(value: bytes, schemas: SchemaLookup | None = None) -> str | None:
    """Return the name of the format that a message looks like, or None if it is not recognised.

    Control messages, and messages framed for the AWS Glue Schema Registry, are not recognised.
    Returns "registered" for a message that is a schema id and a body other than JSON, if `schemas`
    is None. `value` must not be empty. Raises SourceError if the registry does not respond,
    ConfigError if it rejects the credentials.
    """
    if value[0] == _MAGIC and len(value) > _FRAME_BYTES:
        text = value[_FRAME_BYTES:]
        if text[:1] != b"{":
            return _of_registered(value, schemas)
        value = text
    if is_glue(value):
        return None
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return _fallback("bytes")
    return _of_object(document) if isinstance(document, dict) else _fallback("bytes")


def _of_registered(value: bytes, schemas: SchemaLookup | None) -> str:
    if schemas is None:
        return _REGISTERED
    schema = schemas.find(int.from_bytes(value[1:_FRAME_BYTES]))
    return _fallback("bytes") if schema is None else _of_schema(schema)


def _of_schema(schema: RegisteredSchema) -> str:
    recognized = (
        format_descriptor.name
        for format_descriptor in format_descriptors()
        if format_descriptor.recognizes_schema(schema)
    )
    return next(recognized, None) or _fallback("object")


def _of_object(document: dict[str, Any]) -> str | None:
    payload = document.get("payload") if document.keys() >= {"schema", "payload"} else document
    if not isinstance(payload, dict):
        return None
    recognized = (
        format_descriptor.name
        for format_descriptor in format_descriptors()
        if format_descriptor.recognizes(payload)
    )
    name = next(recognized, None)
    return None if name is None and _is_control(payload) else name or _fallback("object")


def _is_control(payload: JsonObject) -> bool:
    """Return whether a payload is a heartbeat, transaction event or DDL event of any format."""
    return payload.keys() <= {"ts_ms", "ts_us", "ts_ns", "databaseName", "source"} or (
        payload.keys() >= {"status", "id", "event_count"} or "ddl" in payload
    )


def _is_fallback(look: str) -> bool:
    return look != _REGISTERED and describe_format(look).fallback is not None


def _fallback(kind: Fallback) -> str:
    return next(
        format_descriptor.name
        for format_descriptor in format_descriptors()
        if format_descriptor.fallback == kind
    )


def _first_registered() -> str:
    return next(
        format_descriptor.name
        for format_descriptor in format_descriptors()
        if format_descriptor.registry == "required"
    )
