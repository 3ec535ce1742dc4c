"""The layout of rows flattened by Debezium's ExtractNewRecordState, with its added fields."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from ingestd.cdc.native.cells import codes
from ingestd.cdc.native.column_encoding import BOOLEAN_ENCODING
from ingestd.cdc.native.layouts.constant_fields import NULL, constant_field, words_spec
from ingestd.cdc.native.layouts.plain import PAYLOAD
from ingestd.cdc.native.message_layout import Log, OneRow
from ingestd.cdc.native.module import Columns, Path, Spec
from ingestd.cdc.native.plan import RUNS_SPEC, form_of, spec_of
from ingestd.cdc.native.position import SourceLog, run_lengths
from ingestd.cdc.normalized_events import TableNormalizer
from ingestd.cdc.plan_column import PlanColumn
from ingestd.cdc.row_layout import Kinds, Mask
from ingestd.cdc.row_plan import RowPlan
from ingestd.cdc.source_position import is_snapshot
from ingestd.paimon.spec.data_types import RowKind

_OP, _DELETED = "__op", "__deleted"
_WORDS = ("c", "r", "u", "d")
_KINDS = np.array(
    (RowKind.INSERT, RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE), np.int8
)
_READ, _TRUE = 2, 1
"""Numbers of words in their choices."""
_NAMES, _NUMBERS, _TEXTS = ("db", "schema", "table"), ("lsn", "pos", "row"), ("snapshot", "file")
_decode_mark = msgspec.json.Decoder(str | None).decode


class _InvalidError(ValueError):
    """Added fields that only the decoder in Python can decode."""


@dataclass(frozen=True, slots=True)
class _Added:
    """The added fields that are read: their column names by short names."""

    columns: Mapping[str, PlanColumn]

    def path(self, name: str) -> Path | None:
        """Return the path of a field; None if it never has a value."""
        column = self.columns.get(name)
        return None if column is None or column.reader is None else (column.name,)

    def specs(self, constants: Mapping[str, bytes]) -> dict[str, tuple[bool, Spec]]:
        """Return the nodes of the fields, by full name. Raises _InvalidError."""
        found: dict[str, tuple[bool, Spec]] = {}
        for short, column in self.columns.items():
            if short in _NAMES:
                _, needed, spec = constant_field(column.name, constants.get(column.name, NULL))
                found[column.name] = (needed, _constant_spec(column, spec))
            elif column.reader is not None:
                found[column.name] = (False, _position_spec(short, column))
        return found


def flat_layout(form: TableNormalizer, plan: RowPlan) -> OneRow | None:
    """Return the layout of a table's messages; None if they can only be decoded in Python."""
    by_name = {column.name: column for column in plan.columns}
    if plan.specs is None or PAYLOAD in by_name or not form.hidden.isdisjoint(plan.key_names):
        return None
    try:
        added = _Added(_short_names(by_name))
        specs = added.specs(form.constants) | _operation_specs(by_name)
    except _InvalidError:
        return None
    fields = [
        (column.name, *specs.get(column.name, (False, spec_of(column)))) for column in plan.columns
    ]
    root: Spec = ("object", False, True, fields)
    reader = _Reader(
        (_OP,) if _OP in specs else None, (_DELETED,) if _DELETED in specs else None, added
    )
    return OneRow(root, (), None, reader.kinds, reader.log)


def _short_names(by_name: Mapping[str, PlanColumn]) -> dict[str, PlanColumn]:
    found: dict[str, PlanColumn] = {}
    for short in (*_NAMES, *_NUMBERS, *_TEXTS):
        names = [name for name in (f"__{short}", f"__source_{short}") if name in by_name]
        if len(names) > 1:
            raise _InvalidError(short)
        if names:
            found[short] = by_name[names[0]]
    return found


def _constant_spec(column: PlanColumn, spec: Spec) -> Spec:
    if spec[0] == "literal" and not (_is_text(column) and spec[1].startswith(b'"')):
        raise _InvalidError(column.name)
    return spec


def _position_spec(short: str, column: PlanColumn) -> Spec:
    if short in _TEXTS and _is_text(column):
        return RUNS_SPEC
    spec = form_of(column).spec
    if short in _NUMBERS and spec[0] == "integer" and spec[2] == 1:
        return ("integer", 64, *spec[2:])
    raise _InvalidError(column.name)


def _operation_specs(by_name: Mapping[str, PlanColumn]) -> dict[str, tuple[bool, Spec]]:
    op, deleted = by_name.get(_OP), by_name.get(_DELETED)
    specs: dict[str, tuple[bool, Spec]] = {}
    if op is not None:
        if not _is_text(op):
            raise _InvalidError(_OP)
        specs[_OP] = (True, words_spec(_WORDS))
    if deleted is not None and deleted.reader is not None:
        if _is_text(deleted):
            specs[_DELETED] = (op is None, words_spec(("true", "false")))
        elif form_of(deleted) is BOOLEAN_ENCODING:
            specs[_DELETED] = (op is None, ("choice", (b"true", b"false")))
        else:
            raise _InvalidError(_DELETED)
    if not specs:
        raise _InvalidError(_OP)
    return specs


def _is_text(column: PlanColumn) -> bool:
    return bool(form_of(column).spec[0] == "text")


@dataclass(frozen=True, slots=True)
class _Reader:
    op: Path | None
    deleted: Path | None
    added: _Added

    def kinds(self, columns: Columns) -> Kinds:
        """Return the kind of each row; one without an operation is an insert unless deleted."""
        size = columns[()].seen
        found = _KINDS[np.zeros(size, np.uint8) if self.op is None else codes(columns[self.op])]
        if self.deleted is not None:
            found[codes(columns[self.deleted]) == _TRUE] = RowKind.DELETE
        return found

    def log(self, columns: Columns, kinds: Kinds) -> Log:
        """Return log positions; without a snapshot field, operation r marks snapshot rows."""
        snapshot = np.zeros(len(kinds), np.bool_)
        if self.op is not None:
            snapshot = codes(columns[self.op]) == _READ
        path = self.added.path("snapshot")
        if path is not None:
            runs = columns[path]
            texts = [NULL if text is None else text for _, text in runs.runs or ()]
            lengths = run_lengths(runs, len(kinds))
            marked = np.repeat(_marks(texts, lambda text: text != NULL), lengths)
            true = np.repeat(_marks(texts, lambda text: is_snapshot(_decode_mark(text))), lengths)
            snapshot = np.where(marked, true, snapshot)
        where = SourceLog(None, *map(self.added.path, ("lsn", "file", "pos", "row")))
        return Log(where.positions(columns, snapshot), snapshot)


def _marks(texts: Sequence[bytes], predicate: Callable[[bytes], bool]) -> Mask:
    return np.array([predicate(text) for text in texts], np.bool_)
