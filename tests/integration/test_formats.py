"""Messages of many formats, through broker and Spark, into tables that Java reads."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ingestd.dev.broker import DevBroker
from tests.support.command_line import run_command
from tests.support.daemon import catch_up
from tests.support.kafka_broker import produce
from tests.support.oracle import Oracle
from tests.support.registered import Registered, framed, record
from tests.support.registry_server import RegistryServer

pytestmark = pytest.mark.integration

Document = dict[str, Any]
MYSQL = {
    "id": "int",
    "label": "varchar(5)",
    "price": "decimal(10,2)",
    "st": "enum('new','used')",
    "tags": "set('a','b')",
    "at": "datetime",
    "bits": "bit(12)",
}
CELLS = {"label": "bolt", "price": "9.50", "st": "2", "tags": "3", "at": "2025-06-15 10:00:00"}


def canal() -> list[Document]:
    head = {"database": "inv", "table": "c", "pkNames": ["id"], "mysqlType": MYSQL, "isDdl": False}
    rows = [{"id": str(n), **CELLS, "bits": "2049"} for n in (1, 2, 3)]
    moved = {**rows[1], "id": "4", "label": "longer than it was"}
    return [
        {**head, "type": "INSERT", "data": rows},
        {**head, "type": "UPDATE", "data": [moved], "old": [{"id": "2", "label": "bolt"}]},
        {**head, "type": "DELETE", "data": [rows[2]]},
    ]


def maxwell() -> list[Document]:
    head = {"database": "inv", "table": "m", "primary_key_columns": ["id"]}
    return [
        {**head, "type": "insert", "data": {"id": 1, "v": "a", "n": 1}},
        {**head, "type": "bootstrap-insert", "data": {"id": 2, "v": "b", "n": None}},
        {**head, "type": "update", "data": {"id": 3, "v": "a", "n": 1}, "old": {"id": 1}},
        {**head, "type": "delete", "data": {"id": 2, "v": "b", "n": None}},
    ]


def ogg() -> list[Document]:
    head = {"table": "INV.O", "primary_keys": ["ID"]}
    rows = [{"ID": n, "A": "x", "B": n} for n in (1, 2)]
    found = [{**head, "op_type": "I", "after": row} for row in rows]
    found.append({**head, "op_type": "U", "before": {"ID": 1}, "after": {"ID": 1, "A": "y"}})
    found.append({**head, "op_type": "D", "before": rows[1]})
    return [{**one, "pos": f"{n:020}"} for n, one in enumerate(found)]


def dms(operation: str, row: Document, **more: object) -> Document:
    about = {"operation": operation, "record-type": "data", "table-name": "s", "schema-name": "i"}
    return {"data": row, "metadata": about, **more}


def bson() -> list[Document]:
    source = {"db": "inv", "collection": "b", "connector": "mongodb"}
    document = json.dumps({"_id": {"$oid": "59"}, "n": {"$numberLong": "12"}, "t": "x"})
    changed = {"updatedFields": '{"n": 13}', "removedFields": None, "truncatedArrays": None}
    return [
        {"op": "c", "source": source, "after": document},
        {"op": "u", "source": source, "before": None, "updateDescription": changed},
    ]


DMS = [
    dms("load", {"id": 1, "v": "a"}),
    dms("insert", {"id": 2, "v": "b"}),
    dms("update", {"id": 3, "v": "a"}, **{"before-image": {"id": 1}}),
    dms("delete", {"id": 2, "v": "b"}),
]
BSON_KEY = json.dumps({"id": '{"$oid": "59"}'}).encode()


def produced(broker: DevBroker) -> dict[str, str]:
    """Topics by the name of their format, with messages in them."""
    plain = [{"id": 1, "v": "a"}, {"id": 2, "v": None}]
    rows: dict[str, list[tuple[bytes | None, bytes | None]]] = {
        "canal-json": [(None, json.dumps(one).encode()) for one in canal()],
        "maxwell-json": [(None, json.dumps(one).encode()) for one in maxwell()],
        "ogg-json": [(None, json.dumps(one).encode()) for one in ogg()],
        "aws-dms-json": [(None, json.dumps(one).encode()) for one in DMS],
        "debezium-bson": [(BSON_KEY, json.dumps(one).encode()) for one in bson()],
        "json": [
            (json.dumps({"id": one["id"]}).encode(), json.dumps(one).encode()) for one in plain
        ],
        "raw": [(b"k", b"\xff"), (None, None)],
    }
    rows["json"].append((b'{"id":1}', None))
    for name, records in rows.items():
        broker.create_topic(f"t.{name}", 1)
        produce(broker, f"t.{name}", records)
    return {name: f"t.{name}" for name in rows}


PROTO = """
syntax = "proto3";
message Item {
  int64 id = 1; // Number.
  optional string label = 2;
}
"""
ITEM = {
    **dict(record("Item", [])),  # type: ignore[arg-type]
    "doc": "All items.",
    "fields": [
        {"name": "id", "type": "long", "doc": "Number."},
        {"name": "n", "type": ["null", "int"]},
    ],
}
KEY = record("Key", [{"name": "id", "type": "long"}])
SERIALIZED = {
    "avro": ("x.inv.avro_item", {"id-location": "auto"}),
    "protobuf": ("x.inv.proto_item", {}),
    "json": ("x.inv.json_item", {}),
}
"""Topics of serializers, by format, and what a source says of the schema registry."""


def registered(broker: DevBroker) -> Document:
    """Two rows of each serializer, one of them deleted; the registry's document.

    Plain Avro has its ids in headers.
    """
    registry = Registered()
    values = registry.avro(ITEM, {"id": 1, "n": 5}, {"id": 2, "n": None})
    keys = registry.avro(KEY, {"id": 1}, {"id": 2})
    proto = registry.add(PROTO, "PROTOBUF")
    topics = [topic for topic, _ in SERIALIZED.values()]
    for topic in topics:
        broker.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for key, value in zip((*keys, keys[0]), (*values, None), strict=True):
        headers = [("__key_schema_id", key[:5])]
        headers += [("__value_schema_id", value[:5])] if value else []
        producer.produce(topics[0], value[5:] if value else None, key[5:], headers=headers)
    for body in (b"\x08\x01\x12\x01a", b"\x08\x02"):
        producer.produce(topics[1], framed(proto, b"\0" + body), framed(proto, b"\0" + body[:2]))
    producer.produce(topics[2], framed(99, b'{"id": 1, "t": "x"}'), framed(98, b'{"id": 1}'))
    assert producer.flush(30) == 0
    ids = {
        str(number): {"schema": found.text, "schemaType": found.kind}
        for number in range(1, proto + 1)
        if (found := registry.find(number)) is not None
    }
    return {"ids": ids, "subjects": {}}


def configuration(folder: Path, broker: DevBroker, registry: RegistryServer) -> Document:
    kafka = {"bootstrap.servers": broker.bootstrap}
    sources: Document = {
        name: {"kafka": kafka, "topics": [topic], "format": name}
        for name, topic in produced(broker).items()
    }
    for name, (topic, more) in SERIALIZED.items():
        found = {"schema-registry": {"url": registry.url, **more}}
        sources[f"serialized-{name}"] = {"kafka": kafka, "topics": [topic], "format": name, **found}
    return {
        "pipeline": {"name": "p", "trigger": "0s"},
        "warehouse": {"path": str(folder / "warehouse"), "database": "ods"},
        "sources": sources,
        "tables": {
            "s": {"primary-keys": ["id"], "options": {"bucket": "1"}},
            "raw": {"options": {"bucket": "-1"}},
            "proto_item": {"primary-keys": ["id"]},
        },
    }


def test_tables_hold_what_the_messages_say(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, capsys: pytest.CaptureFixture[str]
) -> None:
    with RegistryServer(registered(broker)) as registry:
        catch_up(configuration(tmp_path, broker, registry), tmp_path)
    check_registered(tmp_path / "warehouse", capsys)

    def rows(table: str) -> list[Any]:
        found = oracle.fsck(tmp_path / "warehouse", "ods", table, "--all")
        assert found == []
        return sorted(oracle.read(tmp_path / "warehouse", "ods", table), key=str)

    kept = {"price": "9.50", "st": "used", "tags": ["a", "b"], "at": "2025-06-15T10:00:00"}
    assert [(row["id"], row["label"]) for row in rows("c")] == [
        (1, "bolt"),
        (4, "longer than it was"),
    ]
    assert {name: rows("c")[0][name] for name in kept} == kept
    assert rows("m") == [{"id": 3, "v": "a", "n": 1}]
    assert rows("O") == [{"ID": 1, "A": "y", "B": 1}]
    assert [(row["id"], row["v"]) for row in rows("s")] == [(3, "a")]
    assert rows("b") == [{"_id": "59", "n": "13", "t": "x"}]
    assert [row["id"] for row in rows("json")] == [2]
    assert len(rows("raw")) == 2


def check_registered(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plain Avro with ids in headers, Protobuf, and framed JSON are in their tables."""
    for table, comment in (("avro_item", "All items."), ("proto_item", None)):
        schema = json.loads((warehouse / "ods.db" / table / "schema" / "schema-0").read_text())
        assert schema.get("comment") == comment
        assert [field.get("description") for field in schema["fields"]] == ["Number.", None]
    rows = {}
    for table in ("avro_item", "proto_item", "json_item"):
        shown = run_command(capsys, "read", warehouse, f"ods.{table}", "--format", "jsonl")
        assert shown.code == 0, shown.err
        rows[table] = [json.loads(line) for line in shown.out.splitlines()]
    assert rows == {
        "avro_item": [{"id": 2, "n": None}],
        "proto_item": [{"id": 1, "label": "a"}, {"id": 2, "label": None}],
        "json_item": [{"id": 1, "t": "x"}],
    }
