"""Find the values that inserts of key-changing updates lack.

If an update changes the key of a row, the source sends a delete of the old key and an insert of the
new key, both with the position of the update in its log. PostgreSQL leaves unchanged large values
out of the insert. Such a value equals the value that the row of the old key had just before the
delete. The row of the old key can lack it, too: an update left it out, or the key had changed
before.

Records of the old key can be in any partition of the topic, and in this batch, an earlier or a
later batch. So records are read again, in every partition, from the positions of an earlier state
of the table up to the update. They are read twice: first only their keys are used, to trace each
value to the row, or the table, that has it, and then the rows that have values are read.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.ingest.key_changes.table_history import (
    BaseSnapshot,
    ReadRows,
    TableHistory,
    base_before,
)
from ingestd.ingest.rows.arrival import arrival_ranks, concatenated
from ingestd.ingest.rows.blobs import (
    KIND,
    OFFSET,
    POSITION,
    UNAVAILABLE_PREFIX,
    BlobOrigin,
    RowBlob,
)
from ingestd.ingest.rows.fill_unavailable import indices_of
from ingestd.ingest.rows.omitted_values import kept_deletes, omitted
from ingestd.ingest.settings.context import BatchContext
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.kafka.record_log import RecordLog
from ingestd.paimon.merge.row_kinds import Kinds
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.grouping import group_rows, pair_order
from ingestd.paimon.spec.row_selection import Indices, Mask
from ingestd.paimon.table.read.scan_plan import with_level_0
from ingestd.paimon.table.read.table_read import read_table

_ABSENT = -1


@dataclass(frozen=True, slots=True)
class RowHistory:
    """n rows of one table in the order of their changes, each array of shape (n,).

    `sources` numbers the source tables of the rows; a source table in two topics counts as two.
    `keys` numbers their primary keys; equal keys of different source tables have different numbers.
    `positions` are positions in the log of the source, -1 if unknown.
    """

    keys: Indices
    kinds: Kinds
    sources: Indices
    positions: Indices


@dataclass(frozen=True, slots=True)
class ValueOrigins:
    """The origins of the values of a column, for n rows; each array (n,) has indices of rows.

    A value has at most one origin, and the other arrays have -1 for it. `rows` has the index of the
    row that has the value; `table_keys`, the index of a row whose key had the value in the table at
    the beginning of the history; `unpaired`, the index of an insert whose delete is not in the
    history, so that the value cannot be traced further.
    """

    rows: Indices
    table_keys: Indices
    unpaired: Indices

    def of(self, rows: Indices) -> "ValueOrigins":
        """Return the origins of the values of the rows at these indices; shape (indices,).

        For the index -1, there is no origin: all three arrays have -1.
        """
        taken = [
            np.append(array, _ABSENT)[rows] for array in (self.rows, self.table_keys, self.unpaired)
        ]
        return ValueOrigins(*taken)


def deletes_of_inserts(history: RowHistory) -> Indices:
    """Return, for each row, the index of the delete of the same update, or -1 if unknown.

    Rows of a source table at the same position are of the same update. If the source sent its
    changes again, the first delete is returned: only before that delete does the row of the old key
    have the value that the update kept. If a position has deletes of several keys, which a source
    should not send, no delete is returned.
    """
    known = np.flatnonzero(history.positions >= 0)
    columns = {"source": history.sources[known], "position": history.positions[known]}
    updates = group_rows(pa.table(columns), list(columns))
    deletes = np.flatnonzero(history.kinds[known] == RowKind.DELETE)[::-1]
    first = np.full(updates.count, _ABSENT, np.int64)
    first[updates.codes[deletes]] = known[deletes]
    keys = history.keys[known[deletes]]
    ambiguous = updates.codes[deletes][keys != history.keys[first[updates.codes[deletes]]]]
    first[ambiguous] = _ABSENT
    paired = np.full(len(history.kinds), _ABSENT, np.int64)
    paired[known] = first[updates.codes]
    return paired


def preceding_rows(history: RowHistory) -> Indices:
    """Return, for each row, the index of the newest earlier row of its key, or -1 if there is none.

    Before images are never returned.
    """
    count = len(history.kinds)
    order = pair_order(history.keys, np.arange(count))
    counts = history.kinds[order] != RowKind.UPDATE_BEFORE
    newest = np.maximum.accumulate(np.where(counts, np.arange(count), _ABSENT))
    before = np.concatenate([[_ABSENT], newest[:-1]]) if count else newest
    starts = np.searchsorted(history.keys[order], history.keys[order], side="left")
    preceding = np.empty(count, np.int64)
    preceding[order] = np.where(before >= starts, order[before], _ABSENT)
    return preceding


def value_origins(
    history: RowHistory, left_out: Mask, deletes: Indices, preceding: Indices
) -> ValueOrigins:
    """Find, for each row of one column, the row or the key in the table from which its value comes.

    `left_out` (n,) is the mask of omitted values. `deletes` (n,) has the index of the delete of the
    same update, and `preceding` (n,) the index of the newest earlier row of the same key; -1 if
    there is none.
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
        rows=np.where(has_value, last, _ABSENT),
        table_keys=np.where(ends & ~in_history, last - count, _ABSENT),
        unpaired=np.where(is_insert, last, _ABSENT),
    )


