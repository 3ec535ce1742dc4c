"""Iceberg metadata of tables: pyiceberg reads what we read, and Java goes on with it.

Lives of tables are random; INGESTD_LONG makes them longer and more.
"""

import json
import os
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon import open_warehouse
from ingestd.paimon.iceberg.iceberg_sync import sync_iceberg
from ingestd.paimon.iceberg.manifest_format import IcebergEntry
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    UpdateColumnType,
)
from ingestd.paimon.table.commit.overwrite import drop_partitions
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag, delete_tag
from tests.compat.engines import spark_sql
from tests.compat.iceberg_reader import RUNTIME, IcebergReader, runtime
from tests.support.code_blocks import shown
from tests.support.native_tables import NOW_MS, alter, native_table, open_native, put
from tests.support.oracle import Oracle
from tests.support.pypaimon import PyIceberg, PypaimonError, environment

pytestmark = pytest.mark.compat

LONG = "INGESTD_LONG" in os.environ
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STEPS = 200 if LONG else 12
SEEDS = range(20 if LONG else 2)
OPTIONS = {
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.compaction.min.file-num": "3",
    "metadata.iceberg.compaction.max.file-num": "5",
    "snapshot.num-retained.min": "2",
    "snapshot.num-retained.max": "4",
    "compaction.min.file-num": "2",
}
COLUMNS: list[tuple[str, Any]] = [
    ("id", "INT NOT NULL"), ("dt", "STRING NOT NULL"), ("n", "INT"), ("price", "DECIMAL(9, 2)"),
    ("at", "TIMESTAMP(3)"), ("day", "DATE"), ("tags", {"type": "ARRAY", "element": "STRING"}),
]  # fmt: skip


