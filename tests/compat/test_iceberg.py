"""Iceberg metadata of tables: pyiceberg reads what we read, and Java goes on with it.

Lives of tables are random; INGESTD_LONG makes them longer and more.
"""

import json
import os
import random
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon import open_warehouse
from ingestd.paimon.iceberg.iceberg_sync import repair_iceberg, sync_iceberg
from ingestd.paimon.iceberg.manifest_format import IcebergEntry
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnType,
)
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
)
from ingestd.paimon.table.read.table_read import read_table
from tests.compat.engines import spark_sql
from tests.compat.iceberg_lives import COLUMNS, OPTIONS, VECTORS, Life, LifeWithVectors, canonical
from tests.compat.iceberg_reader import RUNTIME, IcebergReader, runtime
from tests.support.code_blocks import shown
from tests.support.native_tables import NOW_MS, alter, native_table, open_native, put
from tests.support.oracle import Oracle
from tests.support.pypaimon import PyIceberg, PypaimonError, environment

pytestmark = pytest.mark.compat

LONG = "INGESTD_LONG" in os.environ
STEPS = 200 if LONG else 12
SEEDS = range(20 if LONG else 1)


@pytest.fixture(scope="module")
def iceberg() -> Iterator[IcebergReader]:
    with IcebergReader() as running:
        yield running


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("keys", [(), ("dt", "id")], ids=["append", "primary key"])
def test_iceberg_readers_read_what_we_read_after_each_step_of_a_life(
    keys: tuple[str, ...],
    version: int,
    seed: int,
    tmp_path: Path,
    pyiceberg: PyIceberg,
    iceberg: IcebergReader,
) -> None:
    options = {**OPTIONS, "bucket": "2" if keys else "-1"}
    options["metadata.iceberg.format-version"] = str(version)
    table = native_table(tmp_path, COLUMNS, keys=keys, partitions=["dt"], options=options)
    life = Life(table, random.Random(seed))
    life.write()
    sync_iceberg(table)
    done: list[str] = []
    for _ in range(STEPS):
        done.append(life.step())
        assert canonical(pyiceberg.read_folder(table.path)) == life.shown, done
        assert canonical(iceberg.read(table.path)) == life.shown, done
    life.compact()
    sync_iceberg(life.table)
    life.tag()
    put(life.table, [life.row()])
    sync_iceberg(life.table, tags=True)
    refs = document_of(table.path)["refs"]
    assert refs
    for name in refs:
        assert canonical(pyiceberg.read_folder(table.path, tag=name)) == life.tagged[name]
        assert canonical(iceberg.read(table.path, tag=name)) == life.tagged[name]


@pytest.mark.parametrize("seed", SEEDS)
def test_iceberg_readers_read_deletion_vectors_after_each_step_of_a_life(
    seed: int, tmp_path: Path, pyiceberg: PyIceberg, iceberg: IcebergReader
) -> None:
    options = {**OPTIONS, **VECTORS, "bucket": "2"}
    table = native_table(tmp_path, COLUMNS, keys=("dt", "id"), partitions=["dt"], options=options)
    life = LifeWithVectors(table, random.Random(seed))
    put(table, [life.row() for _ in range(600)])
    life.compact()
    sync_iceberg(table)
    done, seen = list[str](), set[int]()
    for _ in range(STEPS):
        done.append(life.step())
        assert canonical(pyiceberg.read_folder(table.path)) == life.shown, done
        assert canonical(iceberg.read(table.path)) == life.shown, done
        seen |= {one.content for one in Metadata(Path(table.path)).listed}
        assert set(Path(table.path, "metadata").glob("*.puffin")) == puffins(
            table, Path(table.path)
        )
        assert not repair_iceberg(life.table).restarted
    assert seen == {0, 1}


def puffins(table: FileStoreTable, folder: Path) -> set[Path]:
    """The Puffin files that the snapshots of the newest document need."""
    store = MetadataStore(table.io, f"{folder}/metadata")
    lists = {snapshot["manifest-list"] for snapshot in document_of(folder)["snapshots"]}
    manifests = {one.manifest_path: one for path in lists for one in store.read_list(path)}
    files = (e.data_file for one in manifests.values() for e in store.read_manifest(one))
    return {Path(file["file_path"]) for file in files if file["content"] == 1}


