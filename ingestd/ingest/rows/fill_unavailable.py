"""Fill unchanged values that the source omitted (Debezium's unavailable-value placeholder).

The value is taken from an earlier row with the same key in the batch, or else from the table. In
tables with `sequence.field`, this field determines which rows are earlier, and the row in the table
may be newer than some rows of the batch. If no earlier row exists, the value becomes null and is
counted, because the placeholder must never be stored as a value. If the key itself changed,
`ingest.key_changes` has already taken the value from the row of the old key. A kept delete
(`kept_deletes`) omits all values. If no earlier row exists, it is written as a delete, or dropped
if the table takes no deletes. A delete that omits the values of `sequence.field` gets those of the
newest row of its key that arrived before it.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.ingest.rows.blobs import KIND
from ingestd.ingest.rows.omitted_values import (
    kept_deletes,
    omission_marks,
    omitted,
    omitted_columns,
)
from ingestd.ingest.settings.context import TableContext
from ingestd.paimon.merge.key_order import stable_order
from ingestd.paimon.merge.row_kinds import retraction_refusal
from ingestd.paimon.merge.value_codes import dense_ranks, sequence_codes
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.grouping import Grouping, group_rows, pair_order
from ingestd.paimon.spec.merge_rules import MergeRules
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.row_selection import Indices, Mask
from ingestd.paimon.table.read.scan_plan import with_level_0
from ingestd.paimon.table.read.table_read import read_table

PartitionLookup = Callable[[pa.Table], frozenset[bytes]]
"""Returns the partitions, as serialized rows, that contain the given keys."""

_ASK_TABLE = -1
_KEEP = -2
_NOT_KNOWN = -3


def fill_unavailable(
    target: TableContext, rows: pa.Table, partition_lookup: PartitionLookup | None
) -> tuple[pa.Table, int]:
    """Replace omitted values by older values; return the rows, and the number of values not found.

    An older value is from an earlier row of the same key in `rows`, or from the row in the table; a
    value that is not found is null. `rows` must be in order of arrival. The columns that mark
    omitted values are removed. Deletes that are kept as updates, but have no older row, become
    deletes or are dropped. `partition_lookup` finds the partitions of keys that do not include the
    partition columns (None: not needed). Raises UnsupportedError if values have to be looked up in
    a table in postpone bucket mode, and FormatError for a damaged file of the table.
    """
    groups = group_rows(rows, target.table.schema.primary_keys)
    plain = _with_sequences(target, rows, groups).drop_columns(omission_marks(rows))
    kinds, rules = plain.column(KIND).to_numpy(), target.table.merge_rules
    ages = _ages(plain, rules)
    row_origin = _origins(groups, kinds, kept_deletes(rows), ages)
    origins: dict[str, Indices] = {}
    for name in omitted_columns(rows):
        if rules.keeps_older(name):
            # The merge engine keeps the older value if a value is null.
            continue
        of_column = np.where(_has_column(plain, name, rules), kinds, np.int8(RowKind.UPDATE_BEFORE))
        origins[name] = _origins(groups, of_column, omitted(rows, name), ages)
    asking = np.zeros(plain.num_rows, np.bool_)
    for origin in (row_origin, *origins.values()):
        # With a sequence field, the row in the table may be newer than rows of the batch.
        asking |= origin != _KEEP if rules.sequence_fields else origin == _ASK_TABLE
    old = _OldRows(target, plain, asking, list(origins), partition_lookup)
    missing = old.missing(old.valid(row_origin, kinds))
    unknown = 0
    for name, batch_origin in origins.items():
        origin = old.valid(batch_origin, kinds)
        origin[missing] = _KEEP
        position = plain.column_names.index(name)
        plain = plain.set_column(position, plain.field(name), old.fill(name, origin))
        unknown += int(np.count_nonzero(old.missing(origin)))
    return (_as_deletes(plain, missing, rules) if missing.any() else plain), unknown


def _as_deletes(rows: pa.Table, missing: Mask, rules: MergeRules) -> pa.Table:
    """Turn the rows in a mask into deletes, or drop them if the table does not apply deletes."""
    if rules.ignore_delete or retraction_refusal(rules) is not None:
        return rows.filter(~missing)
    kinds = np.where(missing, np.int8(RowKind.DELETE), rows.column(KIND).to_numpy())
    return rows.set_column(rows.column_names.index(KIND), KIND, pa.array(kinds))


def _with_sequences(target: TableContext, rows: pa.Table, groups: Grouping) -> pa.Table:
    """Return the rows with values in the sequence fields of the deletes that omit them.

    The values are those of the newest row of the key, in the table or among the rows before the
    delete, so that the delete is newer than this row. Without such a row they stay null. `groups`
    are the rows by key.
    """
    rules, kinds = target.table.merge_rules, rows.column(KIND).to_numpy()
    fields = list(rules.sequence_fields)
    asking = kinds == RowKind.DELETE
    for name in fields:
        asking &= omitted(rows, name)
    if not fields or not asking.any():
        return rows
    old = _OldRows(target, rows, asking, fields, None)
    donors, ranks, reached = old.sequences(rows.select(fields))
    order = pair_order(groups.codes, np.arange(rows.num_rows))
    span = len(ranks) + 1
    # The largest rank so far within each group, because the groups of later rows are larger.
    newest = np.maximum.accumulate(groups.codes[order] * span + reached[order]) % span
    donor_of_rank = np.full(span, -1, np.int64)
    donor_of_rank[ranks] = np.arange(len(ranks))
    source = np.arange(rows.num_rows) + donors.num_rows - rows.num_rows
    source[order] = np.where(asking[order], donor_of_rank[newest], source[order])
    for name in fields:
        position = rows.column_names.index(name)
        values = donors.column(name).take(source)
        rows = rows.set_column(position, rows.field(name), values)
    return rows


def _ages(rows: pa.Table, rules: MergeRules) -> Indices:
    """Return the rank of each row from oldest to newest; ties keep row order; shape (rows,)."""
    if not rules.sequence_fields:
        return np.arange(rows.num_rows)
    columns = [rows.column(name) for name in rules.sequence_fields]
    order = stable_order(sequence_codes(columns, descending=rules.descending))
    ages = np.empty(rows.num_rows, np.int64)
    ages[order] = np.arange(rows.num_rows)
    return ages


def _has_column(rows: pa.Table, column: str, rules: MergeRules) -> Mask:
    """Return a mask (rows,) of the rows that can change a column.

    If the column belongs to a sequence group, a row with NULL in all sequence fields of the group,
    such as a row of another source table, does not change the column.
    """
    has_column = np.ones(rows.num_rows, np.bool_)
    for group in rules.groups:
        if column in group.columns:
            nulls = [np.asarray(rows.column(name).is_null()) for name in group.sequence]
            has_column &= ~np.logical_and.reduce(nulls)
    return has_column


def _origins(
    groups: Grouping, kinds: npt.NDArray[np.int8], left_out: Mask, ages: Indices
) -> Indices:
    """Return the index of the row from which each row takes its value, or a marker; shape (rows,).

    That row is the newest earlier row with the same key that has a value or is a delete. The marker
    is _KEEP for a row that has its value or needs none, such as a delete, and _ASK_TABLE if the
    batch has no such earlier row.
    """
    count = len(kinds)
    order = pair_order(groups.codes, ages)
    codes, kind = groups.codes[order], kinds[order]
    is_value = (kind == RowKind.INSERT) | (kind == RowKind.UPDATE_AFTER)
    ends_row = kind == RowKind.DELETE
    settles = (is_value & ~left_out[order]) | ends_row
    here = np.arange(count)
    last = np.maximum.accumulate(np.where(settles, here, -1)) if count else here
    starts = np.searchsorted(codes, codes, side="left")
    taken = np.where(last >= starts, order[last], _ASK_TABLE)
    taken[~is_value | ~left_out[order]] = _KEEP
    origins = np.empty(count, np.int64)
    origins[order] = taken
    return origins


class _OldRows:
    """The rows in the table for keys that need an older value, read at most once."""

    def __init__(
        self,
        target: TableContext,
        rows: pa.Table,
        asking: Mask,
        columns: list[str],
        partition_lookup: PartitionLookup | None,
    ) -> None:
        self._rows = rows
        self._table_rows: pa.Table | None = None
        self._at: Indices = np.full(rows.num_rows, -1, np.int64)
        self._rules = target.table.merge_rules
        if bool(asking.any()) and bucket_mode(target.table.schema) is BucketMode.POSTPONE:
            raise UnsupportedError(
                f"table {target.identifier}: the source left out unchanged values of "
                f"{', '.join(columns)}, and with 'bucket' = '-2' the older ones cannot be looked "
                "up; move the table away and let it be created again with a number of buckets. "
                "Whole rows (REPLICA IDENTITY FULL) help later: the topic has these changes already"
            )
        if target.snapshot_id is None or not bool(asking.any()):
            return
        keys = list(target.table.schema.primary_keys)
        needed = dict.fromkeys((*keys, *columns, *self._rules.sequence_fields))
        asked = rows.select(keys).filter(asking)
        distinct_keys = asked.take(group_rows(asked, keys).first)
        self._table_rows = read_table(
            with_level_0(target.table),
            snapshot_id=target.snapshot_id,
            columns=list(needed),
            partition_filter=partition_lookup(distinct_keys) if partition_lookup else None,
            key_filter=distinct_keys,
        )
        self._at = indices_of(self._table_rows.select(keys), rows.select(keys))

    def sequences(self, own: pa.Table) -> tuple[pa.Table, Indices, Indices]:
        """Return the sequence fields of the rows in the table and of the rows `own`, with ranks.

        The first is a table of both, those of the table first. Then follow the rank of each of its
        rows, from the oldest to the newest, and for each row of `own` the larger one of its rank
        and that of its key in the table.
        """
        before = own.slice(0, 0)
        if self._table_rows is not None:
            before = self._table_rows.select(own.column_names).cast(own.schema)
        both = pa.concat_tables([before, own])
        codes = sequence_codes(both.columns, descending=self._rules.descending)
        ranks = dense_ranks(codes)
        reached = ranks[before.num_rows :].copy()
        known = self._at >= 0
        reached[known] = np.maximum(reached[known], ranks[self._at[known]])
        return both, ranks, reached

    def valid(self, origin: Indices, kinds: npt.NDArray[np.int8]) -> Indices:
        """Return `origin`, corrected for newer rows in the table and for deletes in the batch.

        A value is taken from the table if the row there is newer than the origin, and is not known
        if the origin is a delete. `kinds` are the row kinds of the batch.
        """
        origin = self._newer(origin)
        # After a delete, the row in the table is not a valid older value.
        deleted = kinds[np.maximum(origin, 0)] == RowKind.DELETE
        origin[(origin >= 0) & deleted] = _NOT_KNOWN
        return origin

    def _newer(self, origin: Indices) -> Indices:
        """Return `origin`, changed to refer to the table where the row in the table is newer."""
        fields, chosen = list(self._rules.sequence_fields), origin.copy()
        if self._table_rows is None or not fields:
            return chosen
        rows = self._rows.select(fields)
        both = pa.concat_tables([self._table_rows.select(fields).cast(rows.schema), rows])
        ages, first = _ages(both, self._rules), self._table_rows.num_rows
        known = np.flatnonzero((origin >= 0) & (self._at >= 0))
        older = ages[first + origin[known]] < ages[self._at[known]]
        chosen[known[older]] = _ASK_TABLE
        return chosen

    def missing(self, origin: Indices) -> Mask:
        """Return a mask (rows,) of the rows without an older value in the batch or the table."""
        absent = (origin == _ASK_TABLE) & (self._at < 0)
        missing: Mask = absent | (origin == _NOT_KNOWN)
        return missing

    def fill(self, name: str, origin: Indices) -> Values:
        """Return the column with each value taken from its origin, and null for missing values."""
        column = self._rows.column(name)
        count = len(column)
        source = np.where(origin >= 0, origin, np.arange(count))
        chunks: list[Values] = [*column.chunks, pa.nulls(1, column.type)]
        source[origin == _NOT_KNOWN] = count
        asking = origin == _ASK_TABLE
        # Rows of the table follow the null at `count`, to which index -1 (not found) refers.
        source[asking] = count + 1 + self._at[asking]
        if self._table_rows is not None:
            chunks += self._table_rows.column(name).cast(column.type).chunks
        together: Values = pa.chunked_array(chunks, column.type)
        return together.take(source)


def indices_of(table_keys: pa.Table, keys: pa.Table) -> Indices:
    """Return the index in `table_keys` of each of the `keys`, or -1; shape (keys,).

    The keys in `table_keys` must be distinct.
    """
    both = pa.concat_tables([table_keys.cast(keys.schema), keys])
    groups = group_rows(both, keys.column_names)
    row_of_group: Indices = np.full(groups.count, -1, np.int64)
    row_of_group[groups.codes[: table_keys.num_rows]] = np.arange(table_keys.num_rows)
    return row_of_group[groups.codes[table_keys.num_rows :]]