MAX_RECORDS = 2_000_000
"""Maximum number of rows that are read again; each takes about 100 bytes of memory."""
WAIT_SECONDS = 5.0
"""Maximum time to wait until the delete of an update appears in the log after its insert."""
_PAUSE_SECONDS = 0.1
_LOG = "ingestd:log"
"""The number of a topic partition, which identifies a row together with its offset and key."""
_SOURCE = "ingestd:source"
"""The number of a source table; a row is identified by it and its key."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Inserts of one topic partition whose omitted values are searched.

    `rows` have kind, offset, position, key and the columns of the values.
    """

    where: SourcePartition
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class FoundValues:
    """The values found for one column; `indices` (n,) has the index in `values` for each insert.

    An index is -1 if no value was found.
    """

    values: Values
    indices: Indices


def find_values(
    context: BatchContext,
    identifier: str,
    columns: Sequence[str],
    wanted: Sequence[Wanted],
    log: RecordLog,
) -> list[Mapping[str, FoundValues]]:
    """Return the values found for the omitted values of `columns`: for each of `wanted`, by column.

    `log` reads records again. The mappings are empty if the required snapshots have expired, or if
    more than `MAX_RECORDS` rows would be read. Raises the errors of reading the source and the
    table.
    """
    search = _Search(context, identifier, columns, wanted, log)
    found = search.values()
    borders = np.cumsum([each.rows.num_rows for each in wanted])[:-1]
    split = {name: np.split(values.indices, borders) for name, values in found.items()}
    return [
        {name: FoundValues(values.values, split[name][number]) for name, values in found.items()}
        for number in range(len(wanted))
    ]


@dataclass(frozen=True, slots=True)
class _Trace:
    """The origins of the values of n inserts.

    `rows` identify the rows that were read again. `origins` has, for each column, arrays (n,) with
    indices of these rows. `unpaired` are the positions of inserts whose delete was not read, or
    could be in `base`.
    """

    base: BaseSnapshot
    history: TableHistory
    rows: pa.Table
    origins: Mapping[str, ValueOrigins]
    unpaired: Indices