def test_vectors_of_32_bits_wait_for_a_compaction(tmp_path: Path, iceberg: IcebergReader) -> None:
    options = {**VECTORS, "deletion-vectors.bitmap64": "false", "bucket": "1"}
    options["metadata.iceberg.storage"] = "disabled"
    table = native_table(tmp_path, COLUMNS, keys=("dt", "id"), options=options)
    for names in ("abc", "a"):
        put(table, [{"id": 1, "dt": name} for name in names])
        compact_table(table, now_ms=NOW_MS, full=names == "abc")
    table = alter(table, *(SetOption(*item) for item in (OPTIONS | VECTORS).items()))
    with pytest.raises(UnsupportedError, match=r"without 'deletion-vectors\.bitmap64'"):
        sync_iceberg(table)
    compact_table(table, now_ms=NOW_MS, full=True)
    sync_iceberg(table)
    assert canonical(iceberg.read(table.path)) == canonical(read_table(table))


def test_repair_mends_the_bounds_that_java_gives_to_columns_without_statistics(
    tmp_path: Path, oracle: Oracle, pyiceberg: PyIceberg
) -> None:
    options = {"metadata.iceberg.storage": "table-location", "metadata.stats-mode": "counts"}
    columns = [("id", "INT NOT NULL"), ("v", "STRING")]
    table = native_table(tmp_path, columns, options={**options, "bucket": "-1"})
    put(table, [{"id": 1}])
    sync_iceberg(table)
    assert not repair_iceberg(table).restarted
    oracle.append(tmp_path, "db", "t", [{"id": 7, "v": "java"}], tmp_path)
    assert repair_iceberg(table).restarted
    assert pyiceberg.read_folder(table.path, where="id >= 7").to_pylist() == [
        {"id": 7, "v": "java"}
    ]
    assert not repair_iceberg(table).restarted


def document_of(folder: Path | str) -> dict[str, Any]:
    """The newest document of a table, which is the only one."""
    (path,) = Path(folder, "metadata").glob("v*.metadata.json")
    assert Path(folder, "metadata", "version-hint.text").read_text() == path.name.split(".")[0][1:]
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


KINDS_OF_TABLES = {
    "append": ((), OPTIONS),
    "primary key": (("dt", "id"), OPTIONS),
    "append 3": ((), OPTIONS | VECTORS),
    "deletion vectors": (("dt", "id"), OPTIONS | VECTORS),
}


def java_table(warehouse: Path, oracle: Oracle, kind: str) -> dict[str, Any]:
    """A specification of a table with Iceberg metadata, which Java creates."""
    keys, options = KINDS_OF_TABLES[kind]
    spec = {
        "fields": [{"name": name, "type": t} for name, t in COLUMNS],
        "primaryKey": list(keys),
        "partitionKeys": ["dt"],
        "options": {**options, "bucket": "2" if keys else "-1"},
    }
    oracle.write_spec({**spec, "steps": []}, warehouse, warehouse)
    return {**spec, "existing": True}


def beside(warehouse: Path) -> FileStoreTable:
    """The table of Java for us, with Iceberg metadata in another folder than Java's."""
    table = open_native(warehouse)
    options = {**table.schema.options, "metadata.iceberg.storage-location": "catalog-location"}
    return table.with_schema(replace(table.schema, options=options))


