"""The layout of GoldenGate messages: both images of the row; updates may lack unchanged fields."""

import numpy as np

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.cdc.native.cells import numbers
from ingestd.cdc.native.format_readers import Look
from ingestd.cdc.native.layouts.constant_fields import (
    constant_fields,
    open_object,
    texts_of,
    words_spec,
)
from ingestd.cdc.native.message_layout import Log, TwoImages, chosen
from ingestd.cdc.native.module import Columns
from ingestd.cdc.normalized_events import TableNormalizer
from ingestd.cdc.row_layout import NO_KIND, Kinds
from ingestd.cdc.row_plan import RowPlan
from ingestd.paimon.spec.data_types import RowKind

_KINDS = (NO_KIND, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
_MISSING = "_isMissing"
_DIGITS = 20
_WORDS = ("I", "U", "D")
LOOK = Look((("table",), ("primary_keys",)), {("op_type",): texts_of(_WORDS)})


def ogg_layout(form: TableNormalizer, plan: RowPlan) -> TwoImages | None:
    """Return the layout of a table's messages; None if they can only be decoded in Python."""
    specs = plan.specs
    if specs is None or any(column.name.endswith(_MISSING) for column in plan.columns):
        return None
    fields = [
        *constant_fields(form.constants, ("table", "primary_keys")),
        ("op_type", True, words_spec(_WORDS)),
        ("pos", False, ("numbered", "", _DIGITS)),
        ("before", False, specs.old),
        ("after", False, specs.row),
    ]
    kinds = chosen(("op_type",), _KINDS)
    return TwoImages(open_object(fields), ("before",), ("after",), kinds, _log)


def _log(columns: Columns, kinds: Kinds) -> Log:
    size = len(kinds)
    pos, has_pos = numbers(columns[("pos",)], size)
    return Log(np.where(has_pos, pos, UNKNOWN_POSITION), np.zeros(size, np.bool_))
