"""The rows that change batches end in, folded by key without any table."""

import json
from typing import Any

import pyarrow as pa

from ingestd.cdc.base import ChangeBatch
from ingestd.ingest.values.type_merge import merge_types
from ingestd.paimon.casts.evolution import cast_array
from ingestd.paimon.casts.rows_json import json_lines
from ingestd.paimon.spec.data_types import DataField, DataType, RowKind


class Fold:
    """Rows of one table after its changes, and the types they need together."""

    def __init__(self) -> None:
        self.types: dict[str, DataType] = {}
        self.rows: dict[str, tuple[int, dict[str, Any] | None]] = {}
        self.chunks: list[list[ChangeBatch]] = []
        self.emptied_at = -2
        self.deleted: dict[int, dict[str, Any]] = {}
        """Deleted rows by position, which is that of the insert under another key, too."""
        self.inserted: dict[int, tuple[dict[str, Any], list[str]]] = {}
        """Inserted rows by position, with the values that they lack."""

    def add(self, batches: list[ChangeBatch]) -> None:
        """The batches of one chunk."""
        self.chunks.append(batches)
        for batch in batches:
            for name, found in batch.types.items():
                merged = merge_types(self.types.get(name, found), found)
                assert merged is not None
                self.types[name] = merged

    def lines(self) -> list[dict[str, Any]]:
        for batches in self.chunks:
            changes = [change for batch in batches for change in self._changes(batch)]
            for _, batch, index, row in sorted(changes, key=lambda change: change[0]):
                self._apply(batch, index, row)
        return [row for at, row in self.rows.values() if row and at > self.emptied_at]

    def _changes(self, batch: ChangeBatch) -> list[tuple[int, ChangeBatch, int, dict[str, Any]]]:
        cells = self._cells(batch)
        return [
            (offset, batch, index, {name: values[index] for name, values in cells.items()})
            for index, offset in enumerate(batch.offset.tolist())
        ]

    def _apply(self, batch: ChangeBatch, index: int, row: dict[str, Any]) -> None:
        position = int(batch.position[index])
        key = json.dumps([row[name] for name in batch.primary_keys])
        before, old = self.rows.get(key, (-1, {}))
        # A key whose type or value changed comes through another topic partition.
        if before > position >= 0:
            return
        if batch.row_kind[index] == RowKind.DELETE:
            self.rows[key] = position, None
            self.deleted[position] = old or {}
            self._carry(position)
            return
        left_out = [name for name, marks in batch.unavailable.items() if marks[index]]
        row |= {name: (old or {}).get(name) for name in left_out}
        self.rows[key] = position, row
        if left_out and batch.row_kind[index] == RowKind.INSERT:
            self.inserted[position] = row, left_out
            self._carry(position)

    def _carry(self, position: int) -> None:
        """Give a row whose key changed the values that only its row under the old key has."""
        row, left_out = self.inserted.get(position, ({}, []))
        row |= {name: self.deleted.get(position, {}).get(name) for name in left_out}

    def _cells(self, batch: ChangeBatch) -> dict[str, list[Any]]:
        fields = [
            DataField(number, name, self.types[name]) for number, name in enumerate(batch.types)
        ]
        columns = {}
        for field in fields:
            column = batch.columns.column(field.name).combine_chunks()
            columns[field.name] = cast_array(column, batch.types[field.name], field.type)
        rows = [json.loads(line) for line in json_lines(pa.table(columns), fields)]
        return {field.name: [row.get(field.name) for row in rows] for field in fields}
