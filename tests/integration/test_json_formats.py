"""Messages of every JSON format, through broker and Spark, into tables that Java reads."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import catch_up
from tests.support.kafka_broker import produce
from tests.support.oracle import Oracle

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


def test_tables_hold_what_the_messages_say(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap}
    sources = {
        name: {"kafka": kafka, "topics": [topic], "format": name}
        for name, topic in produced(broker).items()
    }
    config = {
        "pipeline": {"name": "p", "trigger": "0s"},
        "warehouse": {"path": str(tmp_path / "warehouse"), "database": "ods"},
        "sources": sources,
        "tables": {
            "s": {"primary-keys": ["id"], "options": {"bucket": "1"}},
            "raw": {"options": {"bucket": "-1"}},
        },
    }
    catch_up(config, tmp_path)

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
