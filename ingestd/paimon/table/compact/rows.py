"""Merge the rows of keys in a compaction: one row per key, changes, deletions.

Pure: columns in, columns out. Rows of files that are not compacted themselves (`Source.picked` is
false) are the older rows of a key; what happens to them is what lookup compaction is for: they
take part in the merge, a deletion vector may delete them, and the changelog starts from them.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#compaction
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.base import SortedKeys, load_merge_engine, sort_keys
from ingestd.paimon.merge.merged_rows import LEVEL, retractions
from ingestd.paimon.merge.merging import ordered_rows
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.spec.merge_rules import MergeRules
from ingestd.paimon.table.compact.changes import KEY_NUMBER, ChangeRules, changes_between
from ingestd.paimon.table.compact.sorted_input import FILE, POSITION, Source

SOURCE = "_SOURCE"
"""A column with the number of each row's source."""

Block = Sequence[tuple[int, pa.Table]]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowRules:
    """Rules of a compaction of rows.

    `drops_deletes`: deletions are dropped. `looks_up`: older rows in higher levels count, too.
    `keeps_older`: they are merged; otherwise only their keys are read. `changes` are the rules of
    the changelog (None: no changelog), `top_level` is the level from which old rows are taken
    (None: any level).
    """

    merge: MergeRules
    key_names: tuple[str, ...]
    columns: tuple[str, ...]
    drops_deletes: bool
    looks_up: bool = False
    keeps_older: bool = True
    changes: ChangeRules | None = None
    top_level: int | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compacted block: rows with the columns of the table and the system columns.

    `deleted` has, by source and number of the file, positions of older rows that are replaced.
    """

    rows: pa.Table
    changes: pa.Table | None = None
    deleted: tuple[tuple[int, int, Index], ...] = ()


def compact_block(block: Block, sources: Sequence[Source], rules: RowRules) -> Compacted:
    """Merge the rows of a block; the block has all rows of its keys in the sources."""
    if rules.looks_up:
        return _looked_up(block, sources, rules)
    if rules.changes is not None:
        return _told(_numbered(_joined(block), rules), rules, ())
    if len(block) == 1:
        return Compacted(_finished(block[0][1], rules))
    rows, keys = _ordered(block, rules)
    return Compacted(_finished(_merged(rows, keys, rules), rules))


def _ordered(block: Block, rules: RowRules) -> tuple[pa.Table, SortedKeys]:
    """Return the rows of a block in merge order.

    By runs alone where each is newer than the last.
    """
    parts = [part for _, part in block]
    spans = [_span(part) for part in parts]
    order = sorted(range(len(parts)), key=spans.__getitem__)
    rows = pa.concat_tables([parts[i] for i in order]).combine_chunks()
    ends = [spans[i] for i in order]
    apart = all(one[1] < two[0] for one, two in itertools.pairwise(ends))
    if apart and not rules.merge.sequence_fields:
        return rows, sort_keys(rows, rules.key_names)
    return rows, ordered_rows(rows, rules.key_names, rules.merge)


def _span(rows: pa.Table) -> tuple[int, int]:
    numbers = rows.column(SEQUENCE_NUMBER).to_numpy()
    return int(numbers.min()), int(numbers.max())


def _joined(block: Block) -> pa.Table:
    parts = [
        part.append_column(SOURCE, pa.array(np.full(part.num_rows, number, np.int32)))
        for number, part in block
    ]
    # Of older rows perhaps only the keys were read.
    return pa.concat_tables(parts, promote_options="default").combine_chunks()


def _numbered(rows: pa.Table, rules: RowRules) -> pa.Table:
    """Return the rows ordered by key, with the number of each row's key."""
    keys = sort_keys(rows, rules.key_names)
    numbers = np.cumsum(keys.first) - 1
    return rows.take(keys.order).append_column(KEY_NUMBER, pa.array(numbers))


