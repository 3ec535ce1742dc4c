"""The merge engine `deduplicate`: the newest row of a key, of any row kind."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.key_order import Positions, SortedKeys, sort_keys
from ingestd.paimon.merge.merged_rows import MergeInput
from ingestd.paimon.spec.merge_rules import MergeRules
from ingestd.paimon.spec.row_picking import take_rows


def merge(
    rows: pa.Table,
    key_columns: Sequence[str],
    keys: SortedKeys | None = None,
    rules: MergeRules | None = None,
) -> pa.Table:
    """Return the newest row of each key, ordered by key.

    Without `keys`, the rows are in order from oldest to newest. If the rules ignore deletions, a
    key has its newest row that is no deletion, or none if it has only deletions.
    """
    keys = sort_keys(rows, key_columns) if keys is None else keys
    return take_rows(rows, pick(rows, keys, rules))


def pick(rows: pa.Table, keys: SortedKeys, rules: MergeRules | None) -> Positions:
    """Return the positions of the rows of `merge`; only system columns of `rows` are read."""
    if rules is None or not rules.ignore_delete:
        return keys.order[np.flatnonzero(keys.last)]
    given = MergeInput.of(rows, keys, rules)
    newest = given.events.last(~given.ignored)
    return given.events.rows[newest[newest >= 0]]
