"""The daemon with a Hive catalog, and with the entries of Iceberg in the same Hive Metastore."""

from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.paimon.catalog.base import Identifier, load_catalog
from tests.compat.hive_metastore import HiveMetastore, java_catalog
from tests.compat.iceberg_reader import IcebergReader
from tests.support.change_events import SourceTable, event, key
from tests.support.command_line import run_command
from tests.support.daemon import run_daemon
from tests.support.kafka_broker import fresh_topic, produce
from tests.support.stored_rows import stored_rows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

CLICKS = SourceTable("shop", "public", "clicks")


def test_the_daemon_keeps_its_tables_and_their_iceberg_metadata_in_a_metastore(
    tmp_path: Path, broker: DevBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = fresh_topic(broker)
    orders = [(key(id=n), event("c", {"id": n, "day": f"d{n % 2}"})) for n in range(20)]
    orders += [(key(id=n), event("u", {"id": n, "day": f"d{n % 2}", "w": n})) for n in range(5)]
    clicks = [(key(id=n), event("c", {"id": n, "v": "x"}, table=CLICKS)) for n in range(10)]
    produce(broker, topic, [*orders, *clicks])
    with HiveMetastore(tmp_path) as metastore:
        uri = metastore.uri
        config = {
            "pipeline": {"name": "shop"},
            "warehouse": {
                "path": str(tmp_path / "lake"),
                "database": "ods",
                "catalog": {
                    "metastore": "hive",
                    "uri": uri,
                    "options": {"lock.enabled": "true"},
                },
            },
            "sources": {
                "shop": {
                    "kafka": {"bootstrap.servers": broker.bootstrap},
                    "topics": [topic],
                    "format": "debezium-json",
                }
            },
            "tables": {
                "orders": {
                    "primary-keys": ["id", "day"],
                    "partition-keys": ["day"],
                    "options": {"bucket": "1", "metastore.partitioned-table": "true"},
                },
                "clicks": {
                    "primary-keys": "none",
                    "options": {
                        "bucket": "-1",
                        "metadata.iceberg.storage": "hive-catalog",
                        "metadata.iceberg.uri": uri,
                        "metadata.iceberg.database": "ice",
                    },
                },
            },
        }
        with run_daemon(config, tmp_path, until_latest=True) as daemon:
            assert daemon.wait() == 0, daemon.log.read_text()[-3000:]
        log = daemon.log.read_text()
        assert "iceberg_metadata_failed" not in log
        assert "partitions_not_registered" not in log
        file = tmp_path / "ingestd.yaml"
        words = (("validate", "-c", file, "--online"), ("plan", "-c", file))
        checked = [run_command(capsys, *command) for command in words]
        assert [done.code for done in checked] == [0, 0], checked
        catalog = load_catalog("hive", str(tmp_path / "lake"), {"uri": uri})
        assert catalog.list_tables("ods") == ["clicks", "ingestd_dead_letters", "orders"]
        table = catalog.get_table(Identifier("ods", "orders"))
        rows = sorted(stored_rows(table), key=lambda row: row["id"])
        assert [(row["id"], row["w"]) for row in rows] == [
            (n, n if n < 5 else None) for n in range(20)
        ]
        with IcebergReader(java_catalog()[1:]) as iceberg:
            read = iceberg.read_in_hive(uri, "ice.clicks")
        assert sorted(row["id"] for row in read) == list(range(10))
        hive = ("--metastore", "hive", "--uri", uri)
        spoken = run_command(capsys, "repair", tmp_path / "lake", "ods.clicks", *hive)
        assert spoken.code == 0, spoken
