"""Produce the workload as messages of Debezium's PostgreSQL connector.

With the schema envelope every message describes its columns; without it, decimals and time units
must be declared (`ingestd.dev.workload.column_types`).
"""

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingestd.dev.workload import (
    DECIMAL,
    KEYS,
    START_MS,
    TABLES,
    ZONED,
    Change,
    Column,
    Row,
    Value,
    Workload,
    iso_micros,
)
from ingestd.errors import SourceError
from ingestd.wording import counted

_LOG_ERRORS = 3
"""The level of librdkafka's own lines on standard error."""
SOURCE = (
    ("version", "string"),
    ("connector", "string"),
    ("name", "string"),
    ("ts_ms", "int64"),
    ("snapshot", "string"),
    ("db", "string"),
    ("sequence", "string"),
    ("schema", "string"),
    ("table", "string"),
    ("txId", "int64"),
    ("lsn", "int64"),
)


@dataclass(frozen=True, slots=True)
class Message:
    """A Kafka record; `value` is None for the tombstone after a delete."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


def messages(workload: Workload) -> Iterator[Message]:
    """Yield the connector's messages: one for each change, and a tombstone after each delete.

    All messages of a key are in one partition, so that they stay in order.
    """
    for change in workload.changes():
        topic = workload.topics[change.table]
        key = _key(workload, change)
        partition = zlib.crc32(b"%d" % change.key) % workload.partitions
        timestamp_ms = START_MS + change.number
        yield Message(topic, partition, key, _value(workload, change), timestamp_ms)
        if change.operation == "d":
            yield Message(topic, partition, key, None, timestamp_ms)


def produce(
    workload: Workload, bootstrap: str, progress: Callable[[int], None] = lambda count: None
) -> int:
    """Create the topics and send all messages of a workload; return the number of records.

    `progress` is called every 1,000 records, and at the end, with the number of records so far.
    Raises SourceError if the broker does not accept the topics or the records.
    """
    try:
        return _produce(workload, bootstrap, progress)
    except KafkaException as error:
        raise SourceError(
            f"the broker at {bootstrap} did not take the workload: {error}"
        ) from error


def _produce(workload: Workload, bootstrap: str, progress: Callable[[int], None]) -> int:
    _create_topics(workload, bootstrap)
    failed: list[object] = []
    producer = Producer(
        {  # without idempotence a retry may change the order within a partition
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
            "compression.type": "lz4",
            "log_level": _LOG_ERRORS,
            "on_delivery": lambda error, _: failed.append(error) if error else None,
        }
    )
    sent = 0
    for message in messages(workload):
        _send(producer, message)
        sent += 1
        if sent % 1000 == 0:
            producer.poll(0)
            progress(sent)
    left = producer.flush(60)
    if left or failed:
        raise SourceError(f"{counted(left, 'record')} not sent, {len(failed)} failed: {failed[:1]}")
    progress(sent)
    return sent


def _create_topics(workload: Workload, bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _LOG_ERRORS})
    new_topics = [
        NewTopic(topic, workload.partitions, 1, config={"retention.ms": "-1"})
        for topic in workload.topics.values()
    ]
    for future in admin.create_topics(new_topics).values():
        future.result(30)


def _send(producer: Producer, message: Message) -> None:
    while True:
        try:
            producer.produce(
                message.topic,
                value=message.value,
                key=message.key,
                partition=message.partition,
                timestamp=message.timestamp_ms,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _key(workload: Workload, change: Change) -> bytes:
    name = KEYS[change.table]
    if not workload.envelope:
        return b'{"%s":%d}' % (name.encode(), change.key)
    column = next(column for column in TABLES[change.table] if column.name == name)
    schema = _struct([{"field": name, "optional": False, "type": column.connect_type}])
    return _json({"schema": schema, "payload": {name: change.key}})


def _value(workload: Workload, change: Change) -> bytes:
    payload = _json(_payload(workload, change))
    if not workload.envelope:
        return payload
    schema = _envelope(workload.prefix, change.table, change.columns)
    return b'{"schema":' + schema + b',"payload":' + payload + b"}"


def _payload(workload: Workload, change: Change) -> Mapping[str, Any]:
    now = START_MS + change.number
    source = {
        "version": "3.6.0.Final",
        "connector": "postgresql",
        "name": workload.prefix,
        "ts_ms": now,
        "snapshot": "false",
        "db": workload.prefix,
        "sequence": None,
        "schema": "public",
        "table": change.table,
        "txId": 700 + change.number // 3,
        "lsn": 24_000_000 + 64 * change.number,
    }
    return {
        "before": _before(change) if change.row is None else None,
        "after": None if change.row is None else _wire_row(change.row, change.columns),
        "source": source,
        "transaction": None,
        "op": change.operation,
        "ts_ms": now + 5,
    }


def _before(change: Change) -> Mapping[str, Value]:
    """Return the before image of a delete with the default replica identity: only the key."""
    key = KEYS[change.table]
    return {c.name: change.key if c.name == key else None for c in change.columns}


def _wire_row(row: Row, columns: Sequence[Column]) -> Mapping[str, Value]:
    return {column.name: _wire_value(column, row.get(column.name)) for column in columns}


def _wire_value(column: Column, value: Value) -> Value:
    if isinstance(value, int) and column.semantic == DECIMAL:
        size = (value + (value < 0)).bit_length() // 8 + 1
        return base64.b64encode(value.to_bytes(size, "big", signed=True)).decode()
    if isinstance(value, int) and column.semantic == ZONED:
        return iso_micros(value) + "Z"
    return value


@lru_cache(maxsize=64)
def _envelope(prefix: str, table: str, columns: tuple[Column, ...]) -> bytes:
    row = [_describe(column, optional=column.name != KEYS[table]) for column in columns]
    name = f"{prefix}.public.{table}.Value"
    source = [{"field": field, "optional": True, "type": kind} for field, kind in SOURCE]
    fields = [
        {**_struct(row), "optional": True, "name": name, "field": "before"},
        {**_struct(row), "optional": True, "name": name, "field": "after"},
        {**_struct(source), "name": "io.debezium.connector.postgresql.Source", "field": "source"},
        {"type": "string", "optional": True, "field": "transaction"},
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
    ]
    return _json({**_struct(fields), "name": f"{prefix}.public.{table}.Envelope", "version": 2})


def _describe(column: Column, *, optional: bool) -> Mapping[str, Any]:
    described: dict[str, Any] = {
        "field": column.name,
        "type": column.connect_type,
        "optional": optional,
    }
    if column.semantic:
        described |= {"name": column.semantic, "version": 1}
    if column.parameters:
        described["parameters"] = dict(column.parameters)
    return described


def _struct(fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "optional": False, "fields": list(fields)}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
