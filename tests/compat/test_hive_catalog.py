"""The Hive catalog and Java Paimon's, on the same Hive Metastore."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import CommitConflictError, ConfigError, FormatError, SchemaConflictError
from ingestd.paimon.catalog.base import (
    DatabaseNotEmptyError,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    load_catalog,
)
from ingestd.paimon.catalog.hive_client import Address, Metastore
from ingestd.paimon.catalog.hive_partitions import HivePartitions
from ingestd.paimon.catalog.hive_tables import HiveTable
from ingestd.paimon.iceberg.iceberg_sync import repair_iceberg, sync_iceberg, update_iceberg
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SetOption,
    UpdateColumnType,
)
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.commit.overwrite import drop_partitions
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.done_partitions import mark_done_partitions
from ingestd.paimon.table.verify.table_verify import verify
from tests.compat.branch_pipeline import publish_a_branch
from tests.compat.hive_lake import NO_OPTIONS, PARAMETERS, Lake
from tests.compat.hive_metastore import HiveMetastore, java_catalog
from tests.compat.iceberg_reader import IcebergReader
from tests.support.native_tables import NOW_MS, put
from tests.support.oracle import Oracle, OracleError
from tests.support.stored_rows import stored_rows
from tests.support.truth_rig import Kafka, Topic, Truth

pytestmark = pytest.mark.compat

SHORT = {"lock.enabled": "true", "lock-acquire-timeout": "200 ms", "lock-check-max-sleep": "50 ms"}
FIELDS = [{"name": "id", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}]


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    with HiveMetastore(tmp_path_factory.mktemp("hive")) as running:
        yield running


@pytest.fixture(scope="module")
def judge() -> Iterator[Oracle]:
    with Oracle(more=java_catalog()) as running:
        yield running


@pytest.fixture(scope="module")
def iceberg() -> Iterator[IcebergReader]:
    with IcebergReader(java_catalog()[1:]) as running:
        yield running


@pytest.fixture
def lake(metastore: HiveMetastore, judge: Oracle, tmp_path: Path) -> Lake:
    database = "".join(char if char.isalnum() else "_" for char in tmp_path.name.lower())
    return Lake(tmp_path / "lake", database, metastore, judge)


def schema(options: Mapping[str, str] = NO_OPTIONS) -> TableSchema:
    columns = [("id", parse_type("INT")), ("v", parse_type("STRING"))]
    return new_schema(columns, ["id"], (), {"bucket": "2", **options}, NOW_MS)


def rows(table: FileStoreTable) -> list[dict[str, object]]:
    return sorted(stored_rows(table), key=lambda row: row["id"])


def test_java_continues_a_table_of_ingestd(lake: Lake, tmp_path: Path) -> None:
    catalog, t = lake.catalog(), lake.table()
    put(catalog.create_table(t, schema()), [{"id": 1, "v": "a"}])
    put(
        catalog.alter_table(t, [AddColumn("w", parse_type("INT"))], NOW_MS),
        [{"id": 2, "v": "b", "w": 5}],
    )
    assert lake.java_tables() == [str(t)]
    row = {"id": 1, "v": "java", "w": 1}
    lake.judge.append(lake.java(), lake.database, "t", [row], tmp_path)
    expected = [row, {"id": 2, "v": "b", "w": 5}]
    assert lake.java_rows() == expected
    assert rows(catalog.get_table(t)) == expected
    assert verify(catalog.get_table(t)) == []
    lake.judge("drop", lake.java(), lake.database, "t")
    assert (catalog.list_tables(lake.database), catalog.table_exists(t)) == ([], False)


def test_ingestd_continues_a_table_of_java(lake: Lake, tmp_path: Path) -> None:
    steps = [{"commit": {"rows": [{"id": 1, "v": "java"}]}}]
    lake.java_spec(tmp_path, fields=FIELDS, primaryKey=["id"], options={"bucket": "1"}, steps=steps)
    catalog, t = lake.catalog(), lake.table()
    assert lake.database in catalog.list_databases()
    assert catalog.list_tables(lake.database) == ["t"]
    put(catalog.get_table(t), [{"id": 2, "v": "b"}])
    table = catalog.alter_table(t, [AddColumn("w", parse_type("INT"))], NOW_MS)
    added = {"op": "add", "name": "x", "type": "INT"}
    lake.java_spec(tmp_path, existing=True, steps=[{"alter": [added]}])
    assert [name for name, *_ in lake.stored_columns()] == ["id", "v", "w", "x"]
    table = catalog.get_table(t)
    assert rows(table) == lake.java_rows()
    assert len(lake.java_rows()) == 2
    catalog.rename_table(t, lake.table("u"))
    assert lake.java_tables() == [str(lake.table("u"))]
    assert lake.java_rows("u") == rows(catalog.get_table(lake.table("u")))
    with pytest.raises(DatabaseNotEmptyError):
        catalog.drop_database(lake.database)
    catalog.drop_database(lake.database, cascade=True)
    assert lake.database not in catalog.list_databases()
    assert not (lake.warehouse / f"{lake.database}.db").exists()


def test_the_metastore_contains_what_java_writes(lake: Lake, tmp_path: Path) -> None:
    types = (
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(20, 3)",
        "CHAR(3)", "CHAR(300)", "VARCHAR(7)", "VARCHAR(70000)", "STRING", "BINARY(2)",
        "VARBINARY(2)", "BYTES", "DATE", "TIME(3)", "TIMESTAMP(3)",
    )  # fmt: skip
    nested = (
        {"type": "ARRAY", "element": "INT"},
        {"type": "MAP", "key": "STRING", "value": {"type": "ARRAY", "element": "BIGINT"}},
        {
            "type": "ROW",
            "fields": [
                {"id": 90, "name": "a", "type": "INT"},
                {"id": 91, "name": "b", "type": "STRING"},
            ],
        },
    )
    fields = [
        {"name": "id", "type": "INT NOT NULL", "comment": "the key"},
        *({"name": f"c{number}", "type": t} for number, t in enumerate((*types, *nested))),
    ]
    options = {"bucket": "1", "snapshot.num-retained.max": "19"}
    spec = {"fields": fields, "primaryKey": ["id"], "options": options}
    lake.java_spec(tmp_path, **spec, steps=[])
    catalog = lake.catalog()
    catalog.create_table(lake.table("ours"), catalog.get_table(lake.table()).schema)
    assert lake.stored_columns("ours") == lake.stored_columns()
    assert lake.stored_properties("ours") == lake.stored_properties()
    assert lake.stored_columns()[0] == ("id", "int", "the key")
    assert lake.stored_properties()["snapshot.num-retained.max"] == "19"
    ours, java = lake.stored("ours"), lake.stored()
    apart = (1, 4, 5, 7, PARAMETERS)  # name, times, storage
    assert {n: ours[n] for n in ours if n not in apart} == {
        n: java[n] for n in java if n not in apart
    }
    for number in java[7].content:
        if number != 2:  # the location
            assert ours[7].content[number] == java[7].content[number]


def test_changes_of_a_schema_are_made_in_the_metastore(lake: Lake) -> None:
    catalog, t = lake.catalog(), lake.table()
    catalog.create_table(t, schema({"snapshot.num-retained.max": "9"}))
    changes = [
        AddColumn("w", parse_type("INT"), "a comment"),
        SetOption("snapshot.num-retained.max", "11"),
    ]
    catalog.alter_table(t, changes, NOW_MS)
    assert lake.stored_columns()[-1] == ("w", "int", "a comment")
    assert lake.stored_properties()["snapshot.num-retained.max"] == "11"
    catalog.alter_table(
        t, [UpdateColumnType("w", parse_type("BIGINT")), RenameColumn("w", "big")], NOW_MS
    )
    assert lake.stored_columns()[-1] == ("big", "bigint", "a comment")


def test_a_change_that_the_metastore_refuses_is_not_made(lake: Lake) -> None:
    catalog, t = lake.catalog(), lake.table()
    table = catalog.create_table(t, schema())
    catalog.alter_table(t, [AddColumn("w", parse_type("INT"))], NOW_MS)
    with pytest.raises(SchemaConflictError, match=r"disallow\.incompatible\.col"):
        catalog.alter_table(t, [DropColumn("v")], NOW_MS)
    assert [name for name, *_ in lake.stored_columns()] == ["id", "v", "w"]
    assert catalog.get_table(t).schema.field_names == ("id", "v", "w")
    assert table.path == f"{lake.warehouse}/{lake.database}.db/t"


def test_a_change_after_one_that_was_interrupted_is_made(lake: Lake) -> None:
    catalog, t = lake.catalog(), lake.table()
    table = catalog.create_table(t, schema())
    interrupted = apply_changes(table.schema, [AddColumn("left", parse_type("STRING"))], NOW_MS)
    stored = HiveTable(lake.stored()).with_schema(interrupted, (), sync_properties=True)
    lake.catalog().options.metastore.alter_table(t.database, t.table, stored.fields)
    assert [name for name, *_ in lake.stored_columns()] == ["id", "v", "left"]
    catalog.alter_table(t, [AddColumn("w", parse_type("BIGINT"))], NOW_MS)
    assert lake.stored_columns()[2:] == [("w", "bigint")]
    assert catalog.get_table(t).schema.field_names == ("id", "v", "w")


@pytest.mark.parametrize("kind", ["primary key", "append"])
def test_java_and_we_commit_at_the_same_time_and_nothing_is_lost(
    lake: Lake, tmp_path: Path, kind: str
) -> None:
    options = {"lock.enabled": "true", "lock-check-max-sleep": "20 ms"}
    keys = ["id"] if kind == "primary key" else []
    columns = [("id", parse_type("INT")), ("v", parse_type("STRING"))]
    more = {"bucket": "2"} if keys else iceberg_options(lake)
    new = new_schema(columns, keys, (), more, NOW_MS)
    table = lake.catalog(options).create_table(lake.table(), new)
    ours, java = range(8), range(100, 108)
    with ThreadPoolExecutor(1) as pool:
        beside = [
            pool.submit(lake.judge.append, lake.java(options), lake.database, "t",
                        [{"id": number, "v": "java"}], tmp_path)
            for number in java
        ]  # fmt: skip
        for number in ours:
            committed = put(table, [{"id": number, "v": "ours"}], identifier=number + 1)
            assert update_iceberg(table, committed=committed)
        for done in beside:
            done.result()
    wanted = [(n, "ours") for n in ours] + [(n, "java") for n in java]
    again = lake.catalog().get_table(lake.table())
    assert [(row["id"], row["v"]) for row in rows(again)] == wanted
    assert sorted((row["id"], row["v"]) for row in lake.java_rows()) == sorted(wanted)
    assert verify(again) == []
    if not keys:
        assert not repair_iceberg(again).restarted


def test_each_waits_for_the_lock_of_the_other(lake: Lake, tmp_path: Path) -> None:
    catalog, t = lake.catalog(SHORT), lake.table()
    table = catalog.create_table(t, schema())
    put(table, [{"id": 1, "v": "a"}])
    added = {"op": "add", "name": "w", "type": "INT"}
    lock = table.lock
    assert lock is not None
    with lock.held("main"), pytest.raises(OracleError, match="Acquire lock failed"):
        lake.java_spec(tmp_path, SHORT, existing=True, steps=[{"alter": [added]}])
    held, release = tmp_path / "held", tmp_path / "release"
    patient = lake.java({"lock.enabled": "true"})
    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(lake.judge, "hold", patient, lake.database, "t", held, release)
        try:
            while not held.exists():
                assert not holder.done()
                time.sleep(0.01)
            with pytest.raises(CommitConflictError, match="raise 'lock-acquire-timeout'"):
                put(table, [{"id": 1, "v": "stopped"}])
            with pytest.raises(CommitConflictError, match="have held its lock"):
                catalog.alter_table(t, [AddColumn("w", parse_type("INT"))], NOW_MS)
        finally:
            release.touch()
        holder.result()
    row = {"id": 2, "v": "b"}
    lake.judge.append(patient, lake.database, "t", [row], tmp_path)
    put(table, [{"id": 3, "v": "c"}])
    assert [key["id"] for key in rows(catalog.get_table(t))] == [1, 2, 3]


def test_a_pipeline_writes_tables_of_a_metastore(lake: Lake, tmp_path: Path) -> None:
    kafka = Kafka({"shop.orders": Topic("one")})
    pipeline = Truth(
        tmp_path,
        kafka,
        database=lake.database,
        metastore="hive",
        catalog_options={"uri": lake.metastore.uri, "lock.enabled": "true"},
    )
    lake = replace(lake, warehouse=Path(pipeline.settings.warehouse))
    kafka.produce("shop.orders", *range(6))
    pipeline.live()
    assert pipeline.ids("orders") == list(range(6))
    assert str(lake.table("orders")) in lake.java_tables()
    assert sorted(row["id"] for row in lake.java_rows("orders")) == list(range(6))
    java = lake.java({"lock.enabled": "true"})
    lake.judge.append(java, lake.database, "orders", [{"id": 100, "at": 0}], tmp_path)
    kafka.produce("shop.orders", *range(6, 9))
    pipeline.live()
    assert pipeline.ids("orders") == [*range(9), 100]
    assert sorted(row["id"] for row in lake.java_rows("orders")) == [*range(9), 100]


def test_a_pipeline_writes_a_branch(lake: Lake, tmp_path: Path) -> None:
    options = {"uri": lake.metastore.uri, "lock.enabled": "true"}
    pipeline = Truth(tmp_path, database=lake.database, metastore="hive", catalog_options=options)
    lake = replace(lake, warehouse=Path(pipeline.settings.warehouse))
    publish_a_branch(pipeline, lambda name: [int(str(row["id"])) for row in lake.java_rows(name)])


def test_partitions_are_registered_as_java_does(lake: Lake, tmp_path: Path) -> None:
    fields = [
        *FIELDS,
        {"name": "day", "type": "STRING NOT NULL"},
        {"name": "n", "type": "INT NOT NULL"},
    ]
    keys = {"primaryKey": ["id", "day", "n"], "partitionKeys": ["day", "n"]}
    options = {"bucket": "1", "metastore.partitioned-table": "true"}
    row = {"id": 1, "v": "a", "day": "x y/z", "n": 7}
    steps = [{"commit": {"rows": [row]}}]
    lake.java_spec(tmp_path, fields=fields, **keys, options=options, steps=steps)
    catalog = lake.catalog()
    java = catalog.get_table(lake.table())
    ours = catalog.create_table(lake.table("ours"), java.schema)
    put(ours, [row])
    assert lake.partitions("ours") == lake.partitions()
    assert list(lake.partitions()) == ["day=x y%2Fz/n=7"]
    assert lake.stored_columns("ours") == lake.stored_columns() == [("id", "int"), ("v", "string")]
    assert lake.stored("ours")[8] == lake.stored()[8]  # partition keys

    put(java, [{**row, "n": 8}, row])
    lake.judge.append(lake.java(), lake.database, "ours", [{**row, "n": 9}], tmp_path)
    assert list(lake.partitions()) == ["day=x y%2Fz/n=7", "day=x y%2Fz/n=8"]
    assert list(lake.partitions("ours")) == ["day=x y%2Fz/n=7", "day=x y%2Fz/n=9"]
    drop_partitions(java, [{"n": 7}], now_ms=NOW_MS)
    assert list(lake.partitions()) == ["day=x y%2Fz/n=8"]
    altered = catalog.alter_table(lake.table(), [AddColumn("w", parse_type("INT"))], NOW_MS)
    assert [name for name, *_ in lake.stored_columns()] == ["id", "v", "w"]
    put(altered, [{**row, "n": 7, "w": 1}])
    assert len(lake.partitions()) == 2
    assert sorted(rows(altered), key=str) == sorted(lake.java_rows(), key=str)


def test_partitions_are_registered_by_the_next_commit_if_the_metastore_does_not_respond(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    columns = [("id", parse_type("INT")), ("day", parse_type("STRING"))]
    options = {"bucket": "1", "metastore.partitioned-table": "true"}
    partitioned = new_schema(columns, ["id", "day"], ["day"], options, NOW_MS)
    table = lake.catalog().create_table(lake.table(), partitioned)
    registry = table.partitions
    assert isinstance(registry, HivePartitions)
    unreachable = Metastore([Address("127.0.0.1", 1)], "user")
    silent = replace(registry, metastore=unreachable)
    put(replace(table, partitions=silent), [{"id": 1, "day": "a"}])
    assert "partitions_not_registered" in caplog.text
    assert lake.partitions() == {}
    object.__setattr__(silent, "metastore", registry.metastore)
    put(replace(table, partitions=silent), [{"id": 1, "day": "b"}])
    assert list(lake.partitions()) == ["day=a", "day=b"]

    put(replace(table, partitions=None), [{"id": 1, "day": "c"}])  # a process that ended early
    put(lake.catalog().get_table(lake.table()), [{"id": 2, "day": "a"}])
    assert list(lake.partitions()) == ["day=a", "day=b", "day=c"]


def test_partitions_that_are_done_are_listed_once_more(lake: Lake, tmp_path: Path) -> None:
    columns = [("id", parse_type("INT")), ("day", parse_type("STRING"))]
    options = {
        "bucket": "1",
        "metastore.partitioned-table": "true",
        "partition.time-interval": "1 d",
        "partition.idle-time-to-done": "1 h",
        "partition.mark-done-action": "done-partition",
    }
    partitioned = new_schema(columns, ["id", "day"], ["day"], options, NOW_MS)
    table = lake.catalog().create_table(lake.table(), partitioned)
    put(table, [{"id": 1, "day": "2024-01-01"}, {"id": 2, "day": "2999-01-01"}])
    there = {"day=2024-01-01", "day=2999-01-01"}
    later = int(time.time() * 1000) + 7_200_000
    assert set(lake.partitions()) == there
    for again in (table, table, lake.catalog().get_table(lake.table())):
        mark_done_partitions(again, options, later)
        assert set(lake.partitions()) == {*there, "day=2024-01-01.done"}
    assert rows(table) == lake.java_rows()
    lake.judge.append(lake.java(), lake.database, "t", [{"id": 3, "day": "2024-01-01"}], tmp_path)
    assert len(rows(table)) == 3


def test_databases_and_tables(lake: Lake) -> None:
    catalog, t = lake.catalog(), lake.table()
    catalog.create_database(lake.database, {"owner": "tests", "comment": "of tests", "k": "v"})
    catalog.create_database(lake.database, {"owner": "others"})
    properties = catalog.database_properties(lake.database)
    assert properties == {
        "owner": "tests",
        "comment": "of tests",
        "k": "v",
        "location": f"file:{lake.warehouse}/{lake.database}.db",
    }
    first = catalog.create_table(t, schema())
    assert catalog.create_table(t, schema(), ignore_if_exists=True).schema == first.schema
    with pytest.raises(TableExistsError):
        catalog.create_table(t, schema())
    catalog.create_table(lake.table("other"), schema())
    with pytest.raises(TableExistsError):
        catalog.rename_table(t, lake.table("other"))
    with pytest.raises(TableNotFoundError, match="did you mean 'other'"):
        catalog.get_table(lake.table("othe"))
    with pytest.raises(TableNotFoundError, match=f"did you mean '{lake.database}'"):
        catalog.list_tables(f"{lake.database}x")
    with pytest.raises(TableNotFoundError, match="no table 'T'"):
        catalog.get_table(lake.table("T"))
    with pytest.raises(ConfigError, match="capitals"):
        catalog.create_table(lake.table("Upper"), schema())
    with pytest.raises(ConfigError, match="not a valid object name"):
        catalog.create_table(lake.table("with-hyphen"), schema())
    assert not (lake.warehouse / f"{lake.database}.db" / "with-hyphen").exists()
    assert catalog.list_tables(lake.database) == ["other", "t"]


def test_external_tables_keep_their_files(lake: Lake, tmp_path: Path) -> None:
    catalog, t = lake.catalog({"table.type": "external"}), lake.table()
    table = catalog.create_table(t, schema())
    put(table, [{"id": 1, "v": "a"}])
    assert lake.java_rows() == [{"id": 1, "v": "a"}]
    lake.judge("drop", lake.java(), lake.database, "t")
    assert catalog.list_tables(lake.database) == []
    assert rows(catalog.create_table(t, schema(), ignore_if_exists=True)) == [{"id": 1, "v": "a"}]
    assert lake.stored_properties()["EXTERNAL"] == "TRUE"
    catalog.rename_table(t, lake.table("u"))
    assert catalog.get_table(lake.table("u")).path == table.path
    catalog.drop_table(lake.table("u"))
    assert Path(table.path, "schema").exists()


def test_an_external_table_of_java_at_another_place_is_continued(
    lake: Lake, tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere" / "t"
    options = {"bucket": "1", "path": str(place)}  # as after CREATE TABLE ... LOCATION
    steps = [{"commit": {"rows": [{"id": 1, "v": "java"}]}}]
    lake.java_spec(tmp_path, fields=FIELDS, primaryKey=["id"], options=options, steps=steps)
    catalog, t = lake.catalog(), lake.table()
    table = catalog.get_table(t)
    assert "path" in table.schema.options
    refuse_unsupported(table.schema, for_write=True)
    put(table, [{"id": 2, "v": "b"}])
    catalog.alter_table(t, [AddColumn("w", parse_type("INT"))], NOW_MS)
    assert rows(catalog.get_table(t)) == lake.java_rows()
    assert len(lake.java_rows()) == 2
    assert len([*(place / "snapshot").glob("snapshot-*")]) == 2


def test_locations_in_properties(lake: Lake, tmp_path: Path) -> None:
    options = {"location-in-properties": "true"}
    catalog, t = lake.catalog(options), lake.table()
    put(catalog.create_table(t, schema()), [{"id": 1, "v": "a"}])
    path = f"{lake.warehouse}/{lake.database}.db/t"
    assert lake.stored_properties()["paimon_location"] == path
    row = {"id": 2, "v": "java"}
    lake.judge.append(lake.java(options), lake.database, "t", [row], tmp_path)
    assert [row["id"] for row in rows(catalog.get_table(t))] == [1, 2]
    files = load_catalog("filesystem", str(lake.warehouse))
    files.rename_table(t, lake.table("u"))  # a rename that is killed before it asks the metastore
    catalog.rename_table(t, lake.table("u"))
    assert catalog.get_table(lake.table("u")).path == f"{lake.warehouse}/{lake.database}.db/u"
    with pytest.raises(TableNotFoundError):
        catalog.rename_table(t, lake.table("u"))


def test_an_interrupted_creation_or_deletion_is_repeated(lake: Lake) -> None:
    catalog, t = lake.catalog(), lake.table()
    files = load_catalog("filesystem", str(lake.warehouse))
    put(files.create_table(t, schema()), [{"id": 1, "v": "a"}])
    with pytest.raises(TableExistsError):
        catalog.create_table(t, schema())
    assert rows(catalog.create_table(t, schema(), ignore_if_exists=True)) == [{"id": 1, "v": "a"}]
    assert lake.java_tables() == [str(t)]
    files.drop_table(t)
    with pytest.raises(FormatError, match="no schema"):
        catalog.get_table(t)
    catalog.drop_table(t)
    assert catalog.list_tables(lake.database) == []


def iceberg_options(lake: Lake) -> dict[str, str]:
    return {
        "metadata.iceberg.storage": "hive-catalog",
        "metadata.iceberg.uri": lake.metastore.uri,
        "metadata.iceberg.database": f"{lake.database}_ice",
        "bucket": "-1",
    }


def append_table(lake: Lake) -> FileStoreTable:
    """A table without a primary key in a catalog of directories: Iceberg shows all its rows."""
    columns = [("id", parse_type("INT")), ("v", parse_type("STRING"))]
    files = load_catalog("filesystem", str(lake.warehouse))
    schema = new_schema(columns, (), (), iceberg_options(lake), NOW_MS)
    return files.create_table(lake.table(), schema)


def in_iceberg(lake: Lake, iceberg: IcebergReader) -> list[dict[str, object]]:
    read = iceberg.read_in_hive(lake.metastore.uri, f"{lake.database}_ice.t")
    return sorted(read, key=lambda row: row["id"])


def test_icebergs_hive_catalog_opens_a_table_and_follows_its_commits(
    lake: Lake, iceberg: IcebergReader, tmp_path: Path
) -> None:
    table = append_table(lake)
    put(table, [{"id": 1, "v": "a"}])
    sync_iceberg(table)
    assert in_iceberg(lake, iceberg) == [{"id": 1, "v": "a"}]
    files = load_catalog("filesystem", str(lake.warehouse))
    table = files.alter_table(lake.table(), [AddColumn("w", parse_type("INT"))], NOW_MS)
    put(table, [{"id": 2, "v": "b", "w": 7}])
    sync_iceberg(table)
    # Java continues the same entry.
    row = {"id": 3, "v": "java", "w": 8}
    lake.judge.append(str(lake.warehouse), lake.database, "t", [row], tmp_path)
    first = {"id": 1, "v": "a", "w": None}
    assert in_iceberg(lake, iceberg) == [first, {"id": 2, "v": "b", "w": 7}, row]
    table = files.alter_table(lake.table(), [DropColumn("v")], NOW_MS)  # refused by the metastore
    put(table, [{"id": 4, "w": 9}])
    sync_iceberg(table)
    assert [row["w"] for row in in_iceberg(lake, iceberg)] == [None, 7, 8, 9]
    names = [f"{lake.database}_ice", "t"]
    entry = lake.catalog().options.metastore.find_table(*names)
    assert entry is not None
    properties = entry[PARAMETERS].content.contents
    newest = f"{lake.warehouse}/iceberg/{lake.database}/t/metadata/v4.metadata.json"
    assert properties["metadata_location"] == newest
    assert properties["previous_metadata_location"].endswith("v3.metadata.json")


def test_an_entry_in_hive_is_what_java_writes(lake: Lake, tmp_path: Path) -> None:
    options = iceberg_options(lake)
    row = {"id": 1, "v": "a"}
    document = {
        "database": lake.database,
        "table": "java",
        "fields": FIELDS,
        "options": options,
        "steps": [{"commit": {"rows": [row]}}],
    }
    lake.judge.write_spec(document, str(lake.warehouse), tmp_path)
    files = load_catalog("filesystem", str(lake.warehouse))
    of_java = files.get_table(Identifier(lake.database, "java")).schema
    ours = files.create_table(Identifier(lake.database, "ours"), of_java)
    put(ours, [row])
    sync_iceberg(ours)
    metastore = lake.catalog().options.metastore
    stored = {name: metastore.find_table(f"{lake.database}_ice", name) for name in ("java", "ours")}
    computed = ("totalSize", "numFiles", "transient_lastDdlTime", "metadata_location")
    compared = []
    for name, fields in stored.items():
        assert fields is not None
        properties = dict(fields[PARAMETERS].content.contents)
        assert properties.get("metadata_location", "").endswith(
            f"/{name}/metadata/v1.metadata.json"
        )
        storage = {number: value for number, value in fields[7].content.items() if number != 2}
        location = fields[7].content[2].content
        kept = {key: value for key, value in properties.items() if key not in computed}
        others = {n: fields[n] for n in fields if n not in (1, 4, 5, 7, PARAMETERS)}
        compared.append((storage, location.replace(f"/{name}", "/NAME"), kept, others))
    assert compared[0] == compared[1]


def test_a_metastore_that_was_away_is_caught_up_and_no_document_is_lost_meanwhile(
    lake: Lake, iceberg: IcebergReader
) -> None:
    table = append_table(lake)
    put(table, [{"id": 1, "v": "a"}])
    sync_iceberg(table)
    away = {**table.schema.options, "metadata.iceberg.uri": "thrift://127.0.0.1:1"}
    put(table, [{"id": 2, "v": "b"}])
    assert not update_iceberg(table.with_schema(replace(table.schema, options=away)))
    assert [row["id"] for row in in_iceberg(lake, iceberg)] == [1]
    assert update_iceberg(table)
    assert [row["id"] for row in in_iceberg(lake, iceberg)] == [1, 2]


def test_a_table_of_another_kind_keeps_its_name_in_the_metastore(lake: Lake) -> None:
    catalog, t = lake.catalog(), lake.table()
    catalog.create_table(t, schema())
    before = lake.stored()
    other = replace(lake, warehouse=lake.warehouse / "other")
    options = {**iceberg_options(lake), "metadata.iceberg.database": lake.database}
    table = append_table(other)
    put(table, [{"id": 1, "v": "a"}])
    table = table.with_schema(replace(table.schema, options=options))
    with pytest.raises(ConfigError, match=r"set 'metadata\.iceberg\.database' or"):
        sync_iceberg(table)
    assert lake.stored() == before
