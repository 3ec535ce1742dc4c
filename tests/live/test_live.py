"""A real database under load, real Debezium, a real broker and ingestd: in the end all agree."""

import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.live import live_load, postgres_state
from tests.live.connect_worker import ConnectWorker
from tests.support import state
from tests.support.command_line import run_command
from tests.support.daemon import Daemon, run_daemon
from tests.support.kafka_broker import admin, backlog, records
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.postgres_client import USER, PostgresClient
from tests.support.postgres_server import PostgresServer, is_supported
from tests.support.state import DatabaseTable

pytestmark = [
    pytest.mark.integration,
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.skipif(not is_supported(), reason="PostgreSQL is fetched for Linux on x86-64 only"),
]

LONG = "INGESTD_LONG" in os.environ
SECONDS = float(os.environ.get("INGESTD_LIVE_SECONDS", "120" if LONG else "20"))
SEED = int(
    os.environ.get(
        "INGESTD_LIVE_SEED", random.SystemRandom().randrange(10**6) if LONG else 20261121
    )
)
PREFIX = "live"
NOT_COMPARED = [{"table": f"{DATABASE}.journal", "reason": "it has no primary key"}]
TOPICS = f"{PREFIX}.{live_load.SCHEMA}."
GROUP = "live-lag"
MOVING = ("transfers",)
"""Tables that are compared with the database while both change: rows that rest for a while."""
# A column that a table keeps because nothing in the stream tells that it is gone.
KEPT = {"accounts": {"legacy"}, "branches": {"n"}}
TABLES = {
    "accounts": {"schema": {"drop": ["gone"]}},
    "transfers": {"schema": {"aliases": {"remark": "memo"}}},
    "journal": {"options": {"bucket": "-1"}},
}
# A variable scale is a structure, a time of day with microseconds a number.
OTHER_TYPES = {"numeric": "STRING", "time without time zone": "BIGINT"}


def configuration(folder: Path, bootstrap: str) -> dict[str, Any]:
    document = pipeline(
        folder, bootstrap, re.escape(TOPICS) + ".*", tables=TABLES, batch_rows=3000, name="live"
    )
    document["sources"]["shop"]["kafka"]["group.id"] = GROUP
    return document


class Scene:
    """The processes of one run."""

    def __init__(self, folder: Path, database: PostgresServer, broker: DevBroker) -> None:
        self.folder = folder
        self.database = database
        self.broker = broker
        self.connect = ConnectWorker(
            folder / "connect",
            broker.bootstrap,
            database.port,
            prefix=PREFIX,
            schema=live_load.SCHEMA,
            # Rows of several partitions are not in the order of the source, so that a table may
            # have later ones when it hears of a truncate.
            one_partition=["staging", "Odd_Names"],
        )
        self.daemon = self.run()

    def run(self) -> Daemon:
        return run_daemon(configuration(self.folder, self.broker.bootstrap), self.folder)

    def restart_connect(self) -> None:
        self.connect.kill()
        self.connect.start()
        self.connect.wait_until_streaming()

    def restart_daemon(self) -> None:
        self.daemon.kill()
        self.daemon = self.run()

    def settle(self) -> None:
        """Return when all that the database did is in the tables; everything has ended then."""
        with self.database.connect() as client:
            [[last]] = client.run("SELECT pg_current_wal_lsn()")
            self.daemon.wait_until(lambda: _passed(client, str(last)))
        self.connect.stop()
        topics = [
            topic for topic in admin(self.broker).list_topics().topics if topic.startswith(TOPICS)
        ]
        self.daemon.wait_until(lambda: backlog(self.broker, GROUP, topics) == 0)
        self.daemon.terminate()
        assert self.daemon.wait() == 0, self.daemon.tail()


def _passed(client: PostgresClient, place: str) -> bool:
    """Whether the broker has all up to a place in the log; what comes later moves it on."""
    client.run("SELECT pg_logical_emit_message(true, 'tick', '')")
    time.sleep(0.3)
    [[passed]] = client.run(
        f"SELECT confirmed_flush_lsn >= '{place}' FROM pg_replication_slots WHERE NOT temporary"
    )
    return passed == "t"