JAVA_STEPS: list[dict[str, Any]] = [
    {"commit": {"rows": [{"id": 1, "dt": "a", "n": 1, "price": "1.50", "day": "2024-01-02"},
                         {"id": 2, "dt": "b", "at": "2024-01-01T00:00:00", "tags": ["x"]}]}},
    {"commit": {"rows": [{"id": 3, "dt": "c"}, {"id": 4, "dt": "a", "n": -5}]}},
    {"tag": {"name": "early"}},
    {"commit": {"rows": [{"id": 1, "dt": "a", "n": 7}], "compact": "full"}},
    {"commit": {"rows": [{"id": 100 + n, "dt": "a", "n": n} for n in range(500)],
                "compact": "full"}},
    {"commit": {"rows": [{"id": 107, "dt": "a"}, {"id": 207, "dt": "a"}], "compact": "auto"}},
    {"alter": [{"op": "add", "name": "w", "type": "BIGINT"},
               {"op": "rename", "name": "n", "to": "m"}]},
    {"commit": {"rows": [{"id": 5, "dt": "c", "w": 2**40, "m": 3}]}},
    {"dropPartition": {"dt": "b"}},
    {"alter": [{"op": "type", "name": "m", "type": "BIGINT"}]},
    {"commit": {"rows": [{"id": 6, "dt": "a", "m": 2**40}], "compact": "full"}},
    {"deleteTag": "early"},
    {"commit": {"rows": [{"id": 7, "dt": "d"}]}},
    {"commit": {"rows": [{"id": 8, "dt": "d"}], "compact": "full"}},
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_java_makes_the_same_metadata_of_the_same_snapshots(
    kind: str, tmp_path: Path, oracle: Oracle
) -> None:
    keys, spec = KINDS_OF_TABLES[kind][0], java_table(tmp_path, oracle, kind)
    vectors: list[int] = []
    for number, step in enumerate(JAVA_STEPS):
        oracle.write_spec({**spec, "steps": [step]}, tmp_path, tmp_path)
        ours = beside(tmp_path)
        sync_iceberg(ours, tags="ag" in str(step))
        mine = Metadata(Path(tmp_path, "iceberg/db/t"))
        java = Metadata(Path(ours.path))
        if not keys:
            assert mine.manifests == java.manifests, step
        else:
            # Java shows the files of a table's first snapshot before they are compacted, too.
            assert number < 3 or mine.live == java.live, step
            assert mine.vectors == java.vectors, step
            vectors.append(len(mine.vectors))
            for snapshot in (*mine.document["snapshots"], *java.document["snapshots"]):
                del snapshot["summary"]
        assert mine.document == java.document, step
    assert (max(vectors, default=0) > 0) is (kind == "deletion vectors")


class Metadata:
    """The newest Iceberg metadata in a folder, without names, times and random ids."""

    def __init__(self, folder: Path) -> None:
        document = document_of(folder)
        newest = {snapshot["snapshot-id"]: snapshot for snapshot in document["snapshots"]}[
            document["current-snapshot-id"]
        ]
        store = MetadataStore(LocalFileIO(sync=False), str(folder / "metadata"))
        self.listed = [
            replace(one, first_row_id=None) for one in store.read_list(newest["manifest-list"])
        ]
        entries = [store.read_manifest(one) for one in self.listed]
        for snapshot in document["snapshots"]:
            del snapshot["timestamp-ms"], snapshot["manifest-list"]
            snapshot["summary"].pop("paimon.delta-manifest-list", None)
            snapshot.pop("first-row-id", None), snapshot.pop("added-rows", None)
        del document["table-uuid"], document["last-updated-ms"]
        document.pop("next-row-id", None)
        self.document = document
        self.manifests = [
            (replace(one, manifest_path="", manifest_length=0), [_comparable(e) for e in own])
            for one, own in zip(self.listed, entries, strict=True)
        ]
        live = [_without_row_id(e.data_file) for own in entries for e in own if e.is_live]
        self.live = {file["file_path"]: file for file in live if file["content"] == 0}
        # Java lists the vectors in Paimon's index files, which are not Puffin files.
        moved = ("file_path", "file_size_in_bytes", "content_offset")
        self.vectors = {
            file["referenced_data_file"]: {name: file[name] for name in file.keys() - moved}
            for file in live
            if file["content"]
        }


KINDS: dict[str, list[Any]] = {
    "BOOLEAN": [True, False, None], "TINYINT": [-128, 1, None], "SMALLINT": [-1, 300, None],
    "INT": [-(2**31), 7, None], "BIGINT": [2**62, -1, None], "FLOAT": [-1.5, 0.25, None],
    "DOUBLE": [1e300, -2.5, None],
    "DATE": [-1, 20_000, None], "STRING": ["a b/é%", "", None], "VARCHAR(9)": ["x", "yy", None],
}  # fmt: skip
"""Types of partition columns, with values."""
NESTED: list[tuple[str, Any]] = [
    ("id", "INT"),
    ("r", {"type": "ROW", "fields": [
        {"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "b", "type": "STRING"},
        {"id": 2, "name": "f", "type": "FLOAT"}]}),
    ("orders", {"type": "ARRAY", "element": {"type": "ROW", "fields": [
        {"id": 0, "name": "n", "type": "INT"}, {"id": 1, "name": "d", "type": "DECIMAL(5, 1)"}]}}),
]  # fmt: skip
NESTED_CHANGES: list[SchemaChange] = [
    UpdateColumnType(("r", "a"), parse_type("BIGINT")),
    RenameColumn(("r", "b"), "text"),
    AddColumn(("r", "added"), parse_type("INT")),
    UpdateColumnType(("r", "f"), parse_type("DOUBLE")),
    DropColumn(("r", "added")),
    AddColumn(("r", "added"), parse_type("STRING")),
    UpdateColumnType(("orders", "element", "d"), parse_type("DECIMAL(12, 1)")),
    AddColumn(("orders", "element", "more"), parse_type("BOOLEAN")),
    RenameColumn(("orders", "element", "n"), "number"),
    DropColumn(("orders", "element", "number")),
]
HADOOP = {**OPTIONS, "metadata.iceberg.storage": "hadoop-catalog", "bucket": "-1"}


def partitions_of_every_type(warehouse: Path) -> FileStoreTable:
    """A table that is partitioned by a column of every type that may be one."""
    columns = [(f"c{at}", name) for at, name in enumerate(KINDS)]
    names = [name for name, _ in columns]
    table = native_table(warehouse, [("id", "INT"), *columns], partitions=names, options=HADOOP)
    for turn in range(3):
        cells = {f"c{at}": values[turn] for at, values in enumerate(KINDS.values())}
        put(table, [{"id": turn, **cells}])
        sync_iceberg(table)
    compact_table(table, now_ms=NOW_MS, full=True)
    sync_iceberg(table)
    return table


def evolved_nested_columns(warehouse: Path) -> FileStoreTable:
    """A table with files of many schemas, which differ in nested columns."""
    table = native_table(warehouse, NESTED, options=HADOOP)
    put(table, [nested_row(table, 0)])
    for number, change in enumerate(NESTED_CHANGES, 1):
        table = alter(table, change)
        put(table, [nested_row(table, number)])
        sync_iceberg(table)
    return table


def a_life(warehouse: Path) -> FileStoreTable:
    """A table with a primary key after some random steps, compacted; without a timestamp."""
    columns = [column for column in COLUMNS if column[0] != "at"]
    options = {**HADOOP, "bucket": "2"}
    table = native_table(
        warehouse, columns, keys=("dt", "id"), partitions=["dt"], options=options
    )  # fmt: skip
    life = Life(table, random.Random(3))
    for _ in range(10):
        life.step()
    life.write()
    life.compact()
    sync_iceberg(life.table)
    return life.table


def a_life_with_vectors(warehouse: Path) -> FileStoreTable:
    """A table with a primary key, whose rows were replaced after its full compaction."""
    options = {**HADOOP, **VECTORS, "metadata.iceberg.storage": "hadoop-catalog", "bucket": "2"}
    table = native_table(warehouse, [("id", "INT"), ("v", "INT")], keys=["id"], options=options)
    for ids, full in ((range(5000), True), (range(0, 90, 7), False), ((3, 4), False)):
        put(table, [{"id": number, "v": number * len(ids)} for number in ids])
        compact_table(table, now_ms=NOW_MS, full=full)
        sync_iceberg(table)
    assert puffins(table, warehouse / "iceberg/db/t")
    return table


def nested_row(table: FileStoreTable, number: int) -> dict[str, Any]:
    """A row with a value in every column that the table has now."""
    cells = {"INT": number, "BIGINT": 2**40, "STRING": "s", "FLOAT": 0.5, "DOUBLE": 1e300,
             "DECIMAL": Decimal("1.5"), "BOOLEAN": True}  # fmt: skip
    _, nested, array = table.schema.fields
    assert array.type.element is not None
    return {
        "id": number,
        "r": {field.name: cells[field.type.root] for field in nested.type.fields},
        "orders": [{f.name: cells[f.type.root] for f in array.type.element.fields}, None],
    }


@pytest.mark.parametrize("make", [partitions_of_every_type, evolved_nested_columns])
def test_iceberg_readers_find_every_partition_and_nested_column(
    make: Any, tmp_path: Path, pyiceberg: PyIceberg, iceberg: IcebergReader
) -> None:
    wanted = canonical(read_table(make(tmp_path)))
    folder = tmp_path / "iceberg" / "db" / "t"
    assert canonical(pyiceberg.read_folder(folder)) == wanted
    assert canonical(iceberg.read(folder)) == wanted


def java_rows(warehouse: Path, oracle: Oracle, day: str, options: dict[str, str]) -> FileStoreTable:
    """A table of Java with one row, partitioned by a column of type `day`."""
    fields = [{"name": "id", "type": "INT"}, {"name": "day", "type": day}]
    on = {"metadata.iceberg.storage": "table-location", "bucket": "-1", **options}
    spec = {"fields": fields, "primaryKey": [], "partitionKeys": ["day"], "options": on}
    steps = [{"commit": {"rows": [{"id": 1, "day": "20240102.5"}]}}]
    oracle.write_spec({**spec, "steps": steps}, warehouse, warehouse)
    return open_native(warehouse)


def test_partitions_by_decimals_are_refused_since_pyiceberg_misreads_those_of_java(
    tmp_path: Path, oracle: Oracle, pyiceberg: PyIceberg
) -> None:
    table = java_rows(tmp_path, oracle, "DECIMAL(30, 1)", {})
    with pytest.raises(PypaimonError):
        pyiceberg.read_folder(table.path)
    with pytest.raises(UnsupportedError, match="partition column 'day'"):
        sync_iceberg(table)


def test_iceberg_reads_version_3_of_java_once_the_next_row_id_is_added(
    tmp_path: Path, oracle: Oracle, iceberg: IcebergReader
) -> None:
    table = java_rows(tmp_path, oracle, "STRING", {"metadata.iceberg.format-version": "3"})
    with pytest.raises(AssertionError, match="next-row-id"):
        iceberg.read(table.path)
    assert not repair_iceberg(table).restarted
    assert [row["id"] for row in iceberg.read(table.path)] == [1]


def test_spark_reads_the_tables_as_the_page_says(tmp_path: Path) -> None:
    text = of_the_page("-- spark-sql", tmp_path, storage="hadoop-catalog")
    assert RUNTIME in text
    settings = dict(re.findall(r"--conf (\S+)=(\S+)", text))
    (statement,) = re.findall(r"^([A-Z].*);$", text, re.MULTILINE)
    tables = {
        "kinds": partitions_of_every_type,
        "nested": evolved_nested_columns,
        "life": a_life,
        "vectors": a_life_with_vectors,
    }
    wanted = [canonical(read_table(make(tmp_path / name))) for name, make in tables.items()]
    for name in tables:
        settings[f"spark.sql.catalog.{name}"] = settings["spark.sql.catalog.lake"]
        settings[f"spark.sql.catalog.{name}.type"] = "hadoop"
        settings[f"spark.sql.catalog.{name}.warehouse"] = str(tmp_path / name / "iceberg")
    statements = [statement, *(f"SELECT * FROM {name}.db.t" for name in tables)]
    statements.append("SELECT count(*) - count(DISTINCT _row_id) AS n FROM vectors.db.t")
    page, *rows, same_ids = spark_sql(statements, settings, runtime()[0])
    assert same_ids == [{"n": 0}]
    assert sorted(map(tuple, map(dict.values, page))) == [(2, 11.0), (3, 12.0)]
    assert [canonical(own) for own in rows] == wanted


def of_the_page(first: str, warehouse: Path, storage: str = "table-location") -> str:
    """A block of the page about its table, which is there then."""
    schema = pa.schema([("id", pa.int64()), ("amount", pa.float64())])
    options = {"metadata.iceberg.storage": storage}
    table = open_warehouse(str(warehouse)).create("ods.orders", schema, options=options)
    table.write([{"id": n, "amount": 9.0 + n} for n in range(3)])
    table.write([{"id": 3, "amount": 12.0}])
    table.wait_for_iceberg()
    text = shown("docs/iceberg.md", first).text
    assert "/data/warehouse" in text
    return text.replace("/data/warehouse", str(warehouse))


def test_the_program_of_the_page_reads_the_table(tmp_path: Path) -> None:
    command = [str(environment("pyiceberg")), "-c", of_the_page("from pyiceberg", tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "id: [[2],[3]]" in done.stdout
    assert "amount: [[11],[12]]" in done.stdout


DUCKDB = """
import duckdb, glob, json, sys
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
packages = f"{sys.prefix}/lib/*/site-packages/duckdb_extension_"
for name in ("avro", "iceberg"):
    (extension,) = glob.glob(f"{packages}{name}/extensions/*/{name}.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
print(json.dumps(sorted(connection.execute(sys.argv[1]).fetchall())))
"""


def duckdb_rows(statement: str) -> list[list[Any]]:
    """What DuckDB answers to a statement, sorted."""
    command = [str(environment("duckdb_iceberg")), "-c", DUCKDB, statement]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows: list[list[Any]] = json.loads(done.stdout)
    return rows


def test_duckdb_reads_the_table_as_the_page_says(tmp_path: Path) -> None:
    assert duckdb_rows(of_the_page("-- duckdb", tmp_path)) == [[2, 11.0], [3, 12.0]]


def test_duckdb_reads_deletion_vectors(tmp_path: Path) -> None:
    wanted = read_table(a_life_with_vectors(tmp_path)).to_pylist()
    rows = duckdb_rows(f"SELECT id, v FROM iceberg_scan('{tmp_path}/iceberg/db/t')")
    assert rows == sorted([row["id"], row["v"]] for row in wanted)


TURNS = 60 if LONG else 12


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_java_and_we_take_turns_on_one_table(
    kind: str, tmp_path: Path, oracle: Oracle, pyiceberg: PyIceberg, iceberg: IcebergReader
) -> None:
    keys, spec = KINDS_OF_TABLES[kind][0], java_table(tmp_path, oracle, kind)
    dice, known = random.Random(7), set[str]()
    for number in range(1, TURNS + 1):
        row = {"id": number % 5 if keys else number, "dt": dice.choice("ab"), "n": number}
        compacts = number % 4 == 0 or number < 3
        by_us = dice.random() < 0.5
        if not by_us:
            turn = {"rows": [row], "compact": "full" if compacts else "none"}
            steps = [{"commit": turn}, *([{"dropPartition": {"dt": "b"}}] if number == 9 else [])]
            oracle.write_spec({**spec, "steps": steps}, tmp_path, tmp_path)
        else:
            table = open_native(tmp_path)
            put(table, [row], identifier=number)
            if compacts:
                compact_table(table, now_ms=NOW_MS, full=True)
            sync_iceberg(table)
        table = open_native(tmp_path)
        document = document_of(table.path)
        known.add(document["table-uuid"])
        latest = latest_snapshot(table.io, table.paths)
        assert latest is not None
        assert document["current-snapshot-id"] == latest.id
        if (compacts or not keys) and (by_us or kind != "deletion vectors"):
            wanted = canonical(read_table(table))
            assert canonical(pyiceberg.read_folder(table.path)) == wanted
            if by_us:
                assert canonical(iceberg.read(table.path)) == wanted
    assert len(known) == 1, "one of the two began again"


def _comparable(entry: IcebergEntry) -> IcebergEntry:
    """An entry without the snapshot that deleted its file, which Java does not state."""
    entry = replace(entry, data_file=_without_row_id(entry.data_file))
    return entry if entry.is_live else replace(entry, snapshot_id=0)


def _without_row_id(file: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in file.items() if name != "first_row_id"}
