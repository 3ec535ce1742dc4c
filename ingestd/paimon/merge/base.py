"""The merge of a table's rows: they are sorted, then merged by the merge engine.

A merge engine takes rows in any order and returns one row per key. `deduplicate` and `first-row`
pick one of the rows of a key; the other engines compute a row and are modules of this package.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/first-row/#first-row
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

import numpy as np
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.key_order import Positions, SortedKeys, sort_keys, stable_order
from ingestd.paimon.merge.merged_rows import MergeInput
from ingestd.paimon.merge.value_codes import sequence_codes
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER
from ingestd.paimon.spec.merge_rules import MergeRules
from ingestd.paimon.spec.row_selection import take_rows

MERGE_ENGINES: Mapping[str, str] = {
    "aggregation": "ingestd.paimon.merge.aggregation",
    "partial-update": "ingestd.paimon.merge.partial_update",
}
"""The module of each merge engine that computes rows; it implements `MergeEngine`."""


class MergeEngine(Protocol):
    """A merge engine that computes rows, implemented by a module of this package.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
    """

    def merge(self, rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> pa.Table:
        """Return one row per key, ordered by key; `keys` has the order of the input rows.

        A key with a single row keeps it unchanged, unless `rules.merges_single` is set. Other rows
        are of kind INSERT, or DELETE if the newest row of the key deletes the whole row or, with
        `partial-update`, if no row of the key adds values. Raises UnsupportedError for a deletion
        that the engine does not support.
        """
        ...


def merge_rows(
    rows: pa.Table, key_columns: Sequence[str], rules: MergeRules, *, oldest_first: bool = False
) -> pa.Table:
    """Return one row per key, ordered by key.

    `rows` has the system columns, the key columns, the columns of `rules.columns_beside`, and any
    other columns of the table. With `oldest_first`, the rows of a key are in the order of their
    sequence numbers; the numbers are then read only if `rules` has sequence fields. If all rows of
    a key are ignored, `deduplicate` and `first-row` return no row for the key, and `partial-update`
    returns a deletion; `aggregation` ignores no rows. Raises UnsupportedError for an unknown merge
    engine, or a deletion that the engine does not support.
    """
    if not rows.num_rows:
        return rows
    return merge_sorted(rows, _keys(rows, key_columns, rules, oldest_first), rules)


def merge_sorted(rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> pa.Table:
    """Merge `rows`, at least one and in any order, to one row per key, ordered by key.

    `keys` is their order: by key, and within a key from the oldest row to the newest.

    Raises UnsupportedError for an unknown merge engine, or a deletion that the engine does not
    support.
    """
    pick = _PICKS.get(rules.engine)
    if pick is not None:
        return take_rows(rows, pick(rows, keys, rules))
    module = MERGE_ENGINES.get(rules.engine)
    if module is None:
        known = sorted((*MERGE_ENGINES, *_PICKS))
        raise UnsupportedError(
            f"'merge-engine' = '{rules.engine}' is not supported; only {known} are"
        )
    return cast("MergeEngine", import_module(module)).merge(rows, keys, rules)


def picks_rows(rules: MergeRules) -> bool:
    """Return whether the merge engine returns input rows unchanged (`deduplicate`, `first-row`).

    Other engines compute rows.
    """
    return rules.engine in _PICKS


def picked_rows(
    rows: pa.Table, key_columns: Sequence[str], rules: MergeRules, *, oldest_first: bool
) -> Positions:
    """Return the positions of the rows that `merge_rows` returns, for an engine that picks rows.

    `rows` has the key columns, the sequence fields and the system columns. With `oldest_first`, the
    rows of a key are in the order of their sequence numbers; the numbers are then read only if
    `rules` has sequence fields. Raises ValueError for an engine that computes rows,
    UnsupportedError for a deletion that the engine does not support.
    """
    if not picks_rows(rules):
        raise ValueError(f"the merge engine {rules.engine} does not return rows unchanged")
    if not rows.num_rows:
        return np.empty(0, np.int64)
    return _PICKS[rules.engine](rows, _keys(rows, key_columns, rules, oldest_first), rules)


def _newest(rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> Positions:
    """Return the position of the newest row of each key, which may be a deletion.

    If the rules ignore deletions, it is the newest row that is not a deletion; a key without such a
    row is left out. Of the columns only row kinds and levels are read.
    """
    if not rules.ignore_delete:
        return keys.order[np.flatnonzero(keys.last)]
    merge_input = MergeInput.of(rows, keys, rules)
    newest = merge_input.events.last(~merge_input.ignored)
    return merge_input.events.rows[newest[newest >= 0]]


def _oldest(rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> Positions:
    """Return the position of the oldest row of each key; only row kinds and levels are read.

    Ignored rows do not count; a key without other rows is left out. Raises UnsupportedError for a
    deletion among several rows of a key unless deletions are ignored.
    """
    merge_input = MergeInput.of(rows, keys, rules)
    several = ~merge_input.single[merge_input.events.key]
    if bool((merge_input.retracts & several & ~merge_input.ignored).any()):
        raise UnsupportedError(
            "'merge-engine' = 'first-row' takes no deleted rows; set 'ignore-delete' = 'true'"
        )
    oldest = merge_input.events.first(~merge_input.ignored)
    return merge_input.events.rows[oldest[oldest >= 0]]


_PICKS: Mapping[str, Callable[[pa.Table, SortedKeys, MergeRules], Positions]] = {
    "deduplicate": _newest,
    "first-row": _oldest,
}
"""Merge engines that return some of their input rows unchanged."""


def _keys(
    rows: pa.Table, key_columns: Sequence[str], rules: MergeRules, oldest_first: bool
) -> SortedKeys:
    if oldest_first and not rules.sequence_fields:
        return sort_keys(rows, key_columns)
    return ordered_rows(rows, key_columns, rules)


def ordered_rows(rows: pa.Table, key_columns: Sequence[str], rules: MergeRules) -> SortedKeys:
    """Return the order of rows by key, and within a key from oldest to newest.

    The rows of a key are ordered by the sequence fields of `rules`, then by the sequence number.
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
