"""The JDBC catalog and Java Paimon's, on the same databases: SQLite, PostgreSQL and MariaDB."""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ingestd.errors import CommitConflictError, ConfigError, FormatError, StorageError
from ingestd.paimon.catalog.base import (
    Catalog,
    DatabaseNotEmptyError,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    load_catalog,
)
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.verify.table_verify import verify
from tests.compat.branch_pipeline import publish_a_branch
from tests.support.java import fetched
from tests.support.mariadb_server import USER, MariaDbServer
from tests.support.native_tables import NOW_MS, put
from tests.support.oracle import Oracle, OracleError
from tests.support.postgres_server import PostgresServer, is_supported
from tests.support.stored_rows import stored_rows
from tests.support.truth_rig import DATABASE, Truth

pytestmark = pytest.mark.compat

T = Identifier("db", "t")
NO_OPTIONS: Mapping[str, str] = {}
FIELDS = [{"name": "id", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}]
SHORT = {"lock-acquire-timeout": "200 ms", "lock-check-max-sleep": "50 ms"}


@pytest.fixture(scope="module")
def judge() -> Iterator[Oracle]:
    with Oracle(
        more=[fetched("sqlite-jdbc"), fetched("postgresql"), fetched("mysql-connector-j")]
    ) as running:
        yield running


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDbServer]:
    with MariaDbServer() as running:
        yield running


def empty_database(server: MariaDbServer, charset: str) -> dict[str, str]:
    """Options of a catalog in an empty database, the only one with a catalog: Java sees all.

    Java's keys fit into latin1, and not into utf8mb4.
    """
    server.run(f"CREATE OR REPLACE DATABASE catalog CHARACTER SET {charset}")
    return {"uri": f"jdbc:mysql://127.0.0.1:{server.port}/catalog", "jdbc.user": USER}


@dataclass(frozen=True)
class Lake:
    """A warehouse with a JDBC catalog, for ingestd and for Java."""

    warehouse: Path
    options: Mapping[str, str]
    judge: Oracle

    def catalog(self, **options: str) -> Catalog:
        changed = {name.replace("_", "-"): value for name, value in options.items()}
        return load_catalog("jdbc", str(self.warehouse), {**self.options, **changed})

    def java(self, **options: str) -> str:
        """The catalog's options for a command of the judge."""
        fixed = {"metastore": "jdbc", "warehouse": str(self.warehouse), "cache-enabled": "false"}
        changed = {name.replace("_", "-"): value for name, value in options.items()}
        return json.dumps({**fixed, **self.options, **changed})

    def judge_rows(self) -> list[dict[str, object]]:
        return self.judge.read(self.java(), "db", "t")


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def lake(request: pytest.FixtureRequest, judge: Oracle, tmp_path: Path) -> Lake:
    options = {"lock.enabled": "true", "catalog-key": tmp_path.name}
    if request.param == "sqlite":
        url = f"jdbc:sqlite:{tmp_path}/catalog.db?busy_timeout=4000&journal_mode=WAL"
        return Lake(tmp_path / "lake", {**options, "uri": url}, judge)
    if not is_supported():
        pytest.skip("the servers are fetched for Linux on x86-64 only")
    if request.param == "mariadb":
        settings = empty_database(request.getfixturevalue("mariadb"), "latin1")
        return Lake(tmp_path / "lake", {**options, **settings}, judge)
    port = request.getfixturevalue("postgres").port
    url = f"jdbc:postgresql://127.0.0.1:{port}/postgres"
    return Lake(tmp_path / "lake", {**options, "uri": url, "jdbc.user": "postgres"}, judge)


