import sqlite3
from pathlib import Path

import pytest

from ingestd.errors import CommitConflictError, IngestdError, LockUnavailableError
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.batch_span import BatchSpan, TableStep
from ingestd.ingest.tables.log_positions import Position
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.catalog.jdbc import jdbc_options
from ingestd.paimon.catalog.jdbc_database import PostgresDatabase
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.native_tables import NOW_MS, rows_table, write
from tests.support.stored_rows import stored_rows

URI = "jdbc:postgresql://h:1/db"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'uri'"),
        ({"uri": "jdbc:oracle:thin:@h"}, r"not supported; write jdbc:sqlite:/PATH, jdbc:postgr"),
        ({"uri": "jdbc:mariadb://h/db"}, r"for MariaDB and MySQL jdbc:mysql://HOST:PORT/DATABASE"),
        ({"uri": "jdbc:mysql://h"}, "write jdbc:mysql://HOST:PORT/DATABASE"),
        ({"uri": "jdbc:mysql://h/db?useSSL=true"}, "property useSSL .* supported: connectTimeout"),
        ({"uri": "jdbc:mysql://h/db?sslMode=REQUIRED"}, "sslMode = 'REQUIRED'"),
        ({"uri": "jdbc:mysql://h/db?connectTimeout=1s"}, "connectTimeout = '1s'"),
        ({"uri": "jdbc:mysql://h/db?password=hunter22"}, "set it as 'jdbc.password'"),
        ({"uri": "jdbc:sqlite::memory:"}, "absolute path"),
        ({"uri": "jdbc:sqlite:file.db"}, "absolute path"),
        ({"uri": "jdbc:sqlite:/f?cache=shared"}, "property cache .* supported: busy_timeout"),
        ({"uri": "jdbc:sqlite:/f?busy_timeout=x"}, "busy_timeout"),
        ({"uri": "jdbc:sqlite:/f?journal_mode=off"}, "supported: DELETE, TRUNCATE, WAL"),
        ({"uri": "jdbc:postgresql:db"}, "//HOST:PORT/DATABASE"),
        ({"uri": "jdbc:postgresql://h:x/db"}, "Port"),
        ({"uri": f"{URI}?password=hunter22"}, "set it as 'jdbc.password'"),
        ({"uri": URI, "jdbc.sslfactory": "x"}, "property sslfactory"),
        ({"uri": URI, "lock.type": "zookeeper"}, "no option lock.type"),
        ({"uri": URI, "lock-acquire-timeout": "soon"}, "lock-acquire-timeout"),
    ],
)
def test_unsupported_options_are_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(IngestdError, match=message) as refused:
        jdbc_options("/lake", options)
    assert "hunter22" not in str(refused.value)


def test_options_have_the_defaults_of_paimon() -> None:
    options = jdbc_options("/lake", {"uri": f"{URI}?sslmode=require", "jdbc.user": "u"})
    assert options.catalog_key == "jdbc"
    assert options.lock is None
    assert options.sync_properties
    assert isinstance(options.database, PostgresDatabase)
    target = {"host": "h", "port": "1", "dbname": "db"}
    assert options.database.settings == {"user": "u", "sslmode": "require", **target}
    lock = jdbc_options("s3://b/lake", {"uri": URI}).lock
    assert lock is not None
    assert (lock.acquire_timeout_ms, lock.check_max_sleep_ms) == (480_000, 8_000)
    assert jdbc_options("hdfs://h/lake", {"uri": URI}).lock is None


def test_a_pipeline_commits_under_the_lock_and_finds_its_offsets_again(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    options = {
        "uri": f"jdbc:sqlite:{file}",
        "lock.enabled": "true",
        "lock-acquire-timeout": "1 ms",
        "lock-check-max-sleep": "1 ms",
    }
    catalog = load_catalog("jdbc", str(tmp_path), options)
    settings = PipelineSettings(
        name="job",
        warehouse=str(tmp_path),
        metastore="jdbc",
        catalog_options=options,
        database="db",
        sources={},
        routing=RoutingConfig(),
        defaults=TableSettings(),
        tables={},
        max_offsets_per_trigger={},
    )

    def opened() -> TableRegistry:
        registry = TableRegistry(settings, catalog, LocalFileIO(sync=False), lambda: NOW_MS)
        registry.open()
        return registry

    registry = opened()
    columns = [("id", parse_type("INT"))]
    registry.ensure("db.t", new_schema(columns, ["id"], (), {"bucket": "1"}, NOW_MS))
    registry.alter("db.t", [AddColumn("new", parse_type("INT"))])
    managed = registry.tables["db.t"]
    messages = write(managed.table, managed.state, rows_table(managed.table.schema, [{"id": 1}]))
    span = BatchSpan({"id": {0: 0}}, {"id": {0: Position(10, 0)}})
    registry.mark(["db.t"])
    with sqlite3.connect(file) as database:
        insert = "INSERT INTO paimon_distributed_locks (lock_id, expire_time_seconds) VALUES (?, ?)"
        database.execute(insert, ["jdbc.db.t", 600])
    committed = list(messages)
    with pytest.raises(CommitConflictError, match=r"the lock 'jdbc\.db\.t'"):
        registry.commit("db.t", committed, span, TableStep(frozenset({"id"})))
    with sqlite3.connect(file) as database:
        database.execute("DELETE FROM paimon_distributed_locks")
    result = registry.commit("db.t", committed, span, TableStep(frozenset({"id"})))
    assert result.status == "committed"
    again = opened().tables["db.t"]
    assert again.covered["id"][0].offset == 10
    assert [row["id"] for row in stored_rows(again.table)] == [1]


def test_a_database_that_cannot_be_reached_for_the_lock_leaves_the_outcome_known(
    tmp_path: Path,
) -> None:
    file = tmp_path / "catalog.db"
    options = {"uri": f"jdbc:sqlite:{file}", "lock.enabled": "true"}
    catalog = load_catalog("jdbc", str(tmp_path / "lake"), options)
    limits = {"bucket": "1", "commit.max-retries": "1"}
    schema = new_schema([("id", parse_type("INT"))], ["id"], (), limits, NOW_MS)
    table = catalog.create_table(Identifier("db", "t"), schema)
    state = load_state(table)
    messages = write(table, state, rows_table(table.schema, [{"id": 1}]))
    committable = ManifestCommittable(1, tuple(messages))
    file.rename(tmp_path / "away")
    file.mkdir()
    with pytest.raises(LockUnavailableError, match="nothing of this commit is visible"):
        commit(table, "user", committable, state=state, now_ms=NOW_MS)
    assert stored_rows(table) == []
    file.rmdir()
    (tmp_path / "away").rename(file)
    commit(table, "user", committable, state=state, now_ms=NOW_MS)
    assert [row["id"] for row in stored_rows(table)] == [1]
