"""A hundred topics in one query: tables appear while it runs, and many change in one batch.

With INGESTD_LONG=1 there are two hundred.
"""

import json
import os
import random
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from ingestd.dev.broker import DevBroker
from ingestd.ingest.tables.progress import decode_properties
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import schema_ids
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from tests.support.change_events import event, field, key, wrapped, wrapped_key
from tests.support.daemon import Daemon, run_daemon
from tests.support.daemon_progress import Watched, python_stopped
from tests.support.kafka_broker import WAIT_SECONDS, admin
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.stored_rows import stored_rows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

TABLES = 200 if "INGESTD_LONG" in os.environ else 100
AT_START = range(TABLES // 2)
GROWN = range(20)
"""Tables that get new columns, all in one batch."""
WIDENED = range(15, 25)
"""Tables whose `qty` becomes wider in that batch; some of them grow as well."""
JUDGED = sorted({*range(0, 30, 3), *WIDENED, *range(TABLES // 2, TABLES, 12)})
KEY = [field("id", "int32")]
NARROW = [*KEY, field("qty", "int32"), field("name", "string")]
NEW = [field("note", "string"), field("price", "double")]

Row = Mapping[str, Any]
Message = tuple[str, bytes, bytes]


class Shop:
    """The source: its tables as they are, and the messages of what happens to them."""

    def __init__(self) -> None:
        self.prefix = f"m{uuid.uuid4().hex[:8]}"
        self.rows: dict[int, dict[int, Row]] = {number: {} for number in range(TABLES)}
        self._columns = dict.fromkeys(range(TABLES), NARROW)
        self._random = random.Random(6)

    def topic(self, number: int) -> str:
        """The topic of a table."""
        return f"{self.prefix}.shop.t{number:03}"

    def grow(self) -> None:
        """The DDL: from now on messages have the new columns and types."""
        for number in range(TABLES):
            wide = field("qty", "int64" if number in WIDENED else "int32")
            more = NEW if number in GROWN else []
            self._columns[number] = [NARROW[0], wide, NARROW[2], *more]

    def events(self, tables: Iterable[int], each: int) -> Iterator[Message]:
        """This many changes of each table, tables in turn."""
        numbers = list(tables)
        for _ in range(each):
            for number in numbers:
                yield self._event(number)

    def _event(self, number: int) -> Message:
        rows, columns = self.rows[number], self._columns[number]
        identity = self._random.randrange(12)
        before = rows.get(identity)
        after = None
        if before is None or self._random.random() < 0.7:
            after = rows[identity] = {"id": identity} | {
                column["field"]: self._value(column["type"]) for column in columns[1:]
            }
        else:
            del rows[identity]
        op = "d" if after is None else "c" if before is None else "u"
        payload = event(op, after, before=before)
        payload = payload.replace(b'"orders"', f'"t{number:03}"'.encode())
        return (
            self.topic(number),
            wrapped_key(key(id=identity), KEY),
            wrapped(payload, columns),
        )

    def _value(self, kind: str) -> Any:
        if kind == "string":
            return self._random.choice(["a", "bé", None])
        if kind == "double":
            return self._random.randrange(100) / 4
        return self._random.randrange(2**40 if kind == "int64" else 100)


def create_topics(broker: DevBroker, names: Iterable[str]) -> None:
    """Create many topics in one request."""
    client = admin(broker)
    made = client.create_topics([NewTopic(name, 1, 1) for name in names])
    for future in made.values():
        future.result(WAIT_SECONDS)


def send(broker: DevBroker, messages: Iterable[Message]) -> None:
    """Produce and wait until the broker has everything."""
    client = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "log_level": 0,
            "linger.ms": 5,
            "enable.idempotence": True,  # or a retry may change the order within a partition
        }
    )
    for topic, message_key, value in messages:
        client.produce(topic, value, message_key, 0)
        client.poll(0)
    assert client.flush(WAIT_SECONDS) == 0


def committed(daemon: Daemon) -> dict[str, int]:
    """Rows that each table has got since the daemon started, by its own account."""
    status, body = daemon.get("/status")
    if status != 200:
        return {}
    tables = json.loads(body)["tables"]
    return {name: one["rows"] for name, one in tables.items() if ".t" in name}


def expected(shop: Shop, number: int) -> list[Row]:
    """The rows of a table with all columns that its table has, by id."""
    columns = [*NARROW, *(NEW if number in GROWN else [])]
    names = [column["field"] for column in columns]
    rows = ({name: row.get(name) for name in names} for row in shop.rows[number].values())
    return sorted(rows, key=lambda row: int(row["id"]))


def by_id(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["id"]))


def tables_of(warehouse: Path) -> dict[int, FileStoreTable]:
    catalog = load_catalog("filesystem", str(warehouse))
    names = [name for name in catalog.list_tables(DATABASE) if name.startswith("t")]
    return {int(name[1:]): catalog.get_table(Identifier(DATABASE, name)) for name in names}


def test_many_tables_appear_grow_and_hold_what_their_source_holds(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    shop = Shop()
    create_topics(broker, map(shop.topic, AT_START))
    send(broker, shop.events(AT_START, 6))
    config = pipeline(tmp_path, broker.bootstrap, rf"{shop.prefix}\.shop\..*")
    with run_daemon(config, tmp_path) as daemon:
        daemon.wait_until(lambda: len(committed(daemon)) == len(AT_START))
        later = range(len(AT_START), TABLES)
        create_topics(broker, map(shop.topic, later))
        send(broker, shop.events(range(TABLES), 6))
        daemon.wait_until(lambda: len(committed(daemon)) == TABLES)
        assert json.loads(daemon.get("/status")[1])["restarts"] == 0
        reading, records = Watched(daemon, "shop"), 6 * (len(AT_START) + TABLES)
        reading.await_offsets(records)
        before = {number: schema_ids(one.io, one.paths) for number, one in open_all(tmp_path)}
        assert set(map(tuple, before.values())) == {(0,)}
        shop.grow()
        with python_stopped(daemon):  # so that the next batch has all of it
            send(broker, shop.events(range(TABLES), 6))
        reading.await_offsets(records + 6 * TABLES)
        daemon.terminate()
        assert daemon.wait() == 0
    changed = {*GROWN, *WIDENED}
    batches = set()
    for number, table in open_all(tmp_path):
        grown = [0, 1] if number in changed else [0]
        assert schema_ids(table.io, table.paths) == grown
        assert by_id(stored_rows(table)) == expected(shop, number)
        snapshot = latest_snapshot(table.io, table.paths)
        assert snapshot is not None
        progress = decode_properties("shop", snapshot.properties, str(number))
        assert progress is not None
        batches.add(str(progress.pipeline.end))
    assert len(batches) == 1
    for number in JUDGED:
        place = (tmp_path / "warehouse", DATABASE, f"t{number:03}")
        assert oracle.fsck(*place) == []
        assert by_id(full(oracle.read(*place), number)) == expected(shop, number)


def open_all(folder: Path) -> list[tuple[int, FileStoreTable]]:
    return sorted(tables_of(folder / "warehouse").items())


def full(rows: Iterable[Row], number: int) -> list[Row]:
    """Rows of the oracle, which leaves nulls out, with all columns."""
    names = [one["field"] for one in [*NARROW, *(NEW if number in GROWN else [])]]
    return [{name: row.get(name) for name in names} for row in rows]
