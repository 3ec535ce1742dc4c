"""Marks of replayed dead letters, stored in a small append table beside the dead-letter table.

A replay first sends a record, then marks it as replayed. After a crash in between, the record is
sent again, so a replay is at least once.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.ingest.dead_letters.dead_letter import COLUMNS
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import TableReader
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket

SUFFIX = "_replays"
COORDINATES = ("source", "topic", "partition", "offset", "timestamp")
"""The columns that identify the original record of a dead letter.

A topic that is created again has records with the same offsets, at other times.
"""
_STRING = DataType("STRING")
_COLUMNS: tuple[tuple[str, DataType], ...] = (
    *((name, kind) for name, kind in COLUMNS if name in COORDINATES),
    ("replayed_at", DataType("TIMESTAMP_LTZ", precision=3)),
    ("to_topic", _STRING),
)
_COMMENT = "Dead letters that were replayed to a topic, and when"


class ReplayPosition(NamedTuple):
    """The position of the original record of a dead letter, by which its replay is recorded.

    `timestamp` is None if the record has none, or if an older version of ingestd recorded the
    replay.
    """

    source: str
    topic: str
    partition: int
    offset: int
    timestamp: datetime | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "ReplayPosition":
        """Return the position stored in a row of the dead-letter table."""
        return cls(*(row[name] for name in COORDINATES))


@dataclass(frozen=True, slots=True)
class Replays:
    """The dead letters of one table that were replayed, by the positions of their records.

    `identifier` is the table in which replays are recorded; it need not exist. `positions` are the
    recorded positions at the time of reading; `mark` does not add to them.
    """

    catalog: Catalog
    identifier: Identifier
    positions: frozenset[ReplayPosition]

    def marks(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Return a mask (n,) of the dead letters that were replayed.

        `rows` has the columns `source`, `topic`, `partition`, `offset` and `timestamp`.
        """
        if not self.positions:
            return np.zeros(rows.num_rows, np.bool_)
        return np.fromiter(map(self._is_marked, _positions(rows)), np.bool_, rows.num_rows)

    def _is_marked(self, position: ReplayPosition) -> bool:
        return not self.positions.isdisjoint({position, position._replace(timestamp=None)})

    def mark(self, positions: Iterable[ReplayPosition], to_topic: str, now_ms: int) -> int:
        """Mark dead letters as replayed to a topic; return their number.

        Creates the table of marks if it does not exist. `now_ms` is the time of the replay in
        milliseconds since the epoch. Raises the errors of the catalog and of a commit.
        """
        cells = [(*position, now_ms, to_topic) for position in positions]
        if not cells:
            return 0
        table = self._table(now_ms)
        state = load_state(table)
        arrays = {
            name: pa.array([cell[at] for cell in cells], to_arrow_type(kind))
            for at, (name, kind) in enumerate(_COLUMNS)
        }
        rows = pa.table(arrays).select(table.schema.field_names)
        message = write_bucket(table, EMPTY_ROW, 0, rows, new_name=data_file_names(table))
        committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (message,))
        commit(table, str(uuid.uuid4()), committable, state=state, now_ms=now_ms)
        return len(cells)

    def _table(self, now_ms: int) -> FileStoreTable:
        schema = new_schema(_COLUMNS, (), (), {"bucket": "-1"}, now_ms, _COMMENT)
        self.catalog.create_table(self.identifier, schema, ignore_if_exists=True)
        table = self.catalog.get_table(self.identifier)
        known = table.schema.field_names
        lacking = [AddColumn((name,), kind) for name, kind in _COLUMNS if name not in known]
        return self.catalog.alter_table(self.identifier, lacking, now_ms) if lacking else table


def read_replays(catalog: Catalog, dead_letters: Identifier) -> Replays:
    """Read which dead letters of a table were replayed; none if no table of marks exists.

    Raises FormatError if the table of marks is damaged, and the errors of the catalog.
    """
    identifier = Identifier(dead_letters.database, f"{dead_letters.table}{SUFFIX}")
    positions: set[ReplayPosition] = set()
    if catalog.table_exists(identifier):
        table = catalog.get_table(identifier)
        snapshot = latest_snapshot(table.io, table.paths)
        if snapshot is not None:
            known = table.schema.field_names
            columns = [name for name in COORDINATES if name in known]
            for row in TableReader(table, columns).rows(snapshot):
                positions.update(_positions(row))
    return Replays(catalog, identifier, frozenset(positions))


def check_dead_letters(table: FileStoreTable) -> None:
    """Raise ConfigError if a table lacks a column of a dead-letter table, except `headers`.

    Dead-letter tables of older versions have no column `headers`.
    """
    names = table.schema.field_names
    missing = [name for name, _ in COLUMNS if name not in names and name != "headers"]
    if missing:
        raise ConfigError(
            f"table {table.name} is not a dead-letter table: it has no column {', '.join(missing)}"
        )


def _positions(rows: pa.Table) -> Iterator[ReplayPosition]:
    columns = [rows.column(name).to_pylist() for name in COORDINATES if name in rows.column_names]
    return (ReplayPosition(*values) for values in zip(*columns, strict=True))
