"""Plain Avro with ids in headers, Protobuf, and framed JSON end as tables."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingestd.dev.broker import DevBroker
from tests.support.command_line import run_command
from tests.support.daemon import catch_up
from tests.support.registered import Registered, framed, record
from tests.support.registry_server import RegistryServer

pytestmark = pytest.mark.integration

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


def produce(bootstrap: str) -> dict[str, Any]:
    """Two rows of each kind, one of them deleted; the registry's document."""
    registry = Registered()
    values = registry.avro(ITEM, {"id": 1, "n": 5}, {"id": 2, "n": None})
    keys = registry.avro(KEY, {"id": 1}, {"id": 2})
    proto = registry.add(PROTO, "PROTOBUF")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [f"x.inv.{name}" for name in ("avro_item", "proto_item", "json_item")]
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
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


def test_rows_of_every_serializer_are_in_their_tables(
    tmp_path: Path, broker: DevBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = tmp_path / "warehouse"
    with RegistryServer(produce(broker.bootstrap)) as registry:
        kafka = {"bootstrap.servers": broker.bootstrap}
        found = {"url": registry.url}
        sources = {
            "a": ("avro", "x.inv.avro_item", {**found, "id-location": "auto"}),
            "p": ("protobuf", "x.inv.proto_item", found),
            "j": ("json", "x.inv.json_item", found),
        }
        config = {
            "pipeline": {"name": "rows", "trigger": "0s"},
            "warehouse": {"path": str(warehouse), "database": "ods"},
            "sources": {
                name: {"kafka": kafka, "format": kind, "topics": [topic], "schema-registry": own}
                for name, (kind, topic, own) in sources.items()
            },
            "tables": {"proto_item": {"primary-keys": ["id"]}},
        }
        catch_up(config, tmp_path)
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
