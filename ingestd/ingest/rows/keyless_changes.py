"""Updates and deletes of a table without a key, which has no row that they could change.

By its settings it takes none of them (`reject`), the rows as they are after each change
(`latest-only`), or every change as a row of its own, with its kind in a column (`audit`).
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch
from ingestd.errors import SchemaConflictError
from ingestd.ingest.rows.batch_rows import select_rows
from ingestd.ingest.settings.context import TableContext, TableSettings
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.data_types import DataType, RowKind

KIND_COLUMN = "row_kind"
"""Column of an audit table: `+I`, `-U`, `+U` or `-D`, as in Paimon's audit log."""
_KINDS: Array = pa.array(["+I", "-U", "+U", "-D"])


def is_audit(settings: TableSettings, batch: ChangeBatch, target: TableContext | None) -> bool:
    """Whether every change is to be a row: the table, which may not be there yet, has no key."""
    return settings.keyless_table_mode == "audit" and _is_keyless(settings, batch, target)


def latest_only(
    batch: ChangeBatch, settings: TableSettings, target: TableContext | None
) -> tuple[ChangeBatch, int]:
    """The rows after changes, where the table takes these alone, and how many others there are."""
    if settings.keyless_table_mode != "latest-only" or not _is_keyless(settings, batch, target):
        return batch, 0
    gone = np.isin(batch.row_kind, (RowKind.DELETE, RowKind.UPDATE_BEFORE))
    return _as_inserts(select_rows(batch, ~gone)), int(np.count_nonzero(gone))


def audited(
    batch: ChangeBatch, settings: TableSettings, target: TableContext | None
) -> ChangeBatch:
    """Every change as a row with its kind, where the table keeps them all.

    SchemaConflictError if the source has a column of the name that the kinds are to have.
    """
    if not is_audit(settings, batch, target):
        return batch
    return _as_inserts(_with_kinds(batch))


def _is_keyless(settings: TableSettings, batch: ChangeBatch, target: TableContext | None) -> bool:
    if target is not None:
        return not target.table.schema.primary_keys
    keys = settings.primary_keys
    return not (batch.primary_keys if keys is None else keys)


def _with_kinds(batch: ChangeBatch) -> ChangeBatch:
    if KIND_COLUMN in batch.types:
        names = ".".join(part for part in batch.source if part)
        raise SchemaConflictError(
            f"keyless-table-mode 'audit' writes the kind of each change to '{KIND_COLUMN}', but "
            f"{names} has a column of that name; leave it out by select.exclude, or let "
            "keyless-table-mode be latest-only"
        )
    column = _KINDS.take(batch.row_kind)
    return replace(
        batch,
        columns=batch.columns.append_column(KIND_COLUMN, column),
        types={**batch.types, KIND_COLUMN: DataType("STRING")},
    )


def _as_inserts(batch: ChangeBatch) -> ChangeBatch:
    """As new rows; for cells that the source left out no older row can be found."""
    columns = batch.columns
    for name, left_out in batch.unavailable.items():
        if name not in batch.types:
            continue
        values = columns.column(name)
        filled = pc.if_else(pa.array(left_out), pa.scalar(None, values.type), values)
        columns = columns.set_column(columns.column_names.index(name), name, filled)
    kinds = np.full(len(batch.offset), RowKind.INSERT, np.int8)
    return replace(batch, columns=columns, unavailable={}, row_kind=kinds)
