"""Rows of a table merged by its rules: put in order, then given to the merge engine.

Specification: Merge engines.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.base import SortedKeys, load_merge_engine, sort_keys
from ingestd.paimon.merge.value_order import sequence_codes
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER
from ingestd.paimon.spec.merge_rules import MergeRules


def merge_rows(
    rows: pa.Table, key_columns: Sequence[str], rules: MergeRules, *, oldest_first: bool = False
) -> pa.Table:
    """One row of each key, ordered by key; what is ignored altogether has none.

    `rows` has the system columns, the key columns, those of `rules.columns_beside`, and any
    others of the table. `oldest_first` says that rows of one key stand in the order of their
    sequence numbers, which are not looked at then. UnsupportedError for a deletion that the
    engine cannot take.
    """
    if not rows.num_rows:
        return rows
    if oldest_first and not rules.sequence_fields:
        keys = sort_keys(rows, key_columns)
    else:
        keys = ordered_rows(rows, key_columns, rules)
    return load_merge_engine(rules.engine).merge(rows, key_columns, keys, rules)


def ordered_rows(rows: pa.Table, key_columns: Sequence[str], rules: MergeRules) -> SortedKeys:
    """The rows by key, and within a key from the oldest to the newest.

    Age goes by the sequence fields, then by the sequence number.
    """
    numbers = rows.column(SEQUENCE_NUMBER).to_numpy()
    if not rules.sequence_fields:
        return sort_keys(rows, key_columns, numbers)
    columns = [rows.column(name) for name in rules.sequence_fields]
    codes = sequence_codes(columns, descending=rules.descending)
    order = np.lexsort((numbers, *reversed(codes)))
    ages = np.empty(len(order), np.int64)
    ages[order] = np.arange(len(order))
    return sort_keys(rows, key_columns, ages)
