"""The same commits and compactions twice: by ingestd in one table, by Java in another.

twins = CompactTwins(oracle, folder, case.columns, {"bucket": "1"})
twins.step(rows, "auto")
assert twins.own_rows() == twins.java_rows()
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ingestd.paimon.casts.rows_json import json_lines, sorted_json_lines
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.table.compact.table_compact import CompactResult, compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put, rows_table
from tests.support.oracle import Oracle

How = Literal["none", "auto", "full"]
Rows = Sequence[Mapping[str, Any]]


class CompactTwins:
    """Two tables ``db.t`` of one schema, below ``own`` and ``java`` of a folder."""

    def __init__(
        self,
        oracle: Oracle,
        folder: Path,
        columns: Sequence[tuple[str, Any]],
        options: Mapping[str, str],
        *,
        keys: Sequence[str] = ("k",),
        partitions: Sequence[str] = (),
    ) -> None:
        self.own, self.java = folder / "own", folder / "java"
        self.table: FileStoreTable = native_table(
            self.own, columns, keys=keys, partitions=partitions, options=options
        )
        self._oracle = oracle
        self._folder = folder
        self._commits = 0
        fields = [
            {"name": name, "type": f"{t} NOT NULL" if name in keys else t} for name, t in columns
        ]
        document = {"fields": fields, "primaryKey": list(keys), "options": dict(options)}
        document["partitionKeys"] = list(partitions)
        oracle.write_spec({**document, "steps": []}, self.java, folder)

    def step(self, rows: Rows, how: How) -> CompactResult | None:
        """Commit rows in both, and compact both; what came of it here."""
        self._commits += 1
        put(self.table, rows)
        flags = ("--identifier", self._commits, "--compact", how)
        self._oracle.append(self.java, "db", "t", _told(self.table, rows), self._folder, *flags)
        if how == "none":
            return None
        return compact_table(self.table, now_ms=NOW_MS, full=how == "full")

    def own_rows(self) -> list[dict[str, Any]]:
        """Rows of our table, as we and Java read them."""
        lines = sorted_json_lines(read_table(self.table), self.table.schema.fields)
        rows = [json.loads(line) for line in lines]
        assert self._oracle.read(self.own, "db", "t") == rows
        return rows

    def java_rows(self) -> list[dict[str, Any]]:
        """Rows of Java's table."""
        return self._oracle.read(self.java, "db", "t")

    def changes(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The changes of both as Java streams them, without the numbers of snapshots."""
        both = (self._oracle.changelog(place, "db", "t") for place in (self.own, self.java))
        own, java = ([{n: v for n, v in row.items() if n != "_snapshot"} for row in rows]
                     for rows in both)  # fmt: skip
        return own, java

    def problems(self) -> list[Any]:
        """What is wrong with our table and not with Java's."""
        errors = [
            [p for p in self._oracle.fsck(place, "db", "t") if p["severity"] == "error"]
            for place in (self.own, self.java)
        ]
        found: list[Any] = [*verify(self.table)]
        return found if len(errors[0]) == len(errors[1]) else [*found, *errors[0]]


def _told(table: FileStoreTable, rows: Rows) -> list[dict[str, Any]]:
    """Rows as the oracle takes them."""
    lines = json_lines(rows_table(table.schema, rows), table.schema.fields)
    return [
        {**json.loads(line), "_kind": RowKind(row.get("_kind", 0)).symbol}
        for line, row in zip(lines, rows, strict=True)
    ]
