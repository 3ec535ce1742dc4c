"""The Avro captures as Python objects, read by fastavro alone: what the product is judged by."""

import io
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import fastavro

from tests.support import corpus
from tests.support.registry_server import load_document

REGISTRY = corpus.SHOP / "registry.json.xz"


@cache
def saved_registry() -> dict[str, Any]:
    """The saved registry of both captures."""
    return load_document(REGISTRY)


def schema_texts(number: int) -> tuple[str, list[str]]:
    """The text of a schema, and those of what it refers to, each after what it uses."""
    found = saved_registry()["ids"][str(number)]
    texts: list[str] = []
    for reference in found.get("references") or ():
        versions = saved_registry()["subjects"][reference["subject"]]
        own = next(v["id"] for v in versions if v["version"] == reference["version"])
        text, inner = schema_texts(own)
        texts += [one for one in (*inner, text) if one not in texts]
    return found["schema"], texts


@cache
def _parsed(number: int) -> Any:
    text, references = schema_texts(number)
    named: dict[str, Any] = {}
    for reference in references:
        fastavro.parse_schema(_plain(json.loads(reference)), named)
    return fastavro.parse_schema(_plain(json.loads(text)), named)


def _plain(document: Any) -> Any:
    """Without logical types: values as they are on the wire."""
    if isinstance(document, dict):
        return {name: _plain(one) for name, one in document.items() if name != "logicalType"}
    return [_plain(one) for one in document] if isinstance(document, list) else document


def read_message(message: bytes) -> Any:
    """One framed message."""
    number = int.from_bytes(message[1:5], "big")
    return fastavro.schemaless_reader(io.BytesIO(message[5:]), _parsed(number), None)


def events(mode: corpus.Mode) -> Iterator[tuple[corpus.Record, Any, dict[str, Any]]]:
    """Change events: the record, its key (None: no key) and its value."""
    for record in corpus.captured(mode):
        if record.value is None:
            continue
        event = read_message(record.value)
        if event.get("op") in {"c", "r", "u", "d", "t"}:
            yield record, None if record.key is None else read_message(record.key), event


def repeated_inserts(mode: corpus.Mode) -> dict[str, Counter[str]]:
    """As ``corpus.repeated_inserts``."""
    seen: dict[str, Counter[tuple[int, str]]] = {}
    for record, key, event in events(mode):
        if key is None and event["op"] in {"c", "r"}:
            table = record.topic.removeprefix(corpus.topic_prefix(mode) + ".")
            row = json.dumps(event["after"], sort_keys=True, default=bytes.hex)
            seen.setdefault(table, Counter())[event["source"]["lsn"], row] += 1
    return {
        table: Counter({row: n - 1 for (_, row), n in rows.items() if n > 1})
        for table, rows in seen.items()
    }