def _looked_up(block: Block, sources: Sequence[Source], rules: RowRules) -> Compacted:
    rows = _numbered(_joined(block), rules)
    marks = _Marks.of(rows, sources)
    if rules.merge.engine == "first-row":
        # A key that there is already stays as it is, and what comes again is left out.
        known = marks.per_key(marks.older) & ~marks.per_key(marks.high)
        kept = marks.picked & ~known[marks.key]
        return _told(rows.filter(pa.array(kept)), rules, ())
    replaced = _replaced(rows, marks.asked)
    kept = (marks.picked & (marks.level == 0)) | marks.newest_high
    if rules.keeps_older:
        kept |= marks.asked
    return _told(rows.filter(pa.array(kept)), rules, replaced)


@dataclass(frozen=True, slots=True)
class _Marks:
    """What each of some rows ordered by key is: `newest_high` the row of the lowest level above 0
    among those that are compacted, `asked` the one that a lookup finds."""

    key: Index
    level: npt.NDArray[np.int32]
    picked: Mask
    older: Mask
    high: Mask
    newest_high: Mask
    asked: Mask

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
            asked=_lowest(key, level, ~picked & needs[key]),
        )

    def per_key(self, marks: Mask) -> Mask:
        """Return for each key whether one of its rows is marked."""
        return _per_key(self.key, marks)


def _per_key(key: Index, marks: Mask) -> Mask:
    found = np.zeros(int(key[-1]) + 1 if len(key) else 0, np.bool_)
    found[key[marks]] = True
    return found


def _lowest(key: Index, level: npt.NDArray[np.int32], marked: Mask) -> Mask:
    """Of the marked rows of a key the one of the lowest level."""
    least = np.full(int(key[-1]) + 1 if len(key) else 0, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(least, key[marked], level[marked])
    lowest: Mask = marked & (level == least[key])
    return lowest


def _replaced(rows: pa.Table, asked: Mask) -> tuple[tuple[int, int, Index], ...]:
    if FILE not in rows.column_names or not bool(asked.any()):
        return ()
    sources = rows.column(SOURCE).to_numpy()[asked]
    files = rows.column(FILE).to_numpy()[asked]
    positions = rows.column(POSITION).to_numpy()[asked]
    return tuple(
        (int(source), int(number), np.sort(positions[(sources == source) & (files == number)]))
        for source, number in sorted(set(zip(sources.tolist(), files.tolist(), strict=True)))
    )


def _told(
    rows: pa.Table, rules: RowRules, deleted: tuple[tuple[int, int, Index], ...]
) -> Compacted:
    """Return the merged rows and the changes."""
    if not rows.num_rows:
        return Compacted(_finished(rows, rules), None, deleted)
    rows = rows.drop_columns([n for n in (FILE, POSITION, SOURCE) if n in rows.column_names])
    rows = rows.combine_chunks()
    merged = _merged(rows, ordered_rows(rows, rules.key_names, rules.merge), rules)
    changes = None
    if rules.changes is not None:
        changes = changes_between(
            rows, merged, rules.changes, engine=rules.merge.engine, top_level=rules.top_level
        ).select([SEQUENCE_NUMBER, VALUE_KIND, *rules.columns])
    return Compacted(_finished(merged, rules), changes, deleted)


def _merged(rows: pa.Table, keys: SortedKeys, rules: RowRules) -> pa.Table:
    if not rules.merge.newest_level_only:
        # With their levels, rows of higher levels would count for nothing.
        rows = rows.drop_columns([LEVEL])
    return load_merge_engine(rules.merge.engine).merge(rows, rules.key_names, keys, rules.merge)


def _finished(rows: pa.Table, rules: RowRules) -> pa.Table:
    if rules.drops_deletes:
        gone = retractions(rows.column(VALUE_KIND).to_numpy())
        if bool(gone.any()):
            rows = rows.filter(pa.array(~gone))
    return rows.select([SEQUENCE_NUMBER, VALUE_KIND, *rules.columns])
