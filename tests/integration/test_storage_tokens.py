"""Credentials that a REST catalog hands out per table, in a real S3 server that ends them."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.spark_cluster import SparkCluster
from ingestd import secret_references
from ingestd.dev.broker import DevBroker
from ingestd.errors import StorageError
from ingestd.ingest.maintenance.jobs import NotDone, do_job
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.ingest.tables.batch_span import BatchSpan, TableStep
from ingestd.ingest.tables.log_positions import Position
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.paimon.catalog.base import Catalog, Identifier, load_catalog
from ingestd.paimon.io.file_io import LocalFileIO, file_io_for
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.spark.sealed_task import SealedTask, seal
from tests.integration.token_catalog import TokenCatalog
from tests.support.command_line import run_command
from tests.support.daemon import catch_up
from tests.support.ledger import Ledger
from tests.support.native_tables import NOW_MS, put, rows_table, write
from tests.support.pipelines import DATABASE, pipeline
from tests.support.planted import files_below
from tests.support.registries import pipeline_of
from tests.support.s3_server import S3Server, built, can_be_had, running_s3
from tests.support.stored_rows import stored_rows

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not can_be_had(), reason="the S3 server is built with go"),
]

SCHEMA = new_schema([("id", parse_type("INT"))], ["id"], [], {"bucket": "1"}, NOW_MS)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_s3(built(), tmp_path_factory.mktemp("s3")) as server:
        yield server


def catalog_of(server: TokenCatalog, **options: str) -> Catalog:
    return load_catalog("rest", "lake", {**server.options, **options})


def ids(table: FileStoreTable) -> list[int]:
    return sorted(row["id"] for row in stored_rows(table))


def test_each_table_uses_its_own_key(s3: S3Server) -> None:
    buckets = {"orders": "of-orders", "entries": "of-entries"}
    with TokenCatalog(s3, buckets, seconds=3600, owners=True) as server:
        catalog = catalog_of(server)
        for name in buckets:
            table = catalog.create_table(Identifier("shop", name), SCHEMA)
            put(table, [{"id": 1}])
            assert (table.path, ids(table)) == (f"s3://of-{name}/managed/shop.db/{name}", [1])
        assert [table for table, *_ in server.given] == ["orders", "entries"]
        _, key, secret = server.given[0]
        keys = {"s3.access-key": key, "s3.secret-key": secret}
        wrong = file_io_for("s3://of-entries", {**s3.options, **keys})
        with pytest.raises(StorageError, match="403"):
            wrong.list_names("s3://of-entries/managed")
        assert secret not in repr(catalog) + repr(table.io) + repr(server.given[1:])


def test_a_token_is_replaced_before_it_expires(s3: S3Server) -> None:
    with TokenCatalog(s3, {"renewed": "renewed"}, seconds=3) as server:
        table = catalog_of(server).create_table(Identifier("shop", "renewed"), SCHEMA)
        large = f"{table.path}/large"
        table.io.write_new(large, bytes(9 << 20))
        count = 0
        with table.io.open_input(large) as stream:
            while len(server.given) < 5:
                put(table, [{"id": count}])
                assert stream.read(1) == b"\0"
                count += 1
                time.sleep(0.05)
        assert ids(server.table("renewed")) == list(range(count))
        _, key, secret = server.given[0]
        first = {"s3.access-key": key, "s3.secret-key": secret}
        with pytest.raises(StorageError, match="403"):
            file_io_for(table.path, {**s3.options, **first}).list_names(table.path)


def test_a_token_that_is_withdrawn_early_fails_one_attempt(s3: S3Server) -> None:
    with TokenCatalog(s3, {"withdrawn": "withdrawn"}, seconds=3600) as server:
        table = catalog_of(server).create_table(Identifier("shop", "withdrawn"), SCHEMA)
        put(table, [{"id": 1}])
        s3.delete_account(server.given[0][1])
        with pytest.raises(StorageError, match="403"):
            put(table, [{"id": 2}])
        put(table, [{"id": 3}])
        assert ids(table) == [1, 3]
        assert len(server.given) == 2


def test_a_stream_reads_on_with_another_token_after_one_was_withdrawn(s3: S3Server) -> None:
    with TokenCatalog(s3, {"streamed": "streamed"}, seconds=3600) as server:
        table = catalog_of(server).create_table(Identifier("shop", "streamed"), SCHEMA)
        large = f"{table.path}/large"
        table.io.write_new(large, bytes(9 << 20))
        with table.io.open_input(large) as stream:
            assert stream.read(1) == b"\0"
            s3.delete_account(server.given[0][1])
            with pytest.raises(StorageError, match=r"cannot read from 1: .*/large: .*403"):
                stream.read(1)
            assert stream.read(1) == b"\0"
        assert len(server.given) == 2


def test_maintenance_and_commands_use_the_credentials_of_a_table(
    s3: S3Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with TokenCatalog(s3, {"kept": "kept"}, seconds=3600) as server:
        catalog = catalog_of(server)
        table = catalog.create_table(Identifier("shop", "kept"), SCHEMA)
        for number in range(12):
            put(table, [{"id": number}])
        for kind in ("full", "expire"):
            assert not isinstance(do_job(catalog, Job(kind, "shop.kept"), "maintenance"), NotDone)
        (tmp_path / "token").write_text(server.token)
        given = ["--metastore", "rest", "--uri", server.endpoint]
        for option in (f"token-file={tmp_path / 'token'}", f"s3.endpoint={s3.endpoint}"):
            given += ["--catalog-option", option]
        given += ["--catalog-option", "s3.path.style.access=true"]
        done = run_command(capsys, "read", "lake", "shop.kept", *given, "--json")
        shown = sorted(json.loads(line)["id"] for line in done.out.splitlines())
        assert shown == list(range(12))
        orphans = ("remove-orphans", "lake", "shop.kept", "--older-than", "0 ms", "--yes")
        assert run_command(capsys, *orphans, *given).code == 0
        assert ids(server.table("kept")) == list(range(12))


def test_a_task_asks_for_credentials_itself_and_carries_none(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with TokenCatalog(s3, {"sealed": "sealed"}, seconds=3600) as server:
        monkeypatch.setattr(secret_references, "_known", {})
        environment = {"CATALOG_TOKEN": server.token}
        token = secret_references.resolve("${env:CATALOG_TOKEN}", environment, tmp_path)
        table = catalog_of(server, token=token).create_table(Identifier("shop", "sealed"), SCHEMA)
        put(table, [{"id": 7}])
        task = seal(table)
        assert isinstance(task, SealedTask)
        _, key, secret = server.given[0]
        for planted in (server.token, key, secret, s3.options["s3.secret-key"]):
            assert planted.encode() not in task.payload
        (tmp_path / "task").write_bytes(task.payload)
        program = (
            "import sys; from ingestd.spark.sealed_task import SealedTask\n"
            "from tests.support.stored_rows import stored_rows\n"
            "table = SealedTask(open(sys.argv[1], 'rb').read()).opened()\n"
            "print(stored_rows(table)[0]['id'])"
        )
        command = [sys.executable, "-c", program, str(tmp_path / "task")]
        inherited = {name: v for name, v in os.environ.items() if not name.startswith("AWS_")}
        done = subprocess.run(
            command, env={**inherited, **environment}, capture_output=True, check=True
        )
        assert done.stdout == b"7\n"
        assert len(server.given) == 2


def test_commits_to_external_tables_are_files(s3: S3Server) -> None:
    with TokenCatalog(s3, {"external": "external"}, seconds=3600) as server:
        server.external = True
        table = catalog_of(server).create_table(Identifier("shop", "external"), SCHEMA)
        put(table, [{"id": 1}])
        put(table, [{"id": 2}])
        assert not [one for one in server.asked if one.endswith("/commit")]
        assert ids(server.table("external")) == [1, 2]


def test_a_pipeline_sees_schemas_of_the_server_and_waits_for_it(
    s3: S3Server, tmp_path: Path
) -> None:
    with TokenCatalog(s3, {"changed": "changed"}, seconds=3600) as server:
        settings = pipeline_of(
            tmp_path, metastore="rest", database="shop", catalog_options=server.options
        )
        registry = TableRegistry(
            settings, catalog_of(server), LocalFileIO(sync=False), lambda: NOW_MS
        )
        registry.open()
        name = "shop.changed"
        registry.ensure(name, SCHEMA)

        def commit(first: int) -> None:
            one = registry.tables[name]
            rows = rows_table(one.table.schema, [{"id": first}], first)
            span = BatchSpan({"id": {0: first}}, {"id": {0: Position(first + 1, 0)}})
            messages = write(one.table, one.state, rows)
            registry.mark([name])
            server.failures[:] = [503, 429]
            done = registry.commit(name, messages, span, TableStep(frozenset({"id"})))
            assert done.status == "committed"

        commit(0)
        server.alter("changed", [AddColumn("more", parse_type("STRING"))])
        commit(1)
        assert registry.refresh_schema(name)
        assert not registry.refresh_schema(name)
        columns = [field.name for field in registry.tables[name].table.schema.fields]
        assert columns == ["id", "more"]
        commit(2)
        assert ids(server.table("changed")) == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="takes a minute")
def test_executors_ask_the_catalog_and_nothing_on_their_way_holds_a_secret(
    tmp_path: Path, broker: DevBroker, s3: S3Server
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 20_000)
    ledger.produce(broker)
    for name in ("events", "cluster"):
        (tmp_path / name).mkdir()
    buckets = {"account": "of-account", "entry": "of-entry"}
    with (
        SparkCluster(tmp_path / "cluster", workers=2, cores=1) as cluster,
        TokenCatalog(s3, buckets, seconds=30) as server,
    ):
        secrets = {"id": "s3.access-key", "key": "s3.secret-key"}
        for file, option in secrets.items():
            (tmp_path / file).write_text(s3.options[option])
        (tmp_path / "token").write_text(server.token)
        own = {option: f"${{file:{file}}}" for file, option in secrets.items()}
        config = pipeline(
            tmp_path,
            broker.bootstrap,
            ledger.pattern,
            batch_rows=10_000,
            processing={"small-batch-records": 1},
            spark={
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.executor.memory": "512m",
                "spark.master": cluster.url,
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": (tmp_path / "events").as_uri(),
            },
            warehouse={
                "path": f"s3://{s3.bucket}/own",
                "database": DATABASE,
                "options": {**s3.options, **own},
                "catalog": {
                    "metastore": "rest",
                    "uri": server.endpoint,
                    "warehouse": "lake",
                    "token": "${file:token}",
                },
            },
        )
        catch_up(config, tmp_path)
        accounts = stored_rows(server.table("account", DATABASE))
        entries = stored_rows(server.table("entry", DATABASE))
        assert server.asked.count("GET /v1/config") >= 3, "driver and executors ask for themselves"
        planted = {server.token, s3.options["s3.secret-key"], *(one[2] for one in server.given)}
    assert {row["account"]: row["number"] for row in accounts} == ledger.final_accounts()
    assert sorted(row["number"] for row in entries) == sorted(ledger.entries())
    places = [*files_below(tmp_path / "events"), *files_below(tmp_path / "cluster")]
    assert places
    assert [
        name for name, content in places if any(secret.encode() in content for secret in planted)
    ] == []