def canonical(rows: pa.Table | list[dict[str, Any]]) -> list[str]:
    """Rows as sorted texts, columns by name."""
    given = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return sorted(repr([(name, _plain(row[name])) for name in sorted(row)]) for row in given)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return [(name, _plain(value[name])) for name in sorted(value)]
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return (value.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    return str(value) if isinstance(value, date | Decimal) else value


@pytest.fixture(scope="module")
def iceberg() -> Iterator[IcebergReader]:
    with IcebergReader() as running:
        yield running


@dataclass
class Life:
    """A table, what may happen to it, and the rows that Iceberg readers are to see."""

    table: FileStoreTable
    dice: random.Random
    ids: int = 0
    shown: list[str] = field(default_factory=list)
    tagged: dict[str, list[str]] = field(default_factory=dict)

    def step(self) -> str:
        """Do something, and bring the Iceberg metadata up to date."""
        acts = [self.write] * 5 + [self.compact] * 2 + [
            self.drop, self.evolve, self.tag, self.untag, self.expire, self.roll_back
        ]  # fmt: skip
        act = self.dice.choice(acts)
        act()
        sync_iceberg(self.table, tags=True)
        return act.__name__

    def write(self) -> None:
        """One snapshot of some rows, sometimes two before the metadata follows."""
        for _ in range(self.dice.choice((1, 1, 2))):
            count = self.dice.randint(1, 4)
            put(self.table, [self.row() for _ in range(count)])
        if not self.table.schema.primary_keys:
            self.see()

    def row(self) -> dict[str, Any]:
        """A row with cells for the columns that the table has now."""
        self.ids += 1
        key = self.dice.randint(1, 9) if self.table.schema.primary_keys else self.ids
        cells = {"id": key, "dt": self.dice.choice("abc")}
        for column in self.table.schema.fields:
            if column.name not in cells and self.dice.random() < 0.8:
                cells[column.name] = self.cell(column.type.root)
        return cells

    def cell(self, root: str) -> Any:
        """A value of a type."""
        number = self.dice.randint(-1000, 1000)
        if root == "DECIMAL":
            return Decimal(number).scaleb(-2)
        if root == "ARRAY":
            return ["x" * (number % 3), None][: number % 3]
        return str(number) if root == "STRING" else number

    def compact(self) -> None:
        """A full compaction, after which Iceberg shows all rows of a table with a key."""
        compact_table(self.table, now_ms=NOW_MS, full=True)
        self.see()

    def drop(self) -> None:
        """One partition less, in both kinds of tables at once."""
        self.compact()
        spec = parse_partition_spec(self.table, f"dt={self.dice.choice('abc')}")
        drop_partitions(self.table, [spec], now_ms=NOW_MS)
        self.see()

    def evolve(self) -> None:
        """A new schema; readers see it with the next snapshot."""
        names = [f.name for f in self.table.schema.fields if f.name not in ("id", "dt")]
        name, new = self.dice.choice(names), f"c{self.ids}_{len(names)}"
        root = self.table.schema.field(name).type.root
        changes = [AddColumn(new, parse_type("STRING")), RenameColumn(name, new)]
        if len(names) > 3:
            changes.append(DropColumn(name))
        if root == "INT":
            changes.append(UpdateColumnType(name, parse_type("BIGINT")))
        self.table = alter(self.table, self.dice.choice(changes))
        self.write()
        self.compact()

    def tag(self) -> None:
        """A tag on the newest snapshot."""
        snapshot = latest_snapshot(self.table.io, self.table.paths)
        if snapshot is not None and self.shown == canonical(read_table(self.table)):
            name = f"t{snapshot.id}_{len(self.tagged)}"
            create_tag(self.table, name, snapshot, now_ms=NOW_MS)
            self.tagged[name] = self.shown

    def untag(self) -> None:
        """One tag less."""
        if self.tagged:
            name = self.dice.choice(sorted(self.tagged))
            del self.tagged[name]
            delete_tag(self.table, name)

    def expire(self) -> None:
        """Snapshots and files go as the options say."""
        expire_snapshots(self.table, expire_settings(self.table.schema.options), NOW_MS)

    def roll_back(self) -> None:
        """Some snapshots less, of an append table, whose rows are always shown."""
        ids = snapshot_ids(self.table.io, self.table.paths)
        if len(ids) > 1 and not self.table.schema.primary_keys:
            target = read_snapshot(self.table.io, self.table.paths, self.dice.choice(ids))
            rollback(self.table, plan_rollback(self.table, target))
            self.tagged.clear()
            self.see()

    def see(self) -> None:
        """From here on Iceberg readers are to see all rows."""
        self.shown = canonical(read_table(self.table))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("keys", [(), ("dt", "id")], ids=["append", "primary key"])
def test_iceberg_readers_read_what_we_read_after_each_step_of_a_life(
    keys: tuple[str, ...], seed: int, tmp_path: Path, pyiceberg: PyIceberg, iceberg: IcebergReader
) -> None:
    options = {**OPTIONS, "bucket": "2" if keys else "-1"}
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


def document_of(folder: Path | str) -> dict[str, Any]:
    """The newest document of a table, which is the only one."""
    (path,) = Path(folder, "metadata").glob("v*.metadata.json")
    assert Path(folder, "metadata", "version-hint.text").read_text() == path.name.split(".")[0][1:]
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def java_table(warehouse: Path, oracle: Oracle, keys: Sequence[str]) -> dict[str, Any]:
    """A specification of a table with Iceberg metadata, which Java creates."""
    spec = {
        "fields": [{"name": name, "type": t} for name, t in COLUMNS],
        "primaryKey": list(keys),
        "partitionKeys": ["dt"],
        "options": {**OPTIONS, "bucket": "2" if keys else "-1"},
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


@pytest.mark.parametrize("keys", [(), ("dt", "id")], ids=["append", "primary key"])
def test_java_makes_the_same_metadata_of_the_same_snapshots(
    keys: tuple[str, ...], tmp_path: Path, oracle: Oracle
) -> None:
    spec = java_table(tmp_path, oracle, keys)
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
            for snapshot in (*mine.document["snapshots"], *java.document["snapshots"]):
                del snapshot["summary"]
        assert mine.document == java.document, step


class Metadata:
    """The newest Iceberg metadata in a folder, without names, times and random ids."""

    def __init__(self, folder: Path) -> None:
        document = document_of(folder)
        newest = {snapshot["snapshot-id"]: snapshot for snapshot in document["snapshots"]}[
            document["current-snapshot-id"]
        ]
        store = MetadataStore(LocalFileIO(sync=False), str(folder / "metadata"))
        listed = store.read_list(newest["manifest-list"])
        entries = [store.read_manifest(one) for one in listed]
        for snapshot in document["snapshots"]:
            del snapshot["timestamp-ms"], snapshot["manifest-list"]
            snapshot["summary"].pop("paimon.delta-manifest-list", None)
        del document["table-uuid"], document["last-updated-ms"]
        self.document = document
        self.manifests = [
            (replace(one, manifest_path="", manifest_length=0), [_comparable(e) for e in own])
            for one, own in zip(listed, entries, strict=True)
        ]
        self.live = {e.name: e.data_file for own in entries for e in own if e.is_live}


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


def test_version_3_is_refused_since_iceberg_refuses_what_java_writes(
    tmp_path: Path, oracle: Oracle, iceberg: IcebergReader
) -> None:
    version = "metadata.iceberg.format-version"
    table = java_rows(tmp_path, oracle, "STRING", {version: "3"})
    with pytest.raises(AssertionError, match="next-row-id"):
        iceberg.read(table.path)
    with pytest.raises(UnsupportedError, match=f"'{version}' = '3'.*without 'next-row-id'"):
        sync_iceberg(table)


def test_spark_reads_the_tables_as_the_page_says(tmp_path: Path) -> None:
    text = of_the_page("-- spark-sql", tmp_path, storage="hadoop-catalog")
    assert RUNTIME in text
    settings = dict(re.findall(r"--conf (\S+)=(\S+)", text))
    (statement,) = re.findall(r"^([A-Z].*);$", text, re.MULTILINE)
    tables = {"kinds": partitions_of_every_type, "nested": evolved_nested_columns, "life": a_life}
    wanted = [canonical(read_table(make(tmp_path / name))) for name, make in tables.items()]
    for name in tables:
        settings[f"spark.sql.catalog.{name}"] = settings["spark.sql.catalog.lake"]
        settings[f"spark.sql.catalog.{name}.type"] = "hadoop"
        settings[f"spark.sql.catalog.{name}.warehouse"] = str(tmp_path / name / "iceberg")
    statements = [statement, *(f"SELECT * FROM {name}.db.t" for name in tables)]
    page, *rows = spark_sql(statements, settings, runtime()[0])
    assert sorted(map(tuple, map(dict.values, page))) == [(2, 11.0), (3, 12.0)]
    assert [canonical(own) for own in rows] == wanted


def of_the_page(first: str, warehouse: Path, storage: str = "table-location") -> str:
    """A block of the page about its table, which is there then."""
    schema = pa.schema([("id", pa.int64()), ("amount", pa.float64())])
    options = {"metadata.iceberg.storage": storage}
    table = open_warehouse(str(warehouse)).create("ods.orders", schema, options=options)
    table.write([{"id": n, "amount": 9.0 + n} for n in range(3)])
    table.write([{"id": 3, "amount": 12.0}])
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


def test_duckdb_reads_the_table_as_the_page_says(tmp_path: Path) -> None:
    statement = of_the_page("-- duckdb", tmp_path)
    command = [str(environment("duckdb_iceberg")), "-c", DUCKDB, statement]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[2, 11.0], [3, 12.0]]


TURNS = 60 if LONG else 12


@pytest.mark.parametrize("keys", [(), ("dt", "id")], ids=["append", "primary key"])
def test_java_and_we_take_turns_on_one_table(
    keys: tuple[str, ...], tmp_path: Path, oracle: Oracle, pyiceberg: PyIceberg
) -> None:
    spec = java_table(tmp_path, oracle, keys)
    dice, known = random.Random(7), set[str]()
    for number in range(1, TURNS + 1):
        row = {"id": number % 5 if keys else number, "dt": dice.choice("ab"), "n": number}
        compacts = number % 4 == 0 or number < 3
        if dice.random() < 0.5:
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
        if compacts or not keys:
            assert canonical(pyiceberg.read_folder(table.path)) == canonical(read_table(table))
    assert len(known) == 1, "one of the two began again"


def _comparable(entry: IcebergEntry) -> IcebergEntry:
    """An entry without the snapshot that deleted its file, which Java does not state."""
    return entry if entry.is_live else replace(entry, snapshot_id=0)
