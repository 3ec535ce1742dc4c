"""The layout of Debezium messages: the object `source`, the operation, both images of the row."""

from ingestd.cdc.base import SourceTable
from ingestd.cdc.native.column_encoding import INT64_ENCODING
from ingestd.cdc.native.layouts.constant_fields import texts_of
from ingestd.cdc.native.message_layout import TwoImages, chosen
from ingestd.cdc.native.module import Spec
from ingestd.cdc.native.plan import NULL_SPEC, RUNS_SPEC, RowSpecs
from ingestd.cdc.native.position import SourceLog
from ingestd.cdc.row_layout import NO_KIND
from ingestd.paimon.spec.data_types import RowKind

_BEFORE, _AFTER, _SOURCE = "before", "after", "source"
_LOG = SourceLog(
    (_SOURCE, "snapshot"), (_SOURCE, "lsn"), (_SOURCE, "file"), (_SOURCE, "pos"), (_SOURCE, "row")
)
OPERATIONS = texts_of(("c", "r", "u", "d"))
"""JSON texts of the operations on rows."""
_KINDS = chosen(
    ("op",), (NO_KIND, RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
)


def debezium_layout(source: SourceTable, specs: RowSpecs) -> TwoImages | None:
    """Return the layout of a table's messages; None if JSON has to escape the table's name."""
    names = _source_names(source)
    if names is None:
        return None
    position = [
        *((name, False, INT64_ENCODING.spec) for name in ("lsn", "pos", "row")),
        *((name, False, RUNS_SPEC) for name in ("file", "snapshot")),
    ]
    fields = (
        ("op", True, ("choice", OPERATIONS)),
        (_SOURCE, True, ("object", False, False, [*names, *position])),
        (_BEFORE, False, specs.old),
        (_AFTER, False, specs.row),
    )
    root = ("object", False, False, fields)
    return TwoImages(root, (_BEFORE,), (_AFTER,), _KINDS, _LOG.read)


def _source_names(source: SourceTable) -> list[tuple[str, bool, Spec]] | None:
    """Return the fields that name the table; None if JSON has to escape a name."""
    found: list[tuple[str, bool, Spec]] = []
    for field, name in zip(("db", "schema", "table"), source, strict=True):
        if name is None:
            found.append((field, False, NULL_SPEC))
        elif any(character in '"\\' or character < " " for character in name):
            return None
        else:
            found.append((field, True, ("literal", f'"{name}"'.encode())))
    return found
