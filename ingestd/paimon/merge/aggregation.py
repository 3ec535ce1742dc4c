"""The merge engine `aggregation`: each column is computed by its own aggregate function.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.aggregate_functions import fold
from ingestd.paimon.merge.events import AGG, RETRACT, SET, SKIP, Ops
from ingestd.paimon.merge.key_order import SortedKeys
from ingestd.paimon.merge.merged_rows import MergeInput
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.merge_rules import PRIMARY_KEY, FieldFunction, MergeRules
from ingestd.paimon.spec.row_selection import Mask

_KEEP_KEY = FieldFunction(PRIMARY_KEY)


def merge(rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> pa.Table:
    """Return one row per key, ordered by key; the only row of a key is kept unchanged.

    Raises UnsupportedError for a deletion whose values a function cannot retract.
    """
    merge_input, removed = _removals(rows, keys, rules)
    events = merge_input.events
    ops: Ops = np.where(merge_input.retracts, RETRACT, AGG)
    ops[merge_input.ignored] = SKIP
    # A row that removes the record keeps its own values, and aggregation starts again from them.
    ops[removed | merge_input.single[events.key]] = SET

    def column(name: str, values: Column) -> Column:
        return fold(name, values, events, ops, rules.functions.get(name, _KEEP_KEY))

    return merge_input.table(column, removed[merge_input.last])


def superseded(rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> Mask:
    """Return a mask (n,) of the rows of each key up to a removal that other rows follow."""
    merge_input, removed = _removals(rows, keys, rules)
    return merge_input.superseded(removed)


def _removals(rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> tuple[MergeInput, Mask]:
    """Return the merge input, and a mask of the events that remove the whole row of their key."""
    merge_input = MergeInput.of(rows, keys, replace(rules, ignore_delete=False))
    return merge_input, (merge_input.kinds == RowKind.DELETE) & rules.remove_on_delete
