"""Messages of Canal: rows in the array `data`, beside them what an update changed of each."""

from ingestd.cdc.native.layout import NO_KIND, ListedRows, chosen, no_log
from ingestd.cdc.native.layouts.told import (
    FLAG_SPEC,
    NULL,
    open_object,
    texts_of,
    told_fields,
    words_spec,
)
from ingestd.cdc.native.look import Look
from ingestd.cdc.row_plan import RowPlan
from ingestd.cdc.table_form import TableForm
from ingestd.paimon.spec.data_types import RowKind

_WORDS = ("INSERT", "ROW", "UPDATE", "DELETE")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
_TOLD = ("database", "table", "pkNames", "mysqlType", "sqlType")
LOOK = Look(
    (("database",), ("table",)), {("type",): texts_of(_WORDS), ("isDdl",): (b"false", NULL)}
)


def canal_layout(form: TableForm, plan: RowPlan) -> ListedRows | None:
    """The layout of a table's messages; None if they can only be decoded in Python."""
    specs = plan.specs
    if specs is None:
        return None
    fields = [
        *told_fields(form.told_by, _TOLD),
        ("type", True, words_spec(_WORDS)),
        ("isDdl", False, FLAG_SPEC),
        ("data", True, ("rows", specs.whole)),
        ("old", False, ("rows", specs.old)),
    ]
    kinds = chosen(("type",), _KINDS)
    return ListedRows(open_object(fields), ("data",), ("old",), kinds, no_log)
