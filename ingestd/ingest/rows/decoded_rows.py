"""Decoded messages as JSON documents, for display and for other programs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ingestd.cdc.base import ChangeBatch, Decoded, SourceTable
from ingestd.paimon.casts.rows_json import json_lines
from ingestd.paimon.spec.data_types import DataField, RowKind


@dataclass(frozen=True, slots=True)
class DecodedRow:
    """One row: the offset of its record, its row kind (+I, -U, +U, -D), and its values as JSON.

    `position` is the position in the source's log, or None if unknown. `snapshot` is whether the
    row is from a snapshot of the source. `unavailable` are the columns whose values the source
    omitted.
    """

    offset: int
    rowkind: str
    position: int | None
    snapshot: bool
    unavailable: tuple[str, ...]
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DecodedTable:
    """Rows of one source table with the same columns; `types` are in Paimon's notation."""

    source: SourceTable
    primary_keys: tuple[str, ...]
    types: dict[str, str]
    rows: tuple[DecodedRow, ...]

    @property
    def name(self) -> str:
        """The name of the source table, qualified by database and schema."""
        return str(self.source)


def decoded_tables(decoded: Decoded) -> list[DecodedTable]:
    """Return one table for each change batch, in the order in which the batches were decoded."""
    return [_table(batch) for batch in decoded.batches]


def rejected_documents(decoded: Decoded) -> list[dict[str, object]]:
    """Return offset, stage, reason and message of each rejected record, ordered by offset."""
    return [
        {
            "offset": rejected_record.offset,
            "stage": rejected_record.stage,
            "reason": rejected_record.reason,
            "message": rejected_record.message,
        }
        for rejected_record in sorted(decoded.rejected, key=lambda record: record.offset)
    ]


def _table(batch: ChangeBatch) -> DecodedTable:
    types = {name: str(kind) for name, kind in batch.types.items()}
    return DecodedTable(batch.source, batch.primary_keys, types, tuple(_rows(batch)))


def _rows(batch: ChangeBatch) -> Iterator[DecodedRow]:
    fields = [DataField(at, name, kind) for at, (name, kind) in enumerate(batch.types.items())]
    lines = json_lines(batch.columns, fields)
    for at, line in enumerate(lines):
        position = int(batch.position[at])
        yield DecodedRow(
            offset=int(batch.offset[at]),
            rowkind=RowKind(int(batch.row_kind[at])).symbol,
            position=None if position < 0 else position,
            snapshot=bool(batch.snapshot_row[at]),
            unavailable=tuple(name for name, marks in batch.unavailable.items() if marks[at]),
            values=json.loads(line),
        )
