"""Debezium envelopes in Avro: classify the messages of one schema by operation and table.

Source positions are computed from columns, by the rules of `source_position`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.avro.reader import AvroReader, Wanted, rejections
from ingestd.cdc.base import UNKNOWN_POSITION, SourceTable
from ingestd.cdc.columns.arrow_calls import keep_rows, members
from ingestd.cdc.operations import ROW_OPERATIONS
from ingestd.cdc.record_errors import Reason, Reasons, record_error
from ingestd.cdc.source_position import (
    SourcePosition,
    file_number,
    is_snapshot,
    packed_positions,
    positions,
)
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.row_selection import Indices, Mask

_OP, _BEFORE, _AFTER, _SOURCE = "op", "before", "after", "source"
_TABLE_FIELDS = ("db", "schema", "table")
_TRUNCATE, _LOGICAL_MESSAGE = "t", "m"
_HEARTBEAT_TOPIC = "__debezium-heartbeat"


@dataclass(frozen=True, slots=True)
class Changes:
    """Row changes of one table, read from Debezium envelopes in Avro.

    `indices` (n,) are the indices of the messages; all arrays have one element for each of them.
    `operations` are the letters of `op`. `before` and `after` are arrays of structs, or None if the
    envelope has no such field. `source` maps the names of fields of the envelope's `source` (log
    position, snapshot mark, table name) to arrays; a field that the schema lacks is missing.
    """

    table: SourceTable
    indices: Indices
    operations: npt.NDArray[np.str_]
    before: Any
    after: Any
    source: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class SortedEnvelopes:
    """The messages of one schema, grouped by kind: row changes, truncates, control, invalid.

    Truncates are changes without rows. `control` is the number of logical decoding messages, and
    `refused` has the rejection reasons of invalid messages, by index.
    """

    changes: list[Changes]
    truncates: list[Changes]
    control: int
    refused: Reasons


def is_control(node: AvroNode, topic: str) -> bool:
    """Return whether messages of a schema are heartbeats, schema changes or transaction events.

    `node` is the type of the messages, and `topic` the name of their topic, by which heartbeats are
    recognised. Raises RecordError if they are neither control messages nor change events.
    """
    names = set(node.names)
    if node.kind == "record" and _OP in names and _SOURCE in names:
        return False
    if topic.startswith(_HEARTBEAT_TOPIC) or names == {"ts_ms"}:
        return True
    if (_SOURCE in names and names & {"ddl", "tableChanges"}) or {
        "status",
        "id",
        "event_count",
    } <= names:
        return True
    raise record_error(
        "decode", "missing-op", "the message value has no field op: it is not a Debezium event"
    )


def row_node(node: AvroNode) -> AvroNode | None:
    """Return the record type of the field `after` of an envelope, which is the type of its rows.

    Returns None if the envelope has no such field, or if its type is not a record.
    """
    child = node.child(_AFTER)
    inner = None if child is None else child.present
    return inner if inner is not None and inner.kind == "record" else None


def sort_messages(
    reader: AvroReader,
    node: AvroNode,
    messages: Sequence[bytes],
    skip: int,
    key_names: Sequence[str] | None,
) -> SortedEnvelopes:
    """Read the messages of an envelope's schema, and group them by kind.

    `skip` bytes precede each encoded record. If `key_names` is given, only these fields of the
    before images are read (None: all fields). Raises ConfigError if the messages are too large to
    be read together.
    """
    wanted: Wanted = {
        _OP: None,
        _BEFORE: key_names,
        _AFTER: None,
        _SOURCE: {*_POSITION_FIELDS, *_TABLE_FIELDS},
    }
    message_fields = reader.read(messages, skip, node, wanted)
    fields, bad = message_fields.arrays, message_fields.bad
    refused = rejections(message_fields, "decode")
    codes, distinct = _operations(fields[_OP], bad)
    operations = np.array(distinct, "<U2")[codes]

    def marked(wanted: Collection[str]) -> Mask:
        return np.array([operation in wanted for operation in distinct])[codes]

    known = marked([*ROW_OPERATIONS, _TRUNCATE, _LOGICAL_MESSAGE])
    for index in np.flatnonzero(~known & ~bad).tolist():
        operation = distinct[int(codes[index])]
        message = f"op of the message value is {operation!r}, not one of c, r, u, d, t, m"
        refused[index] = Reason("decode", "unknown-op", message)
    sorter = _Sorter(fields, operations, refused)
    return SortedEnvelopes(
        changes=sorter.by_table(marked(ROW_OPERATIONS)),
        truncates=sorter.by_table(marked([_TRUNCATE])),
        control=int(marked([_LOGICAL_MESSAGE]).sum()),
        refused=refused,
    )


def _operations(array: Array, bad: Mask) -> tuple[Indices, list[str]]:
    """Return the index of each operation in a list of the distinct ones, and this list.

    Operations are cut to two characters; those that are null or of a `bad` message are empty.
    """
    codes, names = _codes(array, len(bad))
    codes[bad] = len(names)
    return codes, [*((name or "")[:2] for name in names), ""]


@dataclass(frozen=True, slots=True)
class _Sorter:
    """The fields and operations of messages, to be grouped by source table."""

    fields: Mapping[str, Array]
    operations: npt.NDArray[np.str_]
    refused: Reasons

    def by_table(self, marks: npt.NDArray[np.bool_]) -> list[Changes]:
        """Return the marked messages by table; add those that name no table to `refused`."""
        indices = np.flatnonzero(marks)
        if not len(indices):
            return []
        source = members(_rows_of(self.fields[_SOURCE], indices))
        images = {
            name: _rows_of(self.fields[name], indices)
            for name in (_BEFORE, _AFTER)
            if name in self.fields
        }
        groups_of_tables = []
        for table, own in _tables(source):
            if not table.table:
                message = "source of the message value names no table"
                reason = Reason("decode", "missing-source", message)
                self.refused.update(dict.fromkeys(indices[own].tolist(), reason))
                continue
            groups_of_tables.append(
                Changes(
                    table,
                    indices[own],
                    self.operations[indices[own]],
                    _rows_of(images.get(_BEFORE), own),
                    _rows_of(images.get(_AFTER), own),
                    {name: _rows_of(array, own) for name, array in source.items()},
                )
            )
        return groups_of_tables


def _rows_of(array: Array | None, rows: Indices) -> Any:  # noqa: ANN401  (an Arrow array)
    return None if array is None else keep_rows(array, rows)


def _tables(source: dict[str, Array]) -> list[tuple[SourceTable, Indices]]:
    """Return the tables in the `source` fields, each with the indices of its messages.

    Removes the fields of the table name from `source`.
    """
    arrays = [source.pop(name, None) for name in _TABLE_FIELDS]
    size = next((len(array) for array in (*arrays, *source.values()) if array is not None), 0)
    encoded = [_codes(array, size) for array in arrays]
    key = np.zeros(size, np.int64)
    for codes, names in encoded:
        key = key * len(names) + codes
    tables = []
    for number in np.unique(key).tolist():
        own = np.flatnonzero(key == number)
        parts = [names[int(codes[own[0]])] for codes, names in encoded]
        tables.append((SourceTable(parts[0], parts[1], parts[2] or ""), own))
    return tables


def _codes(array: Array | None, size: int) -> tuple[Indices, list[str | None]]:
    """Return the index of each value in a list of the distinct values, and this list."""
    if array is None or not pa.types.is_string(array.type):
        return np.zeros(size, np.int64), [None]
    encoded: Any = array.dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()


Fields = Mapping[str, Array]
"""The fields of `source` in a schema, by name."""
_POSITION_FIELDS: tuple[str, ...] = SourcePosition.__struct_fields__
_LOG_FILE = frozenset({"file", "pos", "row"})
_MARKS = frozenset({"snapshot"})


def source_positions(fields: Fields, rows: int) -> npt.NDArray[np.int64]:
    """Return the log position of each change, -1 if it has none; shape (n,).

    `fields` are the arrays of the fields of `source`, by name; `rows` is the number n of changes.
    """
    present = {name: array for name, array in fields.items() if array.null_count < len(array)}
    stated = present.keys() - _MARKS
    if stated == {"lsn"} and _all_integers(present["lsn"]) and pc.min(present["lsn"]).as_py() >= 0:
        lsn: npt.NDArray[np.int64] = present["lsn"].cast(pa.int64()).to_numpy()
        return lsn
    if stated == _LOG_FILE and all(_all_integers(present[name]) for name in ("pos", "row")):
        files = _by_value(present["file"], lambda name: file_number(str(name)))
        pos, row = (present[name].cast(pa.int64()).to_numpy() for name in ("pos", "row"))
        return packed_positions(files.astype(np.int64), pos, row)
    return _one_by_one(present, rows)


def source_snapshots(fields: Fields, rows: int) -> Mask:
    """Return a mask (n,) of the changes that are rows of a snapshot of the source.

    `fields` are the arrays of the fields of `source`, by name; `rows` is the number n of changes.
    """
    marks = fields.get("snapshot")
    if marks is None:
        return np.zeros(rows, np.bool_)
    return _by_value(marks, is_snapshot).astype(np.bool_)


def _all_integers(array: Array) -> bool:
    return pa.types.is_integer(array.type) and not array.null_count


def _by_value(array: Array, function: Callable[..., object]) -> npt.NDArray[np.object_]:
    """Return the result of `function` for each value, calling it once per distinct value."""
    encoded = array.dictionary_encode(null_encoding="encode")
    results = np.array([function(value) for value in encoded.dictionary.to_pylist()], np.object_)
    results_by_row: npt.NDArray[np.object_] = results[
        encoded.indices.to_numpy(zero_copy_only=False)
    ]
    return results_by_row


def _one_by_one(present: Fields, rows: int) -> npt.NDArray[np.int64]:
    names = [name for name in _POSITION_FIELDS if name in present]
    if not names:
        return np.full(rows, UNKNOWN_POSITION, np.int64)
    cells = zip(*(present[name].to_pylist() for name in names), strict=True)
    sources = []
    for values in cells:
        given = dict(zip(names, values, strict=True))
        try:
            sources.append(msgspec.convert(given, SourcePosition))
        except msgspec.ValidationError:
            sources.append(SourcePosition(snapshot=given.get("snapshot")))
    return positions(sources)