@pytest.fixture
def sqlite_lake(judge: Oracle, tmp_path: Path) -> Lake:
    options = {"uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "lock.enabled": "true"}
    return Lake(tmp_path / "lake", options, judge)


def schema() -> TableSchema:
    columns = [("id", parse_type("INT")), ("v", parse_type("STRING"))]
    return new_schema(columns, ["id"], (), {"bucket": "2", "long": "x" * 2000}, NOW_MS)


def rows(table: FileStoreTable) -> list[dict[str, object]]:
    return sorted(stored_rows(table), key=lambda row: row["id"])


def java_spec(
    lake: Lake, scratch: Path, catalog: Mapping[str, str] = NO_OPTIONS, **spec: object
) -> None:
    document = {"database": "db", "table": "t", **spec}
    lake.judge.write_spec(document, lake.java(**catalog), scratch)


def test_java_continues_a_table_of_ingestd(lake: Lake, tmp_path: Path) -> None:
    catalog = lake.catalog()
    put(catalog.create_table(T, schema()), [{"id": 1, "v": "a"}])
    put(
        catalog.alter_table(T, [AddColumn("w", parse_type("INT"))], NOW_MS),
        [{"id": 2, "v": "b", "w": 5}],
    )
    assert lake.judge("tables", lake.java()) == ["db.t"]
    lake.judge.append(lake.java(), "db", "t", [{"id": 1, "v": "java", "w": 1}], tmp_path)
    expected = [{"id": 1, "v": "java", "w": 1}, {"id": 2, "v": "b", "w": 5}]
    assert lake.judge_rows() == expected
    assert rows(catalog.get_table(T)) == expected
    assert verify(catalog.get_table(T)) == []
    lake.judge("drop", lake.java(), "db", "t")
    assert (catalog.list_tables("db"), catalog.table_exists(T)) == ([], False)


def test_ingestd_continues_a_table_of_java(lake: Lake, tmp_path: Path) -> None:
    steps = [{"commit": {"rows": [{"id": 1, "v": "java"}]}}]
    spec = {"fields": FIELDS, "primaryKey": ["id"], "options": {"bucket": "1"}, "steps": steps}
    java_spec(lake, tmp_path, **spec)
    catalog = lake.catalog()
    assert (catalog.list_databases(), catalog.list_tables("db")) == (["db"], ["t"])
    put(catalog.get_table(T), [{"id": 2, "v": "b"}])
    table = catalog.alter_table(T, [AddColumn("w", parse_type("INT"))], NOW_MS)
    assert rows(table) == lake.judge_rows()
    assert len(lake.judge_rows()) == 2
    catalog.rename_table(T, Identifier("db", "u"))
    assert lake.judge("tables", lake.java()) == ["db.u"]
    with pytest.raises(DatabaseNotEmptyError):
        catalog.drop_database("db")
    catalog.drop_database("db", cascade=True)
    assert lake.judge("tables", lake.java()) == []
    assert not (lake.warehouse / "db.db").exists()


def test_each_waits_for_the_lock_of_the_other(lake: Lake, tmp_path: Path) -> None:
    catalog = lake.catalog(**SHORT)
    table = catalog.create_table(T, schema())
    put(table, [{"id": 1, "v": "a"}])
    row = [{"id": 2, "v": "b"}]
    added = {"op": "add", "name": "w", "type": "INT"}
    lock = lake.catalog().get_table(T).lock  # expires after the longest wait of who holds it
    with lock.held("main"), pytest.raises(OracleError, match="Acquire lock failed"):
        java_spec(lake, tmp_path, SHORT, existing=True, steps=[{"alter": [added]}])
    held, release = tmp_path / "held", tmp_path / "release"
    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(lake.judge, "hold", lake.java(), "db", "t", held, release)
        try:
            while not held.exists():
                assert not holder.done()
                time.sleep(0.01)
            with pytest.raises(CommitConflictError, match="raise 'lock-acquire-timeout'"):
                put(table, [{"id": 1, "v": "stopped"}])
            with pytest.raises(CommitConflictError, match=r"held the lock '.*\.db\.t'"):
                catalog.alter_table(T, [AddColumn("w", parse_type("INT"))], NOW_MS)
        finally:
            release.touch()
        holder.result()
    lake.judge.append(lake.java(), "db", "t", row, tmp_path)
    assert rows(table)[-1] == row[0]
    put(table, [{"id": 3, "v": "c"}])


def test_java_and_we_commit_at_the_same_time_and_nothing_is_lost(
    lake: Lake, tmp_path: Path
) -> None:
    table = lake.catalog(lock_check_max_sleep="20 ms").create_table(T, schema())
    java = lake.java(**{"lock-check-max-sleep": "20 ms"})
    with ThreadPoolExecutor(1) as pool:
        beside = [
            pool.submit(lake.judge.append, java, "db", "t", [{"id": n, "v": "java"}], tmp_path)
            for n in range(100, 106)
        ]
        for number in range(6):
            put(table, [{"id": number, "v": "ours"}], identifier=number + 1)
        for done in beside:
            done.result()
    assert [row["id"] for row in rows(table)] == [*range(6), *range(100, 106)]
    assert sorted(row["id"] for row in lake.judge_rows()) == [*range(6), *range(100, 106)]
    assert verify(table) == []


def test_a_pipeline_writes_a_branch(sqlite_lake: Lake, tmp_path: Path) -> None:
    """Java's JDBC catalog opens no branches, so it reads them as files."""
    pipeline = Truth(tmp_path, metastore="jdbc", catalog_options=sqlite_lake.options)
    folder, java = pipeline.settings.warehouse, sqlite_lake.judge
    publish_a_branch(
        pipeline, lambda name: [row["id"] for row in java.read(folder, DATABASE, name)]
    )


def test_databases_and_tables(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_database("db", {"owner": "tests"})
    catalog.create_database("db", {"owner": "others"})
    assert catalog.database_properties("db")["owner"] == "tests"
    first = catalog.create_table(T, schema())
    assert catalog.create_table(T, schema(), ignore_if_exists=True).schema == first.schema
    with pytest.raises(TableExistsError):
        catalog.create_table(T, schema())
    catalog.create_table(Identifier("db", "other"), schema())
    with pytest.raises(TableExistsError):
        catalog.rename_table(T, Identifier("db", "other"))
    with pytest.raises(TableNotFoundError, match="did you mean 'other'"):
        catalog.get_table(Identifier("db", "othe"))
    with pytest.raises(TableNotFoundError, match="did you mean 'db'"):
        catalog.list_tables("dbs")
    with pytest.raises(ConfigError, match="capitals"):
        catalog.create_table(Identifier("db", "Upper"), schema())
    with pytest.raises(ConfigError, match="location"):
        catalog.create_database("elsewhere", {"location": "/x"})
    assert catalog.list_tables("db") == ["other", "t"]
    assert lake.catalog(catalog_key="another").list_databases() == []


def test_properties_are_those_that_java_writes(sqlite_lake: Lake, tmp_path: Path) -> None:
    spec = {"fields": FIELDS, "primaryKey": ["id"], "options": {"bucket": "1"}, "steps": []}
    java_spec(sqlite_lake, tmp_path, **spec)
    catalog = sqlite_lake.catalog()
    of_java = sqlite_lake.catalog().get_table(T).schema
    catalog.create_table(Identifier("db", "ours"), of_java)
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        select = "SELECT property_key, property_value FROM paimon_table_properties WHERE "
        stored = [
            sorted(database.execute(f"{select} table_name = ?", [name])) for name in ("t", "ours")
        ]
    assert stored[0] == stored[1]
    assert stored[0]


def test_an_interrupted_creation_or_deletion_is_repeated(sqlite_lake: Lake, tmp_path: Path) -> None:
    catalog = sqlite_lake.catalog()
    put(catalog.create_table(T, schema()), [{"id": 1, "v": "a"}])
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        database.execute("DELETE FROM paimon_tables")
    with pytest.raises(TableExistsError):
        catalog.create_table(T, schema())
    assert rows(catalog.create_table(T, schema(), ignore_if_exists=True)) == [{"id": 1, "v": "a"}]
    assert sqlite_lake.judge("tables", sqlite_lake.java()) == ["db.t"]
    load_catalog("filesystem", str(sqlite_lake.warehouse)).drop_table(T)
    with pytest.raises(FormatError, match="no schema"):
        catalog.get_table(T)
    catalog.drop_table(T)
    assert catalog.list_tables("db") == []


def test_an_interrupted_rename_is_repeated(lake: Lake) -> None:
    catalog, target = lake.catalog(), Identifier("db", "u")
    put(catalog.create_table(T, schema()), [{"id": 1, "v": "a"}])
    files = load_catalog("filesystem", str(lake.warehouse))
    files.rename_table(T, target)  # killed before the database has committed
    catalog.rename_table(T, target)
    assert lake.judge.read(lake.java(), "db", "u") == [{"id": 1, "v": "a"}]
    assert catalog.list_tables("db") == ["u"]
    with pytest.raises(TableNotFoundError):
        catalog.rename_table(T, target)


def test_a_writer_whose_lock_has_expired_leaves_the_lock_of_the_next(lake: Lake) -> None:
    lock = lake.catalog().create_table(T, schema()).lock
    hasty = lake.catalog(**SHORT).get_table(T).lock
    with ExitStack() as next_writer:
        with lock.held("main"):
            with lock.database.transaction() as session:
                old = "UPDATE paimon_distributed_locks SET acquired_at = '2020-01-01 00:00:00'"
                assert session.execute(old) == 1
            time.sleep(1.1)  # times have seconds in some databases
            next_writer.enter_context(lock.held("main"))
        with pytest.raises(CommitConflictError), hasty.held("main"):
            pass
    with hasty.held("main"):
        pass


def test_a_lock_that_cannot_be_released_is_logged(
    sqlite_lake: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lock = sqlite_lake.catalog().create_table(T, schema()).lock
    quick = replace(lock.database, busy_millis=1)
    lock = replace(lock, database=quick, sleep=lambda _: None)
    with sqlite3.connect(tmp_path / "catalog.db") as database, lock.held("main"):
        database.execute("BEGIN IMMEDIATE")
    assert "lock_not_released" in caplog.text
    assert lock.database.address in str(caplog.records[-1].ctx)


def test_the_lock_of_a_process_that_ended_expires(sqlite_lake: Lake, tmp_path: Path) -> None:
    table = sqlite_lake.catalog(**SHORT).create_table(T, schema())
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        insert = "INSERT INTO paimon_distributed_locks VALUES ('jdbc.db.t', ?, 60)"
        database.execute(insert, ["2020-01-01 00:00:00"])
    put(table, [{"id": 1, "v": "a"}])
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        assert database.execute("SELECT * FROM paimon_distributed_locks").fetchall() == []


def test_names_in_mariadb_are_compared_by_bytes(
    mariadb: MariaDbServer, judge: Oracle, tmp_path: Path
) -> None:
    options = empty_database(mariadb, "utf8mb4")
    lake = Lake(tmp_path / "lake", {**options, "lock.enabled": "true"}, judge)
    names = ["cafe", "café", "it's 100 %s?", "表"]
    catalog = lake.catalog()
    for at, name in enumerate(names):
        put(catalog.create_table(Identifier("db", name), schema()), [{"id": at, "v": name}])
    assert catalog.list_tables("db") == sorted(names)
    assert sorted(judge("tables", lake.java())) == sorted(f"db.{name}" for name in names)
    for at, name in enumerate(names):
        assert judge.read(lake.java(), "db", name) == [{"id": at, "v": name}]
    catalog.drop_table(Identifier("db", "café"))
    assert catalog.list_tables("db") == sorted(set(names) - {"café"})


def test_a_name_that_a_collation_takes_for_another_is_no_table(
    mariadb: MariaDbServer, tmp_path: Path, judge: Oracle
) -> None:
    lake = Lake(tmp_path / "lake", empty_database(mariadb, "latin1"), judge)
    java_spec(lake, tmp_path, fields=FIELDS, primaryKey=["id"], options={"bucket": "1"}, steps=[])
    catalog = lake.catalog()
    with pytest.raises(TableNotFoundError):
        catalog.drop_table(Identifier("db", "T"))
    assert catalog.list_tables("db") == ["t"]


def test_what_columns_of_mariadb_cannot_store_is_no_property_and_no_name(
    mariadb: MariaDbServer, judge: Oracle, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake", empty_database(mariadb, "utf8mb4"), judge)
    catalog = lake.catalog()
    options = {"bucket": "1", "note": "\U0001f600", "n" * 300: "long", "plain": "x"}
    columns = [("id", parse_type("INT"))]
    put(catalog.create_table(T, new_schema(columns, ["id"], (), options, NOW_MS)), [{"id": 1}])
    table = catalog.alter_table(T, [AddColumn("w", parse_type("INT"))], NOW_MS)
    assert table.schema.options == options
    assert lake.judge_rows() == [{"id": 1, "w": None}]
    stored = mariadb.run("SELECT property_key FROM catalog.paimon_table_properties")
    assert {key for (key,) in stored} >= {"plain", "primary-key"}
    with pytest.raises(ConfigError, match="collations"):
        catalog.create_table(Identifier("db", "\U0001f600"), schema())


def test_a_table_whose_name_a_collation_does_not_distinguish_is_not_created(
    mariadb: MariaDbServer, tmp_path: Path, judge: Oracle
) -> None:
    lake = Lake(tmp_path / "lake", empty_database(mariadb, "latin1"), judge)
    spec = {"fields": FIELDS, "primaryKey": ["id"], "options": {"bucket": "1"}, "steps": []}
    java_spec(lake, tmp_path, table="cafe", **spec)
    with pytest.raises(ConfigError, match="another name"):
        lake.catalog().create_table(Identifier("db", "café"), schema(), ignore_if_exists=True)
    assert [path.name for path in (lake.warehouse / "db.db").iterdir()] == ["cafe"]


def test_many_writers_take_the_lock_of_mariadb_by_turns(
    mariadb: MariaDbServer, tmp_path: Path
) -> None:
    options = {**empty_database(mariadb, "utf8mb4"), "lock.enabled": "true"}
    quick = {**options, "lock-check-max-sleep": "5 ms"}
    table = load_catalog("jdbc", str(tmp_path / "lake"), quick).create_table(T, schema())
    holders: list[int] = []

    def hold(writer: int) -> None:
        for _ in range(4):
            assert table.lock is not None
            with table.lock.held("main"):
                holders.append(writer)
                assert holders == [writer]
                time.sleep(0.002)
                holders.clear()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(hold, writer) for writer in range(4)]:
            done.result()
    assert mariadb.run("SELECT count(*) FROM catalog.paimon_distributed_locks") == [(0,)]


def test_a_server_without_tls_is_refused_if_it_is_asked_for(mariadb: MariaDbServer) -> None:
    url = f"jdbc:mysql://127.0.0.1:{mariadb.port}/shop?sslMode=VERIFY_IDENTITY"
    with pytest.raises(StorageError, match="SSL"):
        load_catalog("jdbc", "/lake", {"uri": url, "jdbc.user": USER})