@contextmanager
def scene(folder: Path, broker: DevBroker) -> Iterator[Scene]:
    with PostgresServer() as database:
        with database.connect() as client:
            client.run(live_load.SET_UP)
        running = Scene(folder, database, broker)
        try:
            with running.connect:
                running.connect.wait_until_streaming()
                yield running
        finally:
            running.daemon.kill()


def compared(capsys: pytest.CaptureFixture[str], running: Scene, *words: str) -> dict[str, Any]:
    """What `ingestd compare` finds; some tables exist by then."""
    database = running.folder / "warehouse" / f"{DATABASE}.db"
    running.daemon.wait_until(lambda: all((database / one / "snapshot").exists() for one in MOVING))
    source = f"postgresql://{USER}@127.0.0.1:{running.database.port}/postgres"
    file = ("-c", running.folder / "ingestd.yaml", "--source", source, "--page-rows", "40")
    done = run_command(capsys, "compare", *file, *words, "--json")
    assert done.code in (0, 1), done.err
    document: dict[str, Any] = json.loads(done.out)
    return document


def change_it_all(running: Scene, load: live_load.Load, check: Callable[[], None]) -> None:
    """The load, schema changes spread over it, and two deaths between them."""
    deaths = {3: running.restart_daemon, 6: running.restart_connect}
    pause = SECONDS / (len(live_load.CHANGES) + 1)
    end = time.monotonic() + SECONDS
    load.start()
    try:
        with running.database.connect() as client:
            for number, sql in enumerate(live_load.CHANGES):
                time.sleep(pause)
                client.run(sql)
                deaths.get(number, lambda: None)()
        time.sleep(max(0.0, end - time.monotonic()))
        check()
    finally:
        load.stop()


def sent_again(broker: DevBroker, topic: str) -> Counter[str]:
    """Rows of a table without a key that the connector sent more than once after it was killed."""
    seen: Counter[tuple[int, str]] = Counter()
    for _, value in records(broker, topic):
        event = json.loads(value)["payload"]
        seen[event["source"]["lsn"], json.dumps(event["after"])] += 1
    return Counter({row: count - 1 for (_, row), count in seen.items() if count > 1})


def type_problems(table: DatabaseTable, types: Mapping[str, Any], kept: set[str]) -> list[str]:
    """Columns that a table lacks or has for nothing, and those of another type than told."""
    problems = [f"{table.name} {name}: left over" for name in types.keys() - table.types - kept]
    for name, kind in table.types.items():
        wanted = OTHER_TYPES.get(kind) or postgres_state.expected_type(kind)
        got = types.get(name, "absent")
        plain = got.removesuffix(" NOT NULL") if isinstance(got, str) else got
        if plain != wanted:
            problems.append(f"{table.name} {name} {kind}: {got} instead of {wanted}")
    return problems


@pytest.mark.timeout(1500)
def test_after_the_last_event_the_tables_equal_the_database(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, capsys: pytest.CaptureFixture[str]
) -> None:
    print(f"seed {SEED}, {SECONDS:.0f} s of load")  # shown when it fails
    with scene(tmp_path, broker) as running:
        load = live_load.Load(running.database, SEED)
        moving: dict[str, Any] = {}
        change_it_all(running, load, lambda: moving.update(compared(capsys, running, *MOVING)))
        assert [table["differences"] for table in moving["tables"]] == [[]]
        assert load.surprises == []
        running.settle()
        with running.database.connect() as client:
            tables = postgres_state.read_tables(client, live_load.SCHEMA)
        repeats = sent_again(running.broker, TOPICS + "journal")
        still = compared(capsys, running, "--as-of", "latest")
    assert still["not_compared"] == NOT_COMPARED
    assert [table["differences"] for table in still["tables"]] == [[]] * (len(tables) - 1)
    print(load.outcomes, "sent again:", repeats.total())
    warehouse = tmp_path / "warehouse"
    problems = []
    for name, wanted in tables.items():
        target = name.replace(" ", "_")
        problems += [f"{name}: {found}" for found in oracle.fsck(warehouse, DATABASE, target)]
        rows = oracle.read(warehouse, DATABASE, target)
        types = state.column_types(warehouse, DATABASE, target)
        problems += type_problems(wanted, types, KEPT.get(name, set()))
        told_twice = repeats if name == "journal" else None
        problems += state.differences(wanted, rows, types, repeats=told_twice)
    assert problems == []
    assert all(load.outcomes[make.__name__] for make in live_load.STATEMENTS)
