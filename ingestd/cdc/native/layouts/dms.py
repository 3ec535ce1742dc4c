"""The layout of AWS DMS messages: the row in `data`, the before image in a second object."""

import numpy as np

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.cdc.native.cells import codes
from ingestd.cdc.native.format_readers import Look
from ingestd.cdc.native.layouts.constant_fields import (
    NULL,
    constant_fields,
    open_object,
    texts_of,
    words_spec,
)
from ingestd.cdc.native.message_layout import Log, OneRow, chosen
from ingestd.cdc.native.module import Columns
from ingestd.cdc.normalized_events import TableNormalizer
from ingestd.cdc.row_layout import NO_KIND, Kinds
from ingestd.cdc.row_plan import RowPlan
from ingestd.paimon.spec.data_types import RowKind

_METADATA = "metadata"
_OPERATION = (_METADATA, "operation")
_WORDS = ("load", "insert", "update", "delete")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
_LOAD = 1
"""Number of the operation in its choice."""
_BEFORE = "BI_"
LOOK = Look(
    ((_METADATA, "schema-name"), (_METADATA, "table-name")),
    {_OPERATION: texts_of(_WORDS), (_METADATA, "record-type"): (b'"data"', NULL)},
)


def dms_layout(form: TableNormalizer, plan: RowPlan) -> OneRow | None:
    """Return the layout of a table's messages; None if they can only be decoded in Python."""
    specs = plan.specs
    if specs is None or any(column.name.startswith(_BEFORE) for column in plan.columns):
        return None
    metadata = [
        *constant_fields(form.constants, ("schema-name", "table-name")),
        ("operation", True, words_spec(_WORDS)),
        ("record-type", False, words_spec(("data",))),
    ]
    fields = [
        (_METADATA, True, open_object(metadata)),
        ("data", True, specs.whole),
        ("before-image", False, specs.old),
    ]
    kinds = chosen(_OPERATION, _KINDS)
    return OneRow(open_object(fields), ("data",), ("before-image",), kinds, _log)


def _log(columns: Columns, kinds: Kinds) -> Log:
    snapshot = codes(columns[_OPERATION]) == _LOAD
    return Log(np.full(len(kinds), UNKNOWN_POSITION, np.int64), snapshot)
