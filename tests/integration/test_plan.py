"""`ingestd plan` and `ingestd parse` against a real broker; nothing is ever written."""

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from ingestd.cdc.base import SourceTable
from ingestd.dev.broker import DevBroker
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from tests.support.change_events import event, key
from tests.support.command_line import run_command
from tests.support.kafka_broker import fresh_topic, produce, produce_transaction
from tests.support.pipelines import DATABASE, pipeline
from tests.support.registered import Registered, record
from tests.support.registry_server import RegistryServer

pytestmark = pytest.mark.integration
Capture = pytest.CaptureFixture[str]
Files = Callable[[], list[Path]]

ITEM = SourceTable("inv", None, "item")
COPY = SourceTable("crm", None, "item")
GHOST = SourceTable("inv", None, "_item_gho")


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A warehouse with one table that is narrower than what comes."""
    path = tmp_path / "warehouse"
    columns = [("id", DataType("BIGINT")), ("qty", DataType("INT"))]
    schema = new_schema(columns, ("id",), (), {"bucket": "2"}, 1)
    load_catalog("filesystem", str(path)).create_table(Identifier(DATABASE, "cust"), schema)
    return path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return lambda: sorted(tmp_path.rglob("*"))


def config_of(folder: Path, broker: DevBroker, *topics: str, **sections: Any) -> Path:
    document = pipeline(folder, broker.bootstrap, "|".join(topics), **sections)
    path = folder / "shop.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_plan_shows_every_table_and_writes_nothing(
    broker: DevBroker, tmp_path: Path, warehouse: Path, files: Files, capsys: Capture
) -> None:
    items, custs = fresh_topic(broker, 2), fresh_topic(broker)
    rows = [(key(id=n), event("c", {"id": n, "price": 1.5}, table=ITEM)) for n in range(40)]
    produce(broker, items, rows[:30])
    produce(broker, items, [*rows[30:], (key(id=0), event("c", {"id": 0}, table=GHOST))], 1)
    cust = ITEM._replace(table="cust")
    wide = event("c", {"id": 1, "qty": 1 << 40, "name": "x"}, table=cust)
    produce_transaction(broker, custs, [(key(id=1), wide), (key(id=2), b"{bad")], commit=True)
    item_settings = {"options": {"bucket": "4"}, "primary-keys": ["id"], "where": "id >= 5"}
    item_settings |= {"on-delete": "keep", "deleted-at": "gone"}
    tables = {"item": item_settings}
    config = config_of(tmp_path, broker, items, custs, tables=tables)

    before = files()
    done = run_command(capsys, "plan", "-c", config, "--records", 10, "--json")
    assert files() == before
    document = json.loads(done.out)
    assert (done.code, document["passed"]) == (0, True)
    by_topic = {topic["topic"]: topic for topic in document["topics"]}
    assert (by_topic[items]["offsets"], by_topic[items]["sampled"]) == (41, 10)
    assert (by_topic[custs]["offsets"], by_topic[custs]["sampled"]) == (3, 2)
    by_name = {table["table"]: table for table in document["tables"]}
    item, known = by_name[f"{DATABASE}.item"], by_name[f"{DATABASE}.cust"]
    assert (item["verdict"], item["buckets"]) == ("create", "4 fixed buckets by id")
    assert item["sources"] == ["shop:inv.item"]
    assert (item["where"], item["deleted_at"]) == ("id >= 5", "gone")
    assert 0 < item["filtered"] < 10
    assert item["rows"] == {"insert": 9 - item["filtered"], "delete": item["filtered"]}
    assert [(column["column"], column["type"], column["key"]) for column in item["columns"]] == [
        ("id", "BIGINT NOT NULL", "primary"),
        ("price", "DOUBLE", ""),
        ("gone", "TIMESTAMP(3) WITH LOCAL TIME ZONE", ""),
    ]
    assert known["verdict"] == "alter"
    assert {column["column"]: column["change"] for column in known["columns"]} == {
        "id": "unchanged",
        "qty": "widened from INT",
        "name": "new",
    }
    assert document["excluded"] == {"shop:inv._item_gho": 1}
    (rejected,) = document["rejected"]["samples"]
    assert (rejected["topic"], rejected["offset"], rejected["reason"]) == (custs, 1, "invalid-json")

    text = run_command(capsys, "plan", "-c", config).out
    assert f"{DATABASE}.cust exists and would be changed" in text
    assert "widened from INT" in text
    assert re.search(r"where +id >= 5: 5 rows did not pass", text)
    assert re.search(r"deletes +keep their rows, with the time in gone", text)
    assert "decode/invalid-json" in text


def test_settings_without_effect_are_named_by_plan_and_validate(
    broker: DevBroker, tmp_path: Path, capsys: Capture
) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, [(key(id=1), event("c", {"id": 1, "qty": 2}, table=ITEM))])
    columns = [("id", DataType("STRING")), ("qty", DataType("INT"))]
    schema = new_schema(columns, ("id",), (), {"bucket": "2"}, 1)
    catalog = load_catalog("filesystem", str(tmp_path / "warehouse"))
    catalog.create_table(Identifier(DATABASE, "item"), schema)
    config = config_of(tmp_path, broker, topic, tables={"item": {"options": {"bucket": "4"}}})
    group = {"bootstrap.servers": broker.bootstrap, "group.id": "ingestd-shop"}
    with closing(OffsetClient(KafkaSource("shop", (topic,), properties=group))) as client:
        client.commit_group_offsets("ingestd-shop", {topic: {0: 1}})
    bucket = f"table {DATABASE}.item: options.bucket = 4 has no effect, the table exists with 2"
    moved = "if the warehouse was moved, correct warehouse.path"
    text_key = f"table {DATABASE}.item: primary key column 'id' exists as text, and the BIGINT"

    planned = run_command(capsys, "plan", "-c", config)
    assert planned.code == 0
    assert all(f"warning: {start}" in planned.out for start in (bucket, text_key))
    assert f"consumer group ingestd-shop has offsets of {topic}" in planned.out
    assert moved in planned.out
    online = run_command(capsys, "validate", "-c", config, "--online")
    assert (online.code, f"warning: {bucket}" in online.err, moved in online.err) == (0, True, True)
    assert online.out.endswith(f"{config} is fine, with 2 warnings.\n")
    assert not list(tmp_path.rglob("*dead_letters*"))


def test_a_pattern_that_matches_no_topic_lists_the_nearest(
    broker: DevBroker, tmp_path: Path, capsys: Capture
) -> None:
    topic = fresh_topic(broker)
    misspelt = re.escape(topic[:-1]) + "_"
    config = config_of(tmp_path, broker, misspelt)
    for command in (("plan",), ("validate", "--online")):
        done = run_command(capsys, *command, "-c", config)
        line = next(line for line in (done.out + done.err).splitlines() if "nearest" in line)
        assert f"topic-pattern '{misspelt}' has no match among the" in line
        assert topic in line.partition("nearest: ")[2].split(", ")


def test_tables_that_would_meet_end_with_five(
    broker: DevBroker, tmp_path: Path, files: Files, capsys: Capture
) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, [(key(id=1), event("c", {"id": 1}, table=ITEM))])
    produce(broker, topic, [(key(id=1), event("c", {"id": 1}, table=COPY))])
    config = config_of(tmp_path, broker, topic)
    before = files()
    done = run_command(capsys, "plan", "-c", config)
    assert done.code == 5
    verdict, problem = done.out.splitlines()[-2:]
    assert verdict == "Nothing was written. FAILED by 1 problem:"
    assert problem.startswith(f"  table {DATABASE}.item: ")
    assert "merge-shards" in problem
    assert files() == before


def test_a_topic_that_is_not_there_is_three(
    broker: DevBroker, tmp_path: Path, capsys: Capture
) -> None:
    document = pipeline(tmp_path, broker.bootstrap, "")
    document["sources"]["shop"] |= {"topics": ["surely-not-there"]}
    del document["sources"]["shop"]["topic-pattern"]
    path = tmp_path / "shop.yaml"
    path.write_text(yaml.safe_dump(document))
    done = run_command(capsys, "plan", "-c", path)
    assert done.code == 3
    assert "surely-not-there" in done.err


def test_single_records_of_a_topic_are_parsed(
    broker: DevBroker, tmp_path: Path, capsys: Capture
) -> None:
    topic = fresh_topic(broker, 2)
    records = [(key(id=n), event("c", {"id": n}, table=ITEM)) for n in range(3)]
    produce(broker, topic, [*records, (key(id=9), b"{bad")], 1)
    place = ("--topic", topic, "--bootstrap", broker.bootstrap, "--partition", 1)
    how = ("parse", "--format", "debezium-json", *place)

    done = run_command(capsys, *how, "--offset", 2, "--json")
    (table,) = json.loads(done.out)["tables"]
    assert done.code == 0
    assert [(row["offset"], row["values"]) for row in table["rows"]] == [(2, {"id": 2})]
    several = json.loads(run_command(capsys, *how, "--records", 99, "--json").out)
    assert several["records"] == 4
    newest = run_command(capsys, *how, "--offset", -1)
    assert newest.code == 1
    assert "invalid-json" in newest.out
    beyond = run_command(capsys, *how, "--offset", 4)
    assert beyond.code == 2
    assert "its log has 0 up to 3" in beyond.err
    assert run_command(capsys, *how[:-1], 7, "--offset", 0).code == 2

    config = config_of(tmp_path, broker, topic)
    configured = ("parse", "-c", config, "--topic", topic, "--partition", 1, "--json")
    found = json.loads(run_command(capsys, *configured).out)
    assert found["tables"][0]["rows"][0]["values"] == {"id": 0}


def test_a_binary_record_is_parsed_with_the_schema_of_a_registry(
    broker: DevBroker, capsys: Capture
) -> None:
    registry = Registered()
    fields = [{"name": "id", "type": "long"}, {"name": "n", "type": ["null", "int"]}]
    (value,) = registry.avro(record("Item", fields), {"id": 1, "n": 5})
    topic = fresh_topic(broker)
    produce(broker, topic, [(None, value)])
    schema = registry.find(1)
    assert schema is not None
    ids = {"1": {"schema": schema.text, "schemaType": schema.kind}}
    with RegistryServer({"ids": ids, "subjects": {}}) as server:
        done = run_command(
            capsys,
            *("parse", "--format", "avro", "--schema-registry", server.url, "--json"),
            *("--topic", topic, "--bootstrap", broker.bootstrap, "--offset", 0),
        )
    (table,) = json.loads(done.out)["tables"]
    assert table["types"] == {"id": "BIGINT", "n": "INT"}
    assert table["rows"][0]["values"] == {"id": 1, "n": 5}
