"""The merge of a table's rows: they are sorted, then merged by the merge engine.

A merge engine takes rows in any order and returns one row per key.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast, runtime_checkable

import numpy as np
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.key_order import Positions, SortedKeys, sort_keys, stable_order
from ingestd.paimon.merge.value_order import sequence_codes
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER
from ingestd.paimon.spec.merge_rules import MergeRules

MERGE_ENGINES: Mapping[str, str] = {
    "aggregation": "ingestd.paimon.merge.aggregation",
    "deduplicate": "ingestd.paimon.merge.deduplicate",
    "first-row": "ingestd.paimon.merge.first_row",
    "partial-update": "ingestd.paimon.merge.partial_update",
}
"""Merge engine name -> module with the functions of `MergeEngine`."""


class MergeEngine(Protocol):
    """A module of this package.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
    """

    def merge(
        self, rows: pa.Table, key_columns: Sequence[str], keys: SortedKeys, rules: MergeRules
    ) -> pa.Table:
        """Return one row per key, ordered by key; `keys` holds the order of the input rows.

        A key may have no row if all its rows are ignored.
        """
        ...


@runtime_checkable
class PickingEngine(Protocol):
    """A merge engine that returns some of its input rows unchanged.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
    """

    def pick(self, rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> Positions:
        """Return the positions of the rows of `merge`; `rows` needs only system columns."""
        ...


def load_merge_engine(name: str) -> MergeEngine:
    """Return the merge engine of that name. Raises UnsupportedError if there is none."""
    module = MERGE_ENGINES.get(name)
    if module is None:
        raise UnsupportedError(
            f"'merge-engine' = '{name}' is not supported; only {sorted(MERGE_ENGINES)} are"
        )
    return cast("MergeEngine", import_module(module))


def merge_rows(
    rows: pa.Table, key_columns: Sequence[str], rules: MergeRules, *, oldest_first: bool = False
) -> pa.Table:
    """Return one row per key, ordered by key; a key whose rows are all ignored has none.

    `rows` has the system columns, the key columns, those of `rules.columns_beside`, and any other
    columns of the table. With `oldest_first`, the rows of a key are in the order of their sequence
    numbers, which are then not read. Raises UnsupportedError for a deletion that the engine does
    not support.
    """
    if not rows.num_rows:
        return rows
    keys = _keys(rows, key_columns, rules, oldest_first)
    return load_merge_engine(rules.engine).merge(rows, key_columns, keys, rules)


def picks_rows(rules: MergeRules) -> bool:
    """Return whether the merge engine returns input rows unchanged (see `picked_rows`)."""
    return isinstance(load_merge_engine(rules.engine), PickingEngine)


def picked_rows(
    rows: pa.Table, key_columns: Sequence[str], rules: MergeRules, *, oldest_first: bool = False
) -> Positions:
    """Return the positions of the rows that `merge_rows` returns, for an engine that picks rows.

    `rows` has the key columns, the sequence fields and the system columns. `oldest_first` and what
    is raised are as in `merge_rows`; ValueError for an engine of another kind.
    """
    engine = load_merge_engine(rules.engine)
    if not isinstance(engine, PickingEngine):
        raise ValueError(f"the merge engine {rules.engine} makes rows of its own")
    if not rows.num_rows:
        return np.empty(0, np.int64)
    return engine.pick(rows, _keys(rows, key_columns, rules, oldest_first), rules)


def _keys(
    rows: pa.Table, key_columns: Sequence[str], rules: MergeRules, oldest_first: bool
) -> SortedKeys:
    if oldest_first and not rules.sequence_fields:
        return sort_keys(rows, key_columns)
    return ordered_rows(rows, key_columns, rules)


def ordered_rows(rows: pa.Table, key_columns: Sequence[str], rules: MergeRules) -> SortedKeys:
    """Return the rows by key, and within a key from oldest to newest.

    Rows are ordered by the sequence fields, then by the sequence number.
    """
    numbers = rows.column(SEQUENCE_NUMBER).to_numpy()
    if not rules.sequence_fields:
        return sort_keys(rows, key_columns, numbers)
    columns = [rows.column(name) for name in rules.sequence_fields]
    codes = sequence_codes(columns, descending=rules.descending)
    order = stable_order([*codes, numbers])
    ages = np.empty(len(order), np.int64)
    ages[order] = np.arange(len(order))
    return sort_keys(rows, key_columns, ages)
