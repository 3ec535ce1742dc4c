"""Merge rows by key in a compaction, with deletion vectors and the changelog.

Input and output are Arrow tables; no files are read or written. A lookup compaction also gets rows
of files that are not compacted themselves (`Source.picked` is false). These are the older rows of
the keys: they are merged, they may be marked in deletion vectors, and they are the old rows in the
changelog.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#compaction
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.base import merge_sorted, ordered_rows
from ingestd.paimon.merge.key_order import SortedKeys, sort_keys
from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.spec.merge_rules import MergeRules
from ingestd.paimon.spec.record_level_expire import ExpiredRows
from ingestd.paimon.spec.row_selection import Indices, Mask, retractions
from ingestd.paimon.table.compact.changelog_rows import KEY_NUMBER, ChangeRules, changes_between
from ingestd.paimon.table.compact.sorted_input import FILE, POSITION, Source

SOURCE = "_SOURCE"
"""Column with the number of each row's source."""

Block = Sequence[tuple[int, pa.Table]]


@dataclass(frozen=True, slots=True)
class RowRules:
    """The settings by which the rows of a compaction are merged.

    `merge` are the table's merge rules, `key_names` the columns of the trimmed primary key, and
    `columns` all columns of the table. `drops_deletes`: deletions are dropped. `looks_up`: older
    rows in higher levels are looked up. `keeps_older`: the older rows are merged; otherwise only
    their keys are read. `changes` are the settings of the changelog (None: no changelog).
    `top_level` is the level of the old rows in the changelog (None: any level). `expired` are the
    rows to ignore because of their age (None: rows do not expire).
    """

    merge: MergeRules
    key_names: tuple[str, ...]
    columns: tuple[str, ...]
    drops_deletes: bool
    looks_up: bool = False
    keeps_older: bool = True
    changes: ChangeRules | None = None
    top_level: int | None = None
    expired: ExpiredRows | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of merging a block.

    `rows` and `changes` have the columns of the table, the sequence number and the row kind.
    `changes` are the rows for the changelog (None: no changelog). `deleted` has the older rows that
    `rows` replace: the index of their source, the index of their file in the source, and their
    positions in the file.
    """

    rows: pa.Table
    changes: pa.Table | None = None
    deleted: tuple[tuple[int, int, Indices], ...] = ()


def compact_block(block: Block, sources: Sequence[Source], rules: RowRules) -> Compacted:
    """Merge the rows of a block by key, and compute its changelog.

    `block` is a list of pairs (index in `sources`, rows in key order). It must contain all rows
    that the sources have for its keys.
    """
    if rules.expired is not None:
        block = _unexpired(block, sources, rules.expired)
    if rules.looks_up:
        return _lookup(block, sources, rules)
    if rules.changes is not None:
        return _emit_changes(_assign_numbers(_joined(block), rules), rules, ())
    if len(block) == 1:
        return Compacted(_finish(block[0][1], rules))
    rows, keys = _ordered(block, rules)
    return Compacted(_finish(_merged(rows, keys, rules), rules))


def _unexpired(block: Block, sources: Sequence[Source], expired: ExpiredRows) -> Block:
    """Return the block without the expired rows of picked sources.

    If no row of picked sources is left, the result is one part without rows.
    """
    picked = [(number, expired.drop(rows)) for number, rows in block if sources[number].picked]
    others = [(number, rows) for number, rows in block if not sources[number].picked]
    left = [(number, rows) for number, rows in picked if rows.num_rows]
    return sorted([*left, *others], key=lambda part: part[0]) if left else picked[:1]


def _ordered(block: Block, rules: RowRules) -> tuple[pa.Table, SortedKeys]:
    """Return the rows of a block as one table, and their order by key and then by age.

    If the ranges of sequence numbers of the runs do not overlap, the runs are concatenated from the
    oldest to the newest, so that rows are sorted by key only.
    """
    parts = [rows_part for _, rows_part in block]
    spans = [_span(run_rows) for run_rows in parts]
    order = sorted(range(len(parts)), key=spans.__getitem__)
    rows = pa.concat_tables([parts[i] for i in order]).combine_chunks()
    ends = [spans[i] for i in order]
    apart = all(earlier[1] < later[0] for earlier, later in itertools.pairwise(ends))
    if apart and not rules.merge.sequence_fields:
        return rows, sort_keys(rows, rules.key_names)
    return rows, ordered_rows(rows, rules.key_names, rules.merge)


def _span(rows: pa.Table) -> tuple[int, int]:
    numbers = rows.column(SEQUENCE_NUMBER).to_numpy()
    return int(numbers.min()), int(numbers.max())


def _joined(block: Block) -> pa.Table:
    parts = [
        rows.append_column(SOURCE, pa.array(np.full(rows.num_rows, number, np.int32)))
        for number, rows in block
    ]
    # Older rows may have key columns only.
    return pa.concat_tables(parts, promote_options="default").combine_chunks()


def _assign_numbers(rows: pa.Table, rules: RowRules) -> pa.Table:
    """Return the rows ordered by key, with a column `_KEY_NUMBER` that numbers the keys from 0."""
    keys = sort_keys(rows, rules.key_names)
    numbers = np.cumsum(keys.first) - 1
    return rows.take(keys.order).append_column(KEY_NUMBER, pa.array(numbers))


def _lookup(block: Block, sources: Sequence[Source], rules: RowRules) -> Compacted:
    rows = _assign_numbers(_joined(block), rules)
    marks = _Marks.of(rows, sources)
    if rules.merge.engine == "first-row":
        # An existing key keeps its row, and later rows of the key are dropped.
        known = marks.per_key(marks.older) & ~marks.per_key(marks.high)
        kept = marks.picked & ~known[marks.key]
        return _emit_changes(rows.filter(pa.array(kept)), rules, ())
    replaced = _replaced(rows, marks.looked_up)
    if rules.expired is not None and rules.keeps_older:
        # An expired row must not stay beside the row that replaces it, but is not merged with it.
        rows = rules.expired.drop(rows)
        marks = _Marks.of(rows, sources)
    kept = (marks.picked & (marks.level == 0)) | marks.newest_high
    if rules.keeps_older:
        kept |= marks.looked_up
    return _emit_changes(rows.filter(pa.array(kept)), rules, replaced)


@dataclass(frozen=True, slots=True)
class _Marks:
    """Key numbers, levels and masks of rows ordered by key, each of shape (rows,).

    `picked` marks rows of compacted files, `older` the other rows, and `high` compacted rows of
    levels above 0. `newest_high` marks the row of the lowest level among the `high` rows of a key,
    `looked_up` the older row that the lookup finds.
    """

    key: Indices
    level: npt.NDArray[np.int32]
    picked: Mask
    older: Mask
    high: Mask
    newest_high: Mask
    looked_up: Mask

    @classmethod
    def of(cls, rows: pa.Table, sources: Sequence[Source]) -> "_Marks":
        key = rows.column(KEY_NUMBER).to_numpy()
        level = rows.column(LEVEL).to_numpy()
        own = np.array([source.picked for source in sources])
        picked: Mask = own[rows.column(SOURCE).to_numpy()]
        high = picked & (level > 0)
        needs = _per_key(key, picked) & ~_per_key(key, high)
        return cls(
            key=key,
            level=level,
            picked=picked,
            older=~picked,
            high=high,
            newest_high=_lowest(key, level, high),
            looked_up=_lowest(key, level, ~picked & needs[key]),
        )

    def per_key(self, marks: Mask) -> Mask:
        """Return a mask of the keys that have a row in the mask `marks`; shape (keys,)."""
        return _per_key(self.key, marks)


def _per_key(key: Indices, marks: Mask) -> Mask:
    retracted = np.zeros(int(key[-1]) + 1 if len(key) else 0, np.bool_)
    retracted[key[marks]] = True
    return retracted


def _lowest(key: Indices, level: npt.NDArray[np.int32], marked: Mask) -> Mask:
    """Return a mask of the row with the lowest level among the marked rows of each key."""
    least = np.full(int(key[-1]) + 1 if len(key) else 0, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(least, key[marked], level[marked])
    lowest: Mask = marked & (level == least[key])
    return lowest


def _replaced(rows: pa.Table, looked_up: Mask) -> tuple[tuple[int, int, Indices], ...]:
    if FILE not in rows.column_names or not bool(looked_up.any()):
        return ()
    sources = rows.column(SOURCE).to_numpy()[looked_up]
    files = rows.column(FILE).to_numpy()[looked_up]
    positions = rows.column(POSITION).to_numpy()[looked_up]
    return tuple(
        (int(source), int(number), np.sort(positions[(sources == source) & (files == number)]))
        for source, number in sorted(set(zip(sources.tolist(), files.tolist(), strict=True)))
    )


def _emit_changes(
    rows: pa.Table, rules: RowRules, deleted: tuple[tuple[int, int, Indices], ...]
) -> Compacted:
    """Merge the rows and compute their changes; `deleted` becomes part of the result."""
    if not rows.num_rows:
        return Compacted(_finish(rows, rules), None, deleted)
    rows = rows.drop_columns([n for n in (FILE, POSITION, SOURCE) if n in rows.column_names])
    rows = rows.combine_chunks()
    merged = _merged(rows, ordered_rows(rows, rules.key_names, rules.merge), rules)
    changes = None
    if rules.changes is not None:
        changes = changes_between(
            rows, merged, rules.changes, engine=rules.merge.engine, top_level=rules.top_level
        ).select([SEQUENCE_NUMBER, VALUE_KIND, *rules.columns])
    return Compacted(_finish(merged, rules), changes, deleted)


def _merged(rows: pa.Table, keys: SortedKeys, rules: RowRules) -> pa.Table:
    if not rules.merge.newest_level_only:
        # With the column, rows of higher levels would be ignored.
        rows = rows.drop_columns([LEVEL])
    return merge_sorted(rows, keys, rules.merge)


def _finish(rows: pa.Table, rules: RowRules) -> pa.Table:
    if rules.drops_deletes:
        gone = retractions(rows.column(VALUE_KIND).to_numpy())
        if bool(gone.any()):
            rows = rows.filter(pa.array(~gone))
    return rows.select([SEQUENCE_NUMBER, VALUE_KIND, *rules.columns])
