"""A data format of messages made by hand: records are lists of changes as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import (
    ChangeBatch,
    Comments,
    Decoded,
    KnownColumns,
    RecordChunk,
    RejectedRecord,
    SchemaChangeEvent,
    SourceTable,
    Truncate,
)
from ingestd.paimon.spec.arrow import from_arrow_type, to_arrow_type
from ingestd.paimon.spec.data_types import DataType

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
UNAVAILABLE = "(left out)"


@dataclass(frozen=True)
class Change:
    """One row of one source table; a record may hold several."""

    row: Mapping[str, Any]
    kind: int = INSERT
    table: str = "orders"
    schema: str = "shop"
    keys: tuple[str, ...] = ("id",)
    position: int = -1
    snapshot: bool = False
    truncate: bool = False


def record(*changes: Change) -> bytes:
    """The value of a record that holds these changes."""
    return json.dumps([change.__dict__ for change in changes]).encode()


def statement(position: int | None, *, schema: str = "shop", **columns: str | None) -> bytes:
    """The value of a record about columns of the orders: old name to new one, None if it went."""
    changes = list(columns.items())
    return json.dumps({"position": position, "columns": changes, "schema": schema}).encode()


def documented(comment: str | None, *, schema: str = "shop", **columns: str) -> bytes:
    """The value of a record with comments of the table of orders and its columns."""
    comments = [comment, columns]
    return json.dumps({"position": None, "columns": [], "schema": schema, "doc": comments}).encode()


@dataclass
class JsonChanges:
    """Data format of the records above; `types` fixes Paimon types of columns by name."""

    name: str = "json-changes"
    types: Mapping[str, DataType] = field(default_factory=dict)

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Batches of the changes of a chunk, one for each source table."""
        found: dict[SourceTable, list[tuple[int, dict[str, Any]]]] = {}
        rejected, truncates, proven, control = [], [], [], 0
        for i, value in enumerate(chunk.values):
            offset = int(chunk.offsets[i])
            if value is None:
                control += 1
                continue
            try:
                changes = json.loads(value)
            except ValueError as error:
                stamp = int(chunk.timestamps[i])
                rejected.append(
                    RejectedRecord(
                        chunk.topic, chunk.partition, offset, stamp, "decode", "not-json",
                        str(error), chunk.keys[i], value,
                    )
                )  # fmt: skip
                continue
            if isinstance(changes, dict):
                control += 1
                columns = tuple((old, new) for old, new in changes["columns"])
                source = SourceTable("db", changes["schema"], "orders")
                at = changes["position"]
                event = SchemaChangeEvent(source, chunk.partition, offset, at, columns)
                if "doc" in changes:
                    event = replace(event, comments=Comments(*changes["doc"]))
                proven.append(event)
                continue
            for change in changes:
                source = SourceTable("db", change["schema"], change["table"])
                if change["truncate"]:
                    at = change["position"]
                    position = at if at >= 0 else None
                    truncates.append(Truncate(source, chunk.partition, offset, position))
                else:
                    found.setdefault(source, []).append((offset, change))
        batches = [
            self.batch(source, rows, declared.get(source, {})) for source, rows in found.items()
        ]
        return Decoded(batches, rejected, truncates, control, proven)

    def batch(
        self,
        source: SourceTable,
        rows: Sequence[tuple[int, Mapping[str, Any]]],
        declared: Mapping[str, DataType],
    ) -> ChangeBatch:
        """One change batch of (offset, change) pairs."""
        names = list(dict.fromkeys(name for _, change in rows for name in change["row"]))
        cells = {name: [change["row"].get(name) for _, change in rows] for name in names}
        left_out = {
            name: np.array([cell == UNAVAILABLE for cell in column])
            for name, column in cells.items()
            if UNAVAILABLE in column
        }
        arrays, types = {}, {}
        for name, column in cells.items():
            plain = [None if cell == UNAVAILABLE else cell for cell in column]
            fixed = declared.get(name) or self.types.get(name)
            array = pa.array(plain, to_arrow_type(fixed) if fixed else None)
            if not pa.types.is_null(array.type):
                arrays[name] = array
                types[name] = fixed or from_arrow_type(array.type)
        return ChangeBatch(
            source=source,
            columns=pa.table(arrays),
            types=types,
            primary_keys=tuple(rows[0][1]["keys"]),
            row_kind=np.array([change["kind"] for _, change in rows], np.int8),
            offset=np.array([offset for offset, _ in rows], np.int64),
            position=np.array([change["position"] for _, change in rows], np.int64),
            snapshot_row=np.array([change["snapshot"] for _, change in rows], np.bool_),
            unavailable=left_out,
        )
