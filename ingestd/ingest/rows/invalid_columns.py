"""Columns of a source that its target table cannot have, because of their names.

No schema could take them in, whatever its policy. So the records that have a value there are
rejected, each with the way out, and the others go on without the column.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import ChangeBatch
from ingestd.ingest.rows.conform import Failure
from ingestd.ingest.settings.context import TableContext, TableSettings
from ingestd.paimon.spec.column_names import column_name_problems, nested_name_problems
from ingestd.paimon.spec.data_types import RowKind

REASON = "invalid-column-name"


def without_invalid(
    batch: ChangeBatch,
    settings: TableSettings,
    target: TableContext | None,
    *,
    case_sensitive: bool = True,
) -> tuple[ChangeBatch, tuple[Failure, ...]]:
    """The batch without columns that its table cannot have, and the rows that lose a value by it.

    Those are all of them where such a column is part of the message key, or no other is left.
    Where the policy leaves out what is refused, no row loses anything that it was to have.
    """
    options = settings.options if target is None else target.table.schema.options
    names = (*batch.types, *batch.unavailable, *batch.primary_keys)
    invalid = {
        **nested_name_problems(batch.types, options),
        **column_name_problems(dict.fromkeys(names), options),
        **({} if case_sensitive else _capitals(names, target)),
    }
    if not invalid:
        return batch, ()
    lost = invalid.keys() & set(batch.primary_keys) or not batch.types.keys() - invalid.keys()
    if not lost and settings.evolution.on_refused == "ignore":
        return _without(batch, invalid), ()
    failures = tuple(
        Failure(rows, "schema", REASON, _message(name, problem))
        for name, problem in invalid.items()
        if (rows := _rows_of(batch, name, whole=bool(lost))).any()
    )
    return (batch if lost else _without(batch, invalid)), failures


def _capitals(names: Iterable[str], target: TableContext | None) -> dict[str, str]:
    """Columns that a catalog which folds names adds to no table."""
    known = () if target is None else target.table.schema.field_names
    problem = "has capitals, and warehouse.catalog.case-sensitive is false"
    return {name: problem for name in names if name != name.lower() and name not in known}


def _rows_of(batch: ChangeBatch, name: str, *, whole: bool) -> npt.NDArray[np.bool_]:
    if whole:
        return np.ones(len(batch.offset), np.bool_)
    if name not in batch.types:
        return np.zeros(len(batch.offset), np.bool_)
    # What a retraction says of other columns than the key is of no use to anybody.
    retracts = (batch.row_kind == RowKind.DELETE) | (batch.row_kind == RowKind.UPDATE_BEFORE)
    there: npt.NDArray[np.bool_] = np.asarray(batch.columns.column(name).is_valid()) & ~retracts
    return there


def _without(batch: ChangeBatch, invalid: Mapping[str, str]) -> ChangeBatch:
    return replace(
        batch,
        columns=batch.columns.drop_columns([name for name in invalid if name in batch.types]),
        types={name: one for name, one in batch.types.items() if name not in invalid},
        unavailable={name: one for name, one in batch.unavailable.items() if name not in invalid},
    )


def _message(name: str, problem: str) -> str:
    if "within it" in problem:
        way_out = "leave it out by select.exclude, or let the table's file.format be parquet"
    else:
        way_out = (
            "give it another name by the table's schema.aliases (new name: old name), or leave it "
            "out by select.exclude"
        )
    return f"column {name!r} {problem}; {way_out}"
