"""The layout of DataWorks messages: both images of the row, in an object each."""

import numpy as np

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.cdc.native.cells import numbers
from ingestd.cdc.native.format_readers import Look
from ingestd.cdc.native.layouts.constant_fields import (
    NULL,
    constant_fields,
    open_object,
    texts_of,
    words_spec,
)
from ingestd.cdc.native.message_layout import Log, TwoImages, chosen
from ingestd.cdc.native.module import Columns, Spec
from ingestd.cdc.normalized_events import TableNormalizer
from ingestd.cdc.row_layout import NO_KIND, Kinds
from ingestd.cdc.row_plan import RowPlan
from ingestd.paimon.spec.data_types import RowKind

_PAYLOAD, _ROW = "payload", "dataColumn"
_SEQUENCE = (_PAYLOAD, "sequenceId")
_WORDS = ("INSERT", "UPDATE_AFTER", "UPDATE_BEFORE", "DELETE")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE, RowKind.DELETE)
_DDL = (NULL, b"false", b'""')
"""Fields of messages that are no DDL statements."""
_NO_DDL: Spec = ("choice", _DDL)
_DIGITS = 19
LOOK = Look(
    tuple(("schema", "source", name) for name in ("dbName", "schemaName", "tableName")),
    {(_PAYLOAD, "op"): texts_of(_WORDS), (_PAYLOAD, "ddl"): _DDL, ("ddl",): _DDL},
)


def aliyun_layout(form: TableNormalizer, plan: RowPlan) -> TwoImages | None:
    """Return the layout of a table's messages; None if they can only be decoded in Python."""
    specs = plan.specs
    if specs is None:
        return None
    payload = [
        ("op", True, words_spec(_WORDS)),
        ("before", False, open_object([(_ROW, False, specs.old)], nullable=True)),
        ("after", False, open_object([(_ROW, False, specs.row)], nullable=True)),
        ("sequenceId", False, ("numbered", "", _DIGITS)),
        ("ddl", False, _NO_DDL),
    ]
    fields = [
        *constant_fields(form.constants, ("schema",)),
        (_PAYLOAD, True, open_object(payload)),
        ("ddl", False, _NO_DDL),
    ]
    before, after = (_PAYLOAD, "before", _ROW), (_PAYLOAD, "after", _ROW)
    kinds = chosen((_PAYLOAD, "op"), _KINDS)
    return TwoImages(open_object(fields), before, after, kinds, _log)


def _log(columns: Columns, kinds: Kinds) -> Log:
    size = len(kinds)
    number, known = numbers(columns[_SEQUENCE], size)
    return Log(np.where(known, number, UNKNOWN_POSITION), np.zeros(size, np.bool_))