class _Search:
    """The search for the values of some columns of a table."""

    def __init__(
        self,
        context: BatchContext,
        identifier: str,
        columns: Sequence[str],
        wanted: Sequence[Wanted],
        log: RecordLog,
    ) -> None:
        self._context, self._identifier, self._log = context, identifier, log
        self._table = context.tables[identifier].table
        self._keys = list(self._table.schema.primary_keys)
        self._identity = [_LOG, OFFSET, *self._keys]
        self._columns = list(columns)
        self._numbers: dict[SourcePartition, int] = {}
        self._ends: dict[SourcePartition, int] = {}
        for each in wanted:
            end = int(each.rows.column(OFFSET).to_numpy().max()) + 1
            self._ends[each.where] = max(end, self._ends.get(each.where, 0))
        inserts = [self._numbered(each.where, each.rows) for each in wanted]
        self._inserts = pa.concat_tables(inserts)
        self._positions: Indices = self._inserts.column(POSITION).to_numpy()

    def _numbered(self, where: SourcePartition, rows: pa.Table) -> pa.Table:
        number = self._numbers.setdefault(where, len(self._numbers))
        return rows.append_column(_LOG, pa.array(np.full(rows.num_rows, number)))

    def values(self) -> dict[str, FoundValues]:
        """Return the values of each column, with indices for all inserts; empty without a trace."""
        trace = self._traced()
        if trace is None:
            return {}
        read, in_read = self._read_values(trace)
        looked_up, in_table = self._table_values(trace)
        found: dict[str, FoundValues] = {}
        for name, origins in trace.origins.items():
            column: Values = read.column(name)
            chunks = [*column.chunks, *looked_up.column(name).cast(column.type).chunks]
            second = _at(in_table, origins.table_keys)
            second = np.where(second >= 0, read.num_rows + second, _ABSENT)
            indices = np.maximum(_at(in_read, origins.rows), second)
            found[name] = FoundValues(pa.chunked_array(chunks, column.type), indices)
        return found

    def _traced(self) -> _Trace | None:
        """Return the trace from a state that is old enough, or else from the oldest usable state.

        Returns None if the first state has expired already, or has too many rows after it.
        """
        trace, first = None, int(self._positions.min())
        while (base := base_before(self._context, self._identifier, first)) is not None:
            longer = self._trace_from(base)
            if longer is None:
                break
            trace = longer
            older = trace.unpaired[trace.unpaired <= base.position]
            if not len(older):
                break
            first = int(older.min())
        return trace

    def _trace_from(self, base: BaseSnapshot) -> _Trace | None:
        """Return the trace of all rows since a state, or None if these are too many.

        Waits up to `WAIT_SECONDS` for deletes that are not in the log yet.
        """
        history = TableHistory(self._context, self._identifier, base, self._log)
        topics = dict.fromkeys((where.source, where.topic) for where in self._ends)
        last, deadline = int(self._positions.max()), time.monotonic() + WAIT_SECONDS
        reads: list[ReadRows] = []
        while True:
            for source, topic in topics:
                for read in history.read_on(source, topic, last, self._ends):
                    if history.records > MAX_RECORDS:
                        return None
                    reads.append(replace(read, rows=self._without_values(read.rows)))
            trace = self._trace(base, history, reads)
            missing = bool((trace.unpaired > base.position).any())
            if not missing or history.passed(last) or time.monotonic() > deadline:
                return trace
            time.sleep(_PAUSE_SECONDS)

    def _without_values(self, rows: pa.Table) -> pa.Table:
        columns: dict[str, Values] = {}
        columns |= {name: rows.column(name) for name in (OFFSET, *self._keys)}
        kinds = rows.column(KIND).to_numpy()
        columns[KIND] = pa.array(np.where(kept_deletes(rows), np.int8(RowKind.DELETE), kinds))
        unknown = pa.array(np.full(rows.num_rows, UNKNOWN_POSITION))
        has_position = POSITION in rows.column_names
        columns[POSITION] = rows.column(POSITION) if has_position else unknown
        marks = {UNAVAILABLE_PREFIX + name: omitted(rows, name) for name in self._columns}
        return pa.table({**columns, **marks})

    def _trace(
        self, base: BaseSnapshot, history: TableHistory, reads: Sequence[ReadRows]
    ) -> _Trace:
        ranks = arrival_ranks(
            [RowBlob(BlobOrigin(self._identifier, *read.where, 0), read.rows) for read in reads]
        )
        order = np.argsort(concatenated(ranks))
        nothing = self._without_values(self._inserts.slice(0, 0))
        read_rows = [self._numbered(where, nothing) for where in self._ends]
        read_rows += [self._numbered(read.where, read.rows) for read in reads]
        rows = pa.concat_tables(read_rows, promote_options="default").take(order)
        changes = self._changes(rows, reads, order)
        inserts = np.flatnonzero(changes.kinds == RowKind.INSERT)
        identities, wanted = rows.select(self._identity), self._inserts.select(self._identity)
        at = _at(inserts, indices_of(identities.take(inserts), wanted))
        deletes, preceding = deletes_of_inserts(changes), preceding_rows(changes)
        # The base can contain the delete of such an update; one that was read was sent again.
        deletes[changes.positions <= base.position] = _ABSENT
        origins = {
            name: value_origins(changes, omitted(rows, name), deletes, preceding).of(at)
            for name in self._columns
        }
        unpaired = _used(each.unpaired for each in origins.values())
        return _Trace(base, history, identities, origins, changes.positions[unpaired])

    def _changes(self, rows: pa.Table, reads: Sequence[ReadRows], order: Indices) -> RowHistory:
        origins = [(read.where.topic, read.source_table) for read in reads]
        numbers = {origin: number for number, origin in enumerate(origins)}
        in_order = concatenated(
            [
                np.full(read.rows.num_rows, numbers[origin])
                for read, origin in zip(reads, origins, strict=True)
            ]
        )[order]
        rows = rows.append_column(_SOURCE, pa.array(in_order))
        return RowHistory(
            keys=group_rows(rows, [_SOURCE, *self._keys]).codes,
            kinds=rows.column(KIND).to_numpy(),
            sources=in_order,
            positions=rows.column(POSITION).to_numpy(),
        )

    def _read_values(self, trace: _Trace) -> tuple[pa.Table, Indices]:
        """Return the rows that have values, and an array with their index for each traced row.

        The index is `_ABSENT` for traced rows whose values are not needed or not found.
        """
        needed = _used(origins.rows for origins in trace.origins.values())
        wanted = trace.rows.take(needed)
        logs, offsets = wanted.column(_LOG).to_numpy(), wanted.column(OFFSET).to_numpy()
        picked = [OFFSET, *self._keys, *self._columns]
        parts = [self._inserts.select([*picked, _LOG]).slice(0, 0)]
        for where, number in self._numbers.items():
            mine = offsets[logs == number]
            if not len(mine):
                continue
            for read in trace.history.read(where, int(mine.min()), int(mine.max()) + 1):
                kinds = read.rows.column(KIND).to_numpy()
                has_value = np.isin(kinds, (RowKind.INSERT, RowKind.UPDATE_AFTER))
                has_value &= np.isin(read.rows.column(OFFSET).to_numpy(), mine)
                parts.append(self._numbered(where, read.rows.select(picked).filter(has_value)))
        rows = pa.concat_tables(parts, promote_options="default")
        at = np.full(trace.rows.num_rows, _ABSENT, np.int64)
        at[needed] = indices_of(rows.select(self._identity), wanted)
        return rows, at

    def _table_values(self, trace: _Trace) -> tuple[pa.Table, Indices]:
        """Return rows of the table, and an array with the index of the key of each traced row.

        The index is `_ABSENT` for keys that are not needed or not found.
        """
        at = np.full(trace.rows.num_rows, _ABSENT, np.int64)
        needed = _used(origins.table_keys for origins in trace.origins.values())
        keys = trace.rows.select(self._keys).take(needed)
        if not len(needed) or trace.base.snapshot_id is None or trace.history.has_gap:
            return self._inserts.slice(0, 0), at
        rows = read_table(
            with_level_0(self._table),
            snapshot_id=trace.base.snapshot_id,
            columns=[*self._keys, *(name for name in self._columns if name not in self._keys)],
            key_filter=keys.take(group_rows(keys, self._keys).first),
        )
        at[needed] = indices_of(rows.select(self._keys), keys)
        return rows, at


def _at(values: Indices, indices: Indices) -> Indices:
    """Return the values at some indices, or `_ABSENT` for an index that is `_ABSENT`."""
    if not len(values):
        return np.full(len(indices), _ABSENT, np.int64)
    return np.where(indices >= 0, values[indices], _ABSENT)


def _used(arrays: Iterable[Indices]) -> Indices:
    """Return the distinct indices in the arrays, ascending and without `_ABSENT`."""
    indices = np.unique(concatenated(list(arrays)))
    return indices[indices >= 0]
