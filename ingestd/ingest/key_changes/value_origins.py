"""Trace the values that key-changing updates left out back to the rows that have them.

If an update changes the key of a row, the source sends a delete of the old key and an insert of the
new key, both with the position of the update in its log. PostgreSQL leaves unchanged large values
out of the insert. Such a value is that of the old key just before the delete. The row of the old
key can lack it, too: an update left it out, or the key had changed before.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestd.ingest.values.row_groups import group_rows, pair_order
from ingestd.paimon.merge.row_kinds import Kinds
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.row_selection import Indices, Mask

ABSENT = -1


@dataclass(frozen=True, slots=True)
class RowHistory:
    """n rows of one table in the order of their changes, each array of shape (n,).

    `sources` are the numbers of their source tables, which are different tables if they are in
    different topics, and `keys` those of their primary keys, which differ between source tables.
    `positions` are positions in the log of the source, -1 if unknown.
    """

    keys: Indices
    kinds: Kinds
    sources: Indices
    positions: Indices


@dataclass(frozen=True, slots=True)
class ValueOrigins:
    """Where the values of a column come from, each array of shape (n,) with indices of rows.

    `rows` are the rows that have the value, and `table_keys` the rows whose keys have it in the
    table, as of the beginning of the history. `unpaired` are inserts whose delete is not in the
    history. An index is `ABSENT` if another array has one, or if no row has the value.
    """

    rows: Indices
    table_keys: Indices
    unpaired: Indices

    def of(self, rows: Indices) -> "ValueOrigins":
        """Return the origins of the values of these rows; a row that is `ABSENT` has none."""
        taken = [
            np.append(array, ABSENT)[rows] for array in (self.rows, self.table_keys, self.unpaired)
        ]
        return ValueOrigins(*taken)


def deletes_of_inserts(history: RowHistory) -> Indices:
    """Return, for each row, the delete of the same update, or `ABSENT` if it is not known.

    If a source sent the changes again, this is the first delete: the row of the old key was as the
    update found it only before this one. Deletes of several keys at one position are not of one
    update, which a source should not send, so they have no insert.
    """
    known = np.flatnonzero(history.positions >= 0)
    columns = {"source": history.sources[known], "position": history.positions[known]}
    updates = group_rows(pa.table(columns), list(columns))
    deletes = np.flatnonzero(history.kinds[known] == RowKind.DELETE)[::-1]
    first = np.full(updates.count, ABSENT, np.int64)
    first[updates.codes[deletes]] = known[deletes]
    keys = history.keys[known[deletes]]
    ambiguous = updates.codes[deletes][keys != history.keys[first[updates.codes[deletes]]]]
    first[ambiguous] = ABSENT
    paired = np.full(len(history.kinds), ABSENT, np.int64)
    paired[known] = first[updates.codes]
    return paired


def preceding_rows(history: RowHistory) -> Indices:
    """Return, for each row, the newest earlier row of its key, or `ABSENT`.

    Rows before updates are not rows of a key.
    """
    count = len(history.kinds)
    order = pair_order(history.keys, np.arange(count))
    counts = history.kinds[order] != RowKind.UPDATE_BEFORE
    newest = np.maximum.accumulate(np.where(counts, np.arange(count), ABSENT))
    before = np.concatenate([[ABSENT], newest[:-1]]) if count else newest
    starts = np.searchsorted(history.keys[order], history.keys[order], side="left")
    preceding = np.empty(count, np.int64)
    preceding[order] = np.where(before >= starts, order[before], ABSENT)
    return preceding


def value_origins(
    history: RowHistory, left_out: Mask, deletes: Indices, preceding: Indices
) -> ValueOrigins:
    """Return where the values of a column come from; `left_out` (n,) marks the omitted values.

    `deletes` and `preceding` are those of `deletes_of_inserts` and `preceding_rows`.
    """
    count, kinds = len(history.kinds), history.kinds
    here = np.arange(count)
    # Node i is the value in row i, and node count + i the value of its key before row i.
    inherits = left_out & ((kinds == RowKind.INSERT) | (kinds == RowKind.UPDATE_AFTER))
    updated = inherits & (kinds == RowKind.UPDATE_AFTER)
    following = np.concatenate([here, np.where(preceding >= 0, preceding, count + here)])
    following[:count][updated] = count + here[updated]
    paired = inherits & (deletes >= 0)
    following[:count][paired] = count + deletes[paired]
    is_end = following == np.arange(2 * count)
    for _ in range((2 * count).bit_length()):
        following = following[following]
    last = following[:count]
    ends = is_end[last]
    in_history = ends & (last < count)
    row = np.where(in_history, last, 0)
    is_insert = in_history & inherits[row]
    has_value = in_history & ~inherits[row] & (kinds[row] != RowKind.DELETE)
    return ValueOrigins(
        rows=np.where(has_value, last, ABSENT),
        table_keys=np.where(ends & ~in_history, last - count, ABSENT),
        unpaired=np.where(is_insert, last, ABSENT),
    )
