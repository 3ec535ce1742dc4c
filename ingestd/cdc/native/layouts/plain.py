"""The layout of messages that are only rows."""

import numpy as np

from ingestd.cdc.native.message_layout import OneRow, no_log
from ingestd.cdc.native.module import Columns
from ingestd.cdc.normalized_events import TableNormalizer
from ingestd.cdc.row_layout import Kinds
from ingestd.cdc.row_plan import RowPlan
from ingestd.paimon.spec.data_types import RowKind

PAYLOAD = "payload"
"""A row with such a column may be an envelope around another row."""


def plain_layout(form: TableNormalizer, plan: RowPlan) -> OneRow | None:
    """Return the layout of a topic's messages; None if they can only be decoded in Python."""
    specs = plan.specs
    if specs is None or any(column.name == PAYLOAD for column in plan.columns):
        return None
    return OneRow(specs.whole, (), None, _inserts, no_log)


def _inserts(columns: Columns) -> Kinds:
    return np.full(columns[()].seen, RowKind.INSERT, np.int8)
