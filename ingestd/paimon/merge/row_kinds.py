"""The kinds of rows as a writer takes them: from a column of the table, or some of them ignored.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/sequence-rowkind/
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.functions import takes_retractions
from ingestd.paimon.merge.merged_rows import Kinds, retractions
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import VALUE_KIND, RowKind
from ingestd.paimon.spec.merge_rules import MergeRules

_SYMBOLS = pa.array([kind.symbol for kind in RowKind])
NO_KIND = -1


def kinds_of(column: Column) -> Kinds:
    """Row kinds from a column of +I, -U, +U and -D; `NO_KIND` for anything else."""
    found: Any = pc.index_in(column, value_set=_SYMBOLS)
    kinds: npt.NDArray[Any] = pc.fill_null(found, NO_KIND).to_numpy()
    return kinds.astype(np.int8)


def ignored_kinds(rules: MergeRules, kinds: Kinds) -> npt.NDArray[np.bool_]:
    """Marks the rows that the options tell a writer to leave out."""
    if rules.ignore_delete:
        return retractions(kinds)
    marks: npt.NDArray[np.bool_] = (kinds == RowKind.UPDATE_BEFORE) & rules.ignore_update_before
    return marks


def retraction_refusal(rules: MergeRules) -> str | None:
    """Why a table cannot take deleted rows, and the way out; None if it can."""
    if rules.ignore_delete or rules.remove_on_delete or rules.engine == "deduplicate":
        return None
    if rules.engine == "first-row":
        return "'merge-engine' = 'first-row' takes no deleted rows; set 'ignore-delete' = 'true'"
    if rules.engine == "partial-update" and not rules.groups:
        return (
            "'merge-engine' = 'partial-update' takes no deleted rows; set 'ignore-delete' or "
            "'partial-update.remove-record-on-delete' to 'true', or define sequence groups"
        )
    for name, function in rules.functions.items():
        if not takes_retractions(function):
            return (
                f"aggregate function '{function.name}' of column '{name}' cannot take back the "
                f"value of a deleted row; set 'fields.{name}.ignore-retract' = 'true' or "
                "'ignore-delete' = 'true'"
            )
    return None


def rows_to_write(rows: pa.Table, rules: MergeRules) -> pa.Table:
    """Return the rows with the kinds that they have in the table, without those that are ignored.

    UnsupportedError if `rowkind.field` holds no row kind somewhere, or for a deleted row that the
    merge engine cannot take: files with such rows could not be read.
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
    kinds = rows.column(VALUE_KIND).to_numpy()
    ignored = ignored_kinds(rules, kinds)
    if bool(ignored.any()):
        rows, kinds = rows.filter(pa.array(~ignored)), kinds[~ignored]
    rejection_reason = retraction_refusal(rules)
    if rejection_reason is not None and bool(retractions(kinds).any()):
        raise UnsupportedError(rejection_reason)
    return rows
