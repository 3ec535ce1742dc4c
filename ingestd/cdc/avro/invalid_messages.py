"""Rejection reasons of Avro messages that do not match their schema."""

import numpy as np

from ingestd.cdc.avro.reader import MessageFields
from ingestd.cdc.cell_budget import CellBudgetError
from ingestd.cdc.record_errors import Reason, too_many_cells


def rejections(fields: MessageFields, stage: str) -> dict[int, Reason]:
    """Return the rejection reason of each message that does not match its schema, by index."""
    document = "the message key" if stage == "key" else "the message value"
    broken = Reason(stage, "invalid-avro", f"{document} does not match its Avro schema")
    reasons = dict.fromkeys(np.flatnonzero(fields.bad).tolist(), broken)
    for index in np.flatnonzero(fields.over).tolist():
        reasons[index] = too_many_cells(CellBudgetError(int(fields.sizes[index])), stage, document)
    return reasons
