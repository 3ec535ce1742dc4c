"""Apply declared column aliases to batches with rows from before and after a rename."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import ChangeBatch
from ingestd.errors import SchemaConflictError
from ingestd.ingest.values.type_merge import merge_types
from ingestd.ingest.values.value_casts import coalesced
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.row_selection import Mask


def renamed(batch: ChangeBatch, aliases: Mapping[str, str]) -> ChangeBatch:
    """Return the batch with old column names replaced; `aliases` maps new names to old names.

    If the batch has columns with both names, they are merged: each row has a value in at most one
    of them. Raises SchemaConflictError if no type holds the values of both columns.
    """
    new_names = {old: new for new, old in aliases.items()}
    if new_names.keys().isdisjoint((*batch.types, *batch.unavailable)):
        return batch
    values: dict[str, Values] = {}
    types: dict[str, DataType] = {}
    for name, data_type in batch.types.items():
        new, column = new_names.get(name, name), batch.columns.column(name)
        if new in values:
            column, data_type = _either((values[new], types[new]), (column, data_type), new)
        values[new], types[new] = column, data_type
    return replace(
        batch,
        columns=pa.table(values),
        types=types,
        primary_keys=tuple(new_names.get(name, name) for name in batch.primary_keys),
        unavailable=_marks(batch, new_names, values),
        lacking={
            **batch.lacking,
            **{new: batch.lacks(new) & batch.lacks(old) for new, old in aliases.items()},
        },
    )


def _marks(
    batch: ChangeBatch, new_names: Mapping[str, str], values: Mapping[str, Values]
) -> dict[str, Mask]:
    """Return, by new column name, masks (n,) of the rows whose value the source omitted.

    A row with a value under one name may be marked under the other name; such a mark is removed.
    """
    marks: dict[str, Mask] = {}
    for name, left_out in batch.unavailable.items():
        new = new_names.get(name, name)
        marks[new] = left_out | marks[new] if new in marks else left_out
    present = {*batch.types, *batch.unavailable}
    both = {new for old, new in new_names.items() if {old, new} <= present}
    for new in both & marks.keys() & values.keys():
        marks[new] = marks[new] & np.asarray(values[new].is_null())
    return marks


def _either(
    first: tuple[Values, DataType], second: tuple[Values, DataType], name: str
) -> tuple[Values, DataType]:
    """Merge two columns of which each row has a value in at most one."""
    merged = merge_types(first[1], second[1])
    if merged is None:
        raise SchemaConflictError(
            f"column '{name}' is {first[1]}, and {second[1]} under its old name; no type holds "
            f"both: set the type of '{name}' in schema.column-types, to that of the table if it "
            "exists, else to one that holds both, such as STRING"
        )
    return coalesced((first, second), merged), merged
