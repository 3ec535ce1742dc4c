"""The row kinds that a writer writes: read from `rowkind.field`, without ignored rows.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/sequence-rowkind/#row-kind-field
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.aggregate_functions import takes_retractions
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import VALUE_KIND, RowKind
from ingestd.paimon.spec.merge_rules import MergeRules
from ingestd.paimon.spec.row_selection import Mask, retractions

PARTIAL_UPDATE_REFUSAL = (
    "'merge-engine' = 'partial-update' takes no deleted rows; set 'ignore-delete' or, "
    "when the table is created, 'partial-update.remove-record-on-delete' to 'true', or "
    "define sequence groups"
)
"""Why a partial-update table cannot take deletions, and what to change."""

Kinds = npt.NDArray[np.int8]
_SYMBOLS = pa.array([kind.symbol for kind in RowKind])
NO_KIND = -1


def kinds_of(column: Column) -> Kinds:
    """Return row kinds (rows,) from a column of +I, -U, +U and -D; -1 for any other text."""
    codes: Any = pc.index_in(column, value_set=_SYMBOLS)
    kinds: npt.NDArray[Any] = pc.fill_null(codes, NO_KIND).to_numpy()
    return kinds.astype(np.int8)


def ignored_kinds(rules: MergeRules, kinds: Kinds) -> Mask:
    """Return a mask (rows,) of the rows that a writer does not write, given the kind of each row.

    These are all retractions with `ignore-delete`, and -U rows with `ignore-update-before`.
    """
    if rules.ignore_delete:
        return retractions(kinds)
    marks: Mask = (kinds == RowKind.UPDATE_BEFORE) & rules.ignore_update_before
    return marks


def without_ignored(rows: pa.Table, rules: MergeRules) -> pa.Table:
    """Return the rows that a writer writes, by their row kinds in the column `VALUE_KIND`.

    It does not write retractions with `ignore-delete`, nor -U rows with `ignore-update-before`.
    """
    ignored = ignored_kinds(rules, rows.column(VALUE_KIND).to_numpy())
    return rows.filter(pa.array(~ignored)) if bool(ignored.any()) else rows


def retraction_refusal(rules: MergeRules) -> str | None:
    """Return why a table cannot take deletions and what to change, as a message of an error.

    The result is None if the table can take deletions.
    """
    if rules.ignore_delete or rules.remove_on_delete or rules.engine == "deduplicate":
        return None
    if rules.engine == "first-row":
        return "'merge-engine' = 'first-row' takes no deleted rows; set 'ignore-delete' = 'true'"
    if rules.engine == "partial-update" and not rules.groups:
        return PARTIAL_UPDATE_REFUSAL
    for name, function in rules.functions.items():
        if not takes_retractions(function):
            return (
                f"aggregate function '{function.name}' of column '{name}' cannot take back the "
                f"value of a deleted row; set 'fields.{name}.ignore-retract' = 'true' or "
                "'ignore-delete' = 'true'"
            )
    return None


def rows_to_write(rows: pa.Table, rules: MergeRules) -> pa.Table:
    """Return the rows to write: without ignored rows, and with the row kinds of `rowkind.field`.

    Raises UnsupportedError if a value of `rowkind.field` is not a row kind, or for a deletion that
    the merge engine does not support, because files with such a row could not be read.
    """
    if rules.rowkind_field is not None:
        kinds = kinds_of(rows.column(rules.rowkind_field))
        if bool((kinds == NO_KIND).any()):
            raise UnsupportedError(
                f"column '{rules.rowkind_field}' of 'rowkind.field' holds something else than +I, "
                "-U, +U or -D"
            )
        at = rows.column_names.index(VALUE_KIND)
        rows = rows.set_column(at, VALUE_KIND, pa.array(kinds))
    rows = without_ignored(rows, rules)
    rejection_reason = retraction_refusal(rules)
    if rejection_reason is not None:
        kinds = rows.column(VALUE_KIND).to_numpy()
        if bool(retractions(kinds).any()):
            raise UnsupportedError(rejection_reason)
    return rows
