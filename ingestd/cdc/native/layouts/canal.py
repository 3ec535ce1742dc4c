"""The layout of Canal messages: rows in the array `data`, the old values of updates in `old`."""

from ingestd.cdc.native.format_readers import Look
from ingestd.cdc.native.layouts.constant_fields import (
    FLAG_SPEC,
    NULL,
    constant_fields,
    open_object,
    texts_of,
    words_spec,
)
from ingestd.cdc.native.message_layout import ListedRows, chosen, no_log
from ingestd.cdc.normalized_events import TableNormalizer
from ingestd.cdc.row_layout import NO_KIND
from ingestd.cdc.row_plan import RowPlan
from ingestd.paimon.spec.data_types import RowKind

_WORDS = ("INSERT", "ROW", "UPDATE", "DELETE")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
_TOLD = ("database", "table", "pkNames", "mysqlType", "sqlType")
LOOK = Look(
    (("database",), ("table",)), {("type",): texts_of(_WORDS), ("isDdl",): (b"false", NULL)}
)


def canal_layout(form: TableNormalizer, plan: RowPlan) -> ListedRows | None:
    """Return the layout of a table's messages; None if they can only be decoded in Python."""
    specs = plan.specs
    if specs is None:
        return None
    fields = [
        *constant_fields(form.constants, _TOLD),
        ("type", True, words_spec(_WORDS)),
        ("isDdl", False, FLAG_SPEC),
        ("data", True, ("rows", specs.whole)),
        ("old", False, ("rows", specs.old)),
    ]
    kinds = chosen(("type",), _KINDS)
    return ListedRows(open_object(fields), ("data",), ("old",), kinds, no_log)
