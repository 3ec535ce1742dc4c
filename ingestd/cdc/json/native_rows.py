"""Decode the messages of a table natively to a change batch.

Messages that are not exactly as expected are decoded in Python instead.
"""

import numpy as np

from ingestd.cdc.assembly import TableChanges, assemble_changes
from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.change_images import CELL_ERRORS
from ingestd.cdc.columns.column_reader import PlanColumn
from ingestd.cdc.json.message_layout import LayoutChanges, NativeReader
from ingestd.cdc.json.messages import Messages
from ingestd.cdc.json.native_cells import ColumnImage
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import Columns


def read_natively(
    native: NativeReader | None, plan: RowPlan, messages: Messages
) -> ChangeBatch | None:
    """Return the batch of messages; None if any must be decoded in Python.

    Without a reader all must be.
    """
    if native is None:
        return None
    shape = messages.value_shape
    columns = native.values.read(messages.values, shape.prefix, shape.suffix)
    if columns is None:
        return None
    keys: Columns | None = None
    if native.keys is not None and messages.keys is not None:
        shape = messages.key_shape
        keys = native.keys.read(messages.keys, shape.prefix, shape.suffix)
        if keys is None:
            return None
    try:
        changes = native.layout.changes(columns, messages.offsets)
        return assemble_changes(_table_changes(native, plan, changes, keys))
    except CELL_ERRORS:
        return None


def _table_changes(
    native: NativeReader, plan: RowPlan, changes: LayoutChanges, keys: Columns | None
) -> TableChanges[PlanColumn]:
    readable = (column for column in plan.columns if column.reader is not None)
    all_changes = np.ones(len(changes.kinds), np.bool_)
    return TableChanges(
        source=plan.source,
        columns=[column for column in readable if column.name not in native.hidden],
        key_names=plan.key_names,
        kinds=changes.kinds,
        after=changes.after,
        before=changes.before,
        key=None if keys is None else ColumnImage(keys, (), all_changes),
        offset=changes.offsets,
        position=changes.log.position,
        snapshot_row=changes.log.snapshot,
        partial=plan.wants.partial,
        images=plan.wants.images,
    )
