"""Whole tables that Java Paimon wrote, with the rows that Java reads (`tests/golden/fixtures`)."""

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingestd.paimon.spec.file_options import ORC_ZONE_OPTION
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import open_native
from tests.support.oracle import with_rowkind

ROOT = Path(__file__).resolve().parent.parent / "golden" / "fixtures"
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in ROOT.glob("*.tar.xz"))


def _holds(name: str, member: str) -> bool:
    with tarfile.open(ROOT / f"{name}.tar.xz") as archive:
        return member in archive.getnames()


CHANGING = [name for name in NAMES if _holds(name, "changelog.jsonl")]
"""The fixtures that come with what a streaming reader is given."""
_ZONED_ORC = ("types_append_orc", "types_pk_orc")
"""ORC files with zoned timestamps that Java wrote in UTC, which their schemas have to say."""
UNORDERED = {"aggregation_nested": ("nu",)}
"""Arrays whose elements Java keeps in a hash table, in no order."""


@dataclass(frozen=True)
class JavaFixture:
    """An unpacked fixture; `warehouse` holds the table ``db.t``."""

    folder: Path

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def table(self) -> FileStoreTable:
        return open_native(self.warehouse)

    @property
    def rows(self) -> list[Any]:
        """Rows of the newest snapshot in canonical order."""
        return self._lines("expected.jsonl")

    @property
    def snapshots(self) -> dict[int, list[Any]]:
        """Rows of older snapshots."""
        found = self._lines("snapshots.jsonl")
        return {one["snapshot"]: one["rows"] for one in found if "snapshot" in one}

    def settled(self, rows: list[Any]) -> list[Any]:
        """The rows with arrays that have no order sorted, so that they compare."""
        names = UNORDERED.get(self.folder.name, ())
        return [
            {k: sorted(v, key=repr) if k in names and v else v for k, v in row.items()}
            for row in rows
        ]

    @property
    def tags(self) -> dict[str, list[Any]]:
        """Rows of tags."""
        return {
            line["tag"]: line["rows"] for line in self._lines("snapshots.jsonl") if "tag" in line
        }

    @property
    def filters(self) -> list[tuple[str, list[Any]]]:
        """Conditions (column=value) and the rows that a Java reader finds with them."""
        return [(line["filter"], line["rows"]) for line in self._lines("filters.jsonl")]

    @property
    def changelog(self) -> list[Any]:
        """Changes in order, with ``_snapshot`` and ``rowkind``."""
        return [with_rowkind(line) for line in self._lines("changelog.jsonl")]

    def _lines(self, name: str) -> list[Any]:
        path = self.folder / name
        return [json.loads(line) for line in path.open(encoding="utf-8")] if path.exists() else []


def unpack(name: str, folder: Path) -> JavaFixture:
    """Unpack a fixture into a folder of its own."""
    with tarfile.open(ROOT / f"{name}.tar.xz") as archive:
        archive.extractall(folder / name, filter="data")
    fixture = JavaFixture(folder / name)
    if name in _ZONED_ORC:
        for path in fixture.warehouse.glob("db.db/t/schema/schema-*"):
            schema = json.loads(path.read_bytes())
            schema["options"][ORC_ZONE_OPTION] = "false"
            path.write_text(json.dumps(schema), encoding="utf-8")
    return fixture
