"""Change streams captured from real databases by Debezium, and putting them into a broker.

A capture holds one JSON object a line: topic, partition, offset, timestamp, key_b64, value_b64
(null: tombstone) and headers. Replayed into empty topics, records get their captured offsets.
"""

import base64
import json
import lzma
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

CORPUS = Path(__file__).resolve().parents[1] / "golden" / "corpus"
SHOP = CORPUS / "shop"
"""PostgreSQL; what functions take for `home` if nothing is said."""
MART = CORPUS / "mart"
"""MariaDB, in the modes of JSON that has an envelope."""
Mode = Literal["json", "json-schema", "json-connect", "avro", "avro-inline", "flat"]
MODES: tuple[Mode, ...] = ("json", "json-schema")
AVRO_MODES: tuple[Mode, ...] = ("avro", "avro-inline")
"""They differ in whether schemas refer to others; ``registry.json.xz`` has those of both."""


@dataclass(frozen=True, slots=True)
class Record:
    """One captured record."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay made: topic names by source table such as ``shop.orders``, and the count."""

    prefix: str
    topics: Mapping[str, str]
    records: int


def captured(mode: Mode, home: Path = SHOP) -> Iterator[Record]:
    """The records of a capture in the order they were seen."""
    with lzma.open(home / f"{mode}.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            yield Record(
                raw["topic"],
                raw["partition"],
                raw["offset"],
                raw["timestamp"],
                _bytes(raw["key_b64"]),
                _bytes(raw["value_b64"]),
                [(name, _bytes(value)) for name, value in raw["headers"]],
            )


@cache
def _info(home: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((home / "info.json").read_text())
    captures: dict[str, Any] = document["captures"]
    return captures


def topic_prefix(mode: Mode, home: Path = SHOP) -> str:
    """The connector's name, with which all its topics begin."""
    prefix: str = _info(home)[mode]["topic_prefix"]
    return prefix


def partitions(mode: Mode, home: Path = SHOP) -> dict[str, int]:
    """Partition count of each topic of a capture."""
    counts: dict[str, int] = _info(home)[mode]["partitions"]
    return counts


def replay(mode: Mode, bootstrap: str, *, prefix: str | None = None, limit: int = 0) -> Replayed:
    """Create the topics and produce every record (or the first ``limit``) into its partition.

    ``prefix`` replaces the connector's name in topic names, so that one broker can hold many
    replays; the messages keep the captured name.
    """
    replaying = Replaying(mode, bootstrap, prefix=prefix)
    sent = replaying.produce(islice(captured(mode), limit or None))
    return Replayed(replaying.prefix, replaying.topics, sent)


class Replaying:
    """Topics of a capture in a broker, empty at first; ``topics`` are their names by table."""

    def __init__(
        self, mode: Mode, bootstrap: str, *, prefix: str | None = None, home: Path = SHOP
    ) -> None:
        old = topic_prefix(mode, home)
        counts = partitions(mode, home)
        self.prefix = prefix or old
        self._bootstrap = bootstrap
        # A topic of heartbeats ends with the connector's name, the one of DDL has nothing else.
        self._names = {topic: topic.replace(old, self.prefix, 1) for topic in counts}
        self.topics = {topic.removeprefix(old + "."): name for topic, name in self._names.items()}
        admin = AdminClient({"bootstrap.servers": bootstrap})
        wanted = [NewTopic(self._names[topic], count, 1) for topic, count in counts.items()]
        for future in admin.create_topics(wanted).values():
            future.result(30)

    def produce(self, records: Iterable[Record]) -> int:
        """Append records to their partitions, wait until the broker has them, and count them."""
        failed: list[object] = []
        producer = Producer(
            {  # without idempotence a retry may change the order within a partition
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 3,
            }
        )
        sent = 0
        for record in records:
            producer.produce(
                self._names[record.topic],
                value=record.value,
                key=record.key,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=record.headers,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
            producer.poll(0)
            sent += 1
        if producer.flush(60) or failed:
            raise AssertionError(f"replay into {self._bootstrap} failed: {failed[:1]}")
        return sent


def payload(record: Record) -> dict[str, Any] | None:
    """The change event of a record without its schema envelope; None for other messages."""
    if record.value is None:
        return None
    document = json.loads(record.value)
    if isinstance(document, dict) and document.keys() == {"schema", "payload"}:
        document = document["payload"]
    if isinstance(document, dict) and document.get("op") in {"c", "r", "u", "d", "t"}:
        return document
    return None


def repeated_inserts(mode: Mode, home: Path = SHOP) -> dict[str, Counter[str]]:
    """Inserts of tables without a key that the connector sent more than once after it was killed.

    By table such as ``shop.audit_log``: the row as JSON text, and how many times too often.
    """
    seen: dict[str, Counter[tuple[str, str]]] = {}
    for record in captured(mode, home):
        event = payload(record)
        if record.key is None and event and event["op"] == "c":
            table = record.topic.removeprefix(topic_prefix(mode, home) + ".")
            row = json.dumps(event["after"], sort_keys=True)
            source = event["source"]
            place = repr([source.get(part) for part in ("lsn", "file", "pos", "row")])
            seen.setdefault(table, Counter())[place, row] += 1
    return {
        table: Counter({row: n - 1 for (_, row), n in rows.items() if n > 1})
        for table, rows in seen.items()
    }


def folded(mode: Mode) -> dict[str, dict[str, dict[str, Any]]]:
    """Rows that the stream itself ends in: table -> key as JSON text -> column -> wire value.

    A value that the connector left out keeps the older one, under the old key if the key changed.
    Only tables with a key.
    """
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    moves: dict[int, _Move] = {}
    for record in captured(mode):
        event = payload(record)
        if event is None:
            continue
        rows = tables.setdefault(record.topic.removeprefix(topic_prefix(mode) + "."), {})
        if event["op"] == "t":
            rows.clear()
        elif record.key is not None:
            move = moves.setdefault(event["source"]["lsn"], _Move())
            _fold(rows, move, record.key, event)
    return {table: rows for table, rows in tables.items() if rows}


UNAVAILABLE = "__debezium_unavailable_value"
LEFT_OUT = {UNAVAILABLE, base64.b64encode(UNAVAILABLE.encode()).decode()}


@dataclass
class _Move:
    """The deleted row of a position, and the inserted row under a new key with what it lacks."""

    deleted: dict[str, Any] = field(default_factory=dict)
    inserted: dict[str, Any] = field(default_factory=dict)
    lacking: Sequence[str] = ()


def _fold(
    rows: dict[str, dict[str, Any]], move: _Move, raw_key: bytes, event: dict[str, Any]
) -> None:
    document = json.loads(raw_key)
    key = json.dumps(list(document.get("payload", document).values()))
    if event["op"] == "d":
        move.deleted = move.deleted or rows.pop(key, {})
        rows.pop(key, None)
    else:
        row, old = dict(event["after"]), rows.get(key, {})
        lacking = [name for name in row if isinstance(row[name], str) and row[name] in LEFT_OUT]
        row |= {name: old.get(name) for name in lacking}
        rows[key] = row
        if event["op"] == "c":
            move.inserted, move.lacking = row, lacking
    move.inserted.update({name: move.deleted.get(name) for name in move.lacking})


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
