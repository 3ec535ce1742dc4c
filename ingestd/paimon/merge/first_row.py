"""The merge engine `first-row`: the oldest row of a key.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/first-row/#first-row
"""

from collections.abc import Sequence

import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.key_order import Positions, SortedKeys
from ingestd.paimon.merge.merged_rows import MergeInput
from ingestd.paimon.spec.merge_rules import MergeRules


def merge(
    rows: pa.Table, key_columns: Sequence[str], keys: SortedKeys, rules: MergeRules
) -> pa.Table:
    """Return the oldest row of each key, ordered by key; a key whose rows are all ignored has none.

    Raises UnsupportedError for a deletion among several rows of a key unless deletions are ignored.
    """
    return rows.take(pick(rows, keys, rules))


def pick(rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> Positions:
    """Return the positions of the rows of `merge`; only system columns of `rows` are read.

    Raises what `merge` raises.
    """
    given = MergeInput.of(rows, keys, rules)
    several = ~given.single[given.events.key]
    if bool((given.retracts & several & ~given.ignored).any()):
        raise UnsupportedError(
            "'merge-engine' = 'first-row' takes no deleted rows; set 'ignore-delete' = 'true'"
        )
    first = given.events.first(~given.ignored)
    return given.events.rows[first[first >= 0]]
