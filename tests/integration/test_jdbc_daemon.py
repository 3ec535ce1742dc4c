"""The daemon with a JDBC catalog in MariaDB, whose password is a reference to a file."""

from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.paimon.catalog.base import Identifier, load_catalog
from tests.support.change_events import event, key
from tests.support.command_line import run_command
from tests.support.daemon import run_daemon
from tests.support.kafka_broker import fresh_topic, produce
from tests.support.mariadb_server import USER, MariaDbServer
from tests.support.planted import Planted, files_below
from tests.support.stored_rows import stored_rows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_the_daemon_keeps_its_tables_in_a_database_and_its_password_nowhere(
    tmp_path: Path, broker: DevBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    planted, topic = Planted(), fresh_topic(broker)
    events = [(key(id=n), event("c", {"id": n, "v": "x"})) for n in range(20)]
    produce(broker, topic, events)
    reference = planted.file(tmp_path / "secrets", "catalog-password")
    with MariaDbServer() as server:
        password = planted.by_place["catalog-password"]
        server.run(
            "CREATE DATABASE catalog",
            f"CREATE USER lake IDENTIFIED BY '{password}'",
            "GRANT ALL ON catalog.* TO lake",
        )
        uri = f"jdbc:mysql://127.0.0.1:{server.port}/catalog"
        catalog = {
            "metastore": "jdbc",
            "uri": uri,
            "user": "lake",
            "password": reference,
            "options": {"lock.enabled": "true"},
        }
        config = {
            "pipeline": {"name": "shop"},
            "warehouse": {"path": str(tmp_path / "lake"), "database": "ods", "catalog": catalog},
            "sources": {
                "shop": {
                    "kafka": {"bootstrap.servers": broker.bootstrap},
                    "topics": [topic],
                    "format": "debezium-json",
                }
            },
            "logging": {"level": "DEBUG"},
        }
        with run_daemon(config, tmp_path, until_latest=True) as daemon:
            assert daemon.wait() == 0, daemon.log.read_text()[-3000:]
        file = tmp_path / "ingestd.yaml"
        words = (("validate", "-c", file, "--online"), ("plan", "-c", file))
        checked = [run_command(capsys, *command) for command in words]
        assert [done.code for done in checked] == [0, 0], checked
        stored = server.run("SELECT database_name, table_name FROM catalog.paimon_tables")
        assert set(stored) == {("ods", "ingestd_dead_letters"), ("ods", "orders")}
        opened = load_catalog("jdbc", str(tmp_path / "lake"), {"uri": uri, "jdbc.user": USER})
        table = opened.get_table(Identifier("ods", "orders"))
        assert sorted(row["id"] for row in stored_rows(table)) == list(range(20))
        assert server.run("SELECT * FROM catalog.paimon_distributed_locks") == []
    outputs = [
        (command[0], done.out + done.err) for command, done in zip(words, checked, strict=True)
    ]
    left = files_below(tmp_path, leaving_out=[tmp_path / "secrets"])
    assert planted.search([*outputs, *left]) == {}
