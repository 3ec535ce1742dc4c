"""Random lives of tables with Iceberg metadata, and the rows that its readers are to see."""

import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ingestd.paimon.iceberg.iceberg_sync import sync_iceberg
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
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from tests.support.native_tables import NOW_MS, alter, put

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OPTIONS = {
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.compaction.min.file-num": "3",
    "metadata.iceberg.compaction.max.file-num": "5",
    "snapshot.num-retained.min": "2",
    "snapshot.num-retained.max": "4",
    "compaction.min.file-num": "2",
}
VECTORS = {
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.format-version": "3",
    "deletion-vectors.enabled": "true",
    "deletion-vectors.bitmap64": "true",
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
        changes: list[SchemaChange] = [
            AddColumn(new, parse_type("STRING")),
            RenameColumn(name, new),
        ]
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
            delete_tags(self.table, name)

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


class LifeWithVectors(Life):
    """A life whose compacted rows are all shown, after each compaction of any kind."""

    def row(self) -> dict[str, Any]:
        """A row of many, so that compactions delete those that it replaces by a vector."""
        return super().row() | {"id": self.dice.randint(1, 300)}

    def write(self) -> None:
        """Rows that replace others, and a compaction that need not be a full one."""
        super().write()
        compact_table(self.table, now_ms=NOW_MS)
        self.see()
