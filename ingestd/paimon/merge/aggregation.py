"""The merge engine that computes every column with a function of its own.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.base import SortedKeys
from ingestd.paimon.merge.events import AGG, RETRACT, SET, SKIP, Ops
from ingestd.paimon.merge.functions import fold
from ingestd.paimon.merge.merged_rows import MergeInput
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.merge_rules import PRIMARY_KEY, FieldFunction, MergeRules

_KEEP_KEY = FieldFunction(PRIMARY_KEY)


def merge(
    rows: pa.Table, key_columns: Sequence[str], keys: SortedKeys, rules: MergeRules
) -> pa.Table:
    """One row of each key, ordered by key; the row of a key that has only one stays as it is.

    Raises UnsupportedError for a deletion that a function cannot take back.
    """
    given = MergeInput.of(rows, keys, replace(rules, ignore_delete=False))
    events = given.events
    removed = (given.kinds == RowKind.DELETE) & rules.remove_on_delete
    ops: Ops = np.where(given.retracts, RETRACT, AGG)
    ops[given.ignored] = SKIP
    # A row that removes the record leaves its own values behind, which count again from there.
    ops[removed | given.single[events.key]] = SET

    def column(name: str, values: Column) -> Column:
        return fold(name, values, events, ops, rules.functions.get(name, _KEEP_KEY))

    return given.table(column, removed[given.last])
