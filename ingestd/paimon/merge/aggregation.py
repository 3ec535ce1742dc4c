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

_KEEP_KEY = FieldFunction(PRIMARY_KEY)


def merge(rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> pa.Table:
    """Return one row per key, ordered by key; `keys` has the order of `rows`.

    A key with a single row keeps it unchanged, unless `rules.merges_single` is set. Other merged
    rows are of kind INSERT, or DELETE if the newest row of the key removes it
    (`rules.remove_on_delete`). Raises UnsupportedError for a deletion whose values a function
    cannot retract.
    """
    merge_input = MergeInput.of(rows, keys, replace(rules, ignore_delete=False))
    events = merge_input.events
    removed = (merge_input.kinds == RowKind.DELETE) & rules.remove_on_delete
    ops: Ops = np.where(merge_input.retracts, RETRACT, AGG)
    ops[merge_input.ignored] = SKIP
    # A row that removes the record keeps its own values, and aggregation starts again from them.
    ops[removed | merge_input.single[events.key]] = SET

    def column(name: str, values: Column) -> Column:
        return fold(name, values, events, ops, rules.functions.get(name, _KEEP_KEY))

    return merge_input.table(column, removed[merge_input.last])
