"""Compact chosen runs of one bucket of a primary-key table into files of a level.

A file whose key range overlaps with no other file only changes its level (an upgrade), unless it is
small and adjacent to a file that is rewritten, has rows to drop, or must be rewritten because of
the options. Files with overlapping or adjacent key ranges are rewritten together. A bucket has one
index file with all of its deletion vectors, which is rewritten when one of them changes.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#compaction
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ingestd.paimon.spec.binary_row import comparable_key
from ingestd.paimon.spec.compaction_options import CompactionOptions, LookupRules
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.deletion_vector import Positions
from ingestd.paimon.spec.index_manifest import DELETION_VECTORS_INDEX, IndexManifestEntry
from ingestd.paimon.spec.record_level_expire import ExpiredRows
from ingestd.paimon.table.compact.changelog_rows import ChangeRules
from ingestd.paimon.table.compact.rolling_write import FileTarget, RollingWriter
from ingestd.paimon.table.compact.row_merge import RowRules, compact_block
from ingestd.paimon.table.compact.sorted_input import BucketInput, Source
from ingestd.paimon.table.compact.sorted_runs import Levels, SortedRun
from ingestd.paimon.table.files.data_files import SYSTEM_FIELDS, DataFileReader
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors, write_deletion_vectors
from ingestd.paimon.table.metadata.file_stats import value_stats
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.scan_plan import sections


class BucketVectors:
    """The deletion vectors of a bucket by data file, and their changes by a compaction.

    `partition` is the serialized row. `entries` are the index entries of the bucket; those of other
    index types are ignored. `deletions` contains the rows deleted before the compaction, `files`
    the names of their index files.
    """

    def __init__(
        self,
        table: FileStoreTable,
        partition: bytes,
        bucket: int,
        entries: Iterable[IndexManifestEntry],
    ) -> None:
        own = [entry for entry in entries if entry.index_type == DELETION_VECTORS_INDEX]
        self.deletions = DeletionVectors.of(table, own)
        self.files = tuple(entry.file_name for entry in own)
        self._table = table
        self._bucket_key = (partition, bucket)
        names = [dv_range.data_file_name for entry in own for dv_range in entry.dv_ranges or ()]
        self._before = frozenset(names)
        self._removed: set[str] = set()
        self._added: dict[str, list[Positions]] = {}

    def has(self, file_name: str) -> bool:
        """Return whether a data file had deleted rows before the compaction."""
        return file_name in self._before

    def remove(self, file_name: str) -> None:
        """Drop the deletion vector of a data file, because the compaction removes the file."""
        self._removed.add(file_name)

    def delete(self, file_name: str, positions: Positions) -> None:
        """Mark the rows of a data file at these positions as deleted, to be written by `write`."""
        if len(positions):
            self._added.setdefault(file_name, []).append(positions)

    def write(self) -> IndexManifestEntry | None:
        """Write the index file of the bucket and return its entry, or None if nothing changed."""
        gone = self._removed & self._before
        if not (gone or self._added):
            return None
        vectors: dict[str, Positions] = {}
        for name in sorted((self._before - gone) | set(self._added)):
            known = [self.deletions.deleted_rows(*self._bucket_key, name)] if self.has(name) else []
            vectors[name] = np.unique(np.concatenate([*known, *self._added.get(name, [])]))
        return write_deletion_vectors(self._table, *self._bucket_key, vectors)


_SMALL = 0.7
"""Files below this share of the target size are rewritten instead of upgraded."""

Section = Sequence[DataFileMeta]


def small_file_size(target_file_size: int) -> int:
    """Return the size in bytes below which files are joined: 70 % of the target size."""
    return target_file_size // 10 * int(_SMALL * 10)


@dataclass(frozen=True, slots=True)
class TreeRules:
    """The options of a table for compaction, and for lookups in higher levels.

    `expired` determines the rows to drop because of their age (None: rows do not expire).
    """

    options: CompactionOptions
    lookups: LookupRules
    expired: ExpiredRows | None = None


@dataclass(slots=True)
class BucketChange:
    """The files that a compaction removes from a bucket (`before`) and adds to it (`after`).

    `changelog` are new changelog files, `index` is the new file of deletion vectors (None:
    unchanged). `written` are the data and changelog files actually written, without data files that
    only changed their level.
    """

    before: list[DataFileMeta] = field(default_factory=list)
    after: list[DataFileMeta] = field(default_factory=list)
    changelog: list[DataFileMeta] = field(default_factory=list)
    index: IndexManifestEntry | None = None
    written: list[DataFileMeta] = field(default_factory=list)


class TreeCompaction:
    """A compaction of files of one bucket into the level of `target`.

    `partition` is the serialized row, `levels` has all files of the bucket, `rules` the options of
    the table, and `vectors` the deletion vectors of the bucket. `change` collects the result.
    """

    def __init__(
        self,
        target: FileTarget,
        partition: bytes,
        levels: Levels,
        rules: TreeRules,
        vectors: BucketVectors,
    ) -> None:
        self.change = BucketChange()
        self._table, self._output = target.table, target.level
        self._target = target
        self._partition = partition
        self._levels = levels
        self._rules = rules
        self._vectors = vectors
        # Deletions are dropped if no older row in a higher level can have their key.
        lookups = rules.lookups
        self._drops = self._output != 0 and (self._output >= levels.highest or lookups.vectors)
        self._types = [key_field.type for key_field in self._table.schema.key_fields]

    def compact_runs(self, runs: Sequence[SortedRun]) -> None:
        """Compact whole runs, which must be the newest runs of the bucket.

        The result is in `change`. Raises FormatError for a data file that is missing or damaged.
        """
        files = [file for run in runs for file in run.files]
        small = small_file_size(self._table.options.target_file_size)
        adjacent: list[Section] = []
        for section in sections(self._types, files):
            if len(section) > 1 or section[0].file_size < small:
                adjacent.append(section)
                continue
            self._rewrite_together(adjacent)
            adjacent = []
            self._upgrade(section[0])
        self._rewrite_together(adjacent)

    def rewrite_each(self, files: Sequence[DataFileMeta]) -> None:
        """Rewrite each of the files separately, without merging it with others.

        The result is in `change`. Raises FormatError for a data file that is missing or damaged.
        """
        for file in files:
            self._rewrite([[file]])

    def finish(self) -> BucketChange:
        """Write the deletion vectors of the bucket if they changed; return the whole change."""
        self.change.index = self._vectors.write()
        return self.change

    def _rewrite_together(self, adjacent: Sequence[Section]) -> None:
        if len(adjacent) == 1 and len(adjacent[0]) == 1:
            self._upgrade(adjacent[0][0])
        elif adjacent:
            self._rewrite(adjacent)

    def _upgrade(self, file: DataFileMeta) -> None:
        """Move a file to the output level; rewrite it only if necessary."""
        has_deletes = file.delete_row_count != 0
        drops_rows = (self._is_top and has_deletes) or has_expired(
            self._table, file, self._rules.expired
        )
        if drops_rows or self._rules.options.rewrites_all:
            self._rewrite([[file]])
        elif file.level != self._output:
            if self._must_rewrite(file, has_deletes=has_deletes):
                self._run([[file]], with_changes=True)
                return
            if self._upgrade_has_changes(file):
                self._run([[file]], with_changes=True, rewrites=False)
            self.change.before.append(file)
            self.change.after.append(replace(file, level=self._output))

    @property
    def _is_top(self) -> bool:
        return self._output == self._levels.max_level

    def _upgrade_has_changes(self, file: DataFileMeta) -> bool:
        """Return whether an upgraded file must be read, for the changelog or deletion vectors."""
        lookups = self._rules.lookups
        if lookups.full_changelog:
            return self._is_top
        return lookups.needed and file.level == 0

    def _must_rewrite(self, file: DataFileMeta, *, has_deletes: bool) -> bool:
        """Return whether a level-0 file must be rewritten in a table with lookups.

        This is so if its file format changes, if it has deletions and the table deletion vectors,
        or if a lookup may change its rows.
        """
        lookups, table = self._rules.lookups, self._table
        if not lookups.needed or file.level != 0:
            return False
        options = table.options
        if options.at_level(0).file_format != options.at_level(self._output).file_format:
            return True
        if lookups.vectors and has_deletes:
            return True
        newest_wins = (
            table.merge_rules.engine == "deduplicate" and not table.merge_rules.sequence_fields
        )
        return not (self._is_top or newest_wins)

    def _rewrite(self, parts: Sequence[Section]) -> None:
        lookups = self._rules.lookups
        fresh = any(file.level == 0 for section in parts for file in section)
        with_changes = self._is_top if lookups.full_changelog else lookups.needed and fresh
        self._run(parts, with_changes=with_changes and self._output != 0)

    def _run(self, parts: Sequence[Section], *, with_changes: bool, rewrites: bool = True) -> None:
        """Merge sections one after another into new files, and write the changelog if required.

        `with_changes` is set for sections whose changes go to the changelog or need a lookup of
        older rows, by the rules of the table. Unless `rewrites`, no data files are written.
        """
        lookups = self._rules.lookups
        writes_changelog = with_changes and (lookups.changelog or lookups.full_changelog)
        rows = RollingWriter(self._target) if rewrites else None
        changes = RollingWriter(replace(self._target, changelog=True)) if writes_changelog else None
        writers = [output for output in (rows, changes) if output is not None]
        rules = self._row_rules(with_changes=with_changes, writes_changelog=writes_changelog)
        try:
            for section in parts:
                self._merge(section, rules, rows, changes)
            after = rows.close() if rows is not None else []
            self.change.written += after
            changelog = changes.close() if changes is not None else []
        except BaseException:
            for writer in writers:
                writer.abort()
            raise
        self.change.written += changelog
        self.change.changelog += changelog
        if rewrites:
            before = [file for section in parts for file in section]
            self.change.before += before
            self.change.after += after
            for file in before:
                self._vectors.remove(file.file_name)

    def _merge(
        self,
        section: Section,
        rules: RowRules,
        rows: RollingWriter | None,
        changes: RollingWriter | None,
    ) -> None:
        sources = self._sources(section, rules)
        if rows is None and changes is None and all(source.picked for source in sources):
            return
        lookups, target = self._rules.lookups, self._target
        bucket_input = BucketInput(
            DataFileReader(self._table, self._vectors.deletions),
            self._partition,
            target.bucket,
            self._table.schema.trimmed_primary_keys,
            row_positions=rules.looks_up and lookups.vectors,
        )
        for block in bucket_input.blocks(sources):
            merged = compact_block(block, sources, rules)
            if rows is not None:
                rows.add(merged.rows)
            if changes is not None and merged.changes is not None:
                changes.add(merged.changes)
            for source, file, positions in merged.deleted:
                self._vectors.delete(sources[source].files[file].file_name, positions)

    def _row_rules(self, *, with_changes: bool, writes_changelog: bool) -> RowRules:
        lookups, merge = self._rules.lookups, self._table.merge_rules
        names = self._table.schema.field_names
        compared = tuple(name for name in names if name not in lookups.ignored)
        newest_wins = merge.engine == "deduplicate" and not merge.sequence_fields
        return RowRules(
            # With lookups, rows are merged even if no older row was found.
            merge=replace(merge, merges_single=with_changes and lookups.needed),
            key_names=self._table.schema.trimmed_primary_keys,
            columns=tuple(names),
            drops_deletes=self._drops,
            looks_up=with_changes and lookups.needed,
            keeps_older=merge.engine != "first-row"
            and not (lookups.vectors and newest_wins and not writes_changelog),
            changes=ChangeRules(compared if lookups.deduplicates else None)
            if writes_changelog
            else None,
            top_level=self._levels.max_level if lookups.full_changelog else None,
            expired=self._rules.expired,
        )

    def _sources(self, section: Section, rules: RowRules) -> list[Source]:
        """Return the sources of a section: its files by run, and older files if rows are looked up.

        Older files are those of higher levels whose key range overlaps that of the section.
        """
        schema = self._table.schema
        fields = (*SYSTEM_FIELDS, *schema.fields)
        runs: dict[tuple[int, str], list[DataFileMeta]] = defaultdict(list)
        for file in section:
            runs[file.level, file.file_name if file.level == 0 else ""].append(file)
        sources = []
        for (level, _), files in sorted(runs.items()):
            files.sort(key=lambda added: comparable_key(self._types, added.min_key))
            sources.append(Source(level, tuple(files), fields))
        if rules.looks_up:
            older = fields if rules.keeps_older else schema.key_fields
            sources += self._older(section, older)
        return sources

    def _older(self, section: Section, fields: tuple[DataField, ...]) -> Iterator[Source]:
        low = min(comparable_key(self._types, file.min_key) for file in section)
        high = max(comparable_key(self._types, file.max_key) for file in section)
        for run in self._levels.runs:
            if run.level <= self._output:
                continue
            files = tuple(
                file
                for file in run.files
                if comparable_key(self._types, file.min_key) <= high
                and comparable_key(self._types, file.max_key) >= low
            )
            if files:
                yield Source(run.level, files, fields, picked=False)


def has_expired(table: FileStoreTable, file: DataFileMeta, expired: ExpiredRows | None) -> bool:
    """Return whether the statistics of a file show that it has expired rows.

    Returns False without statistics, and if rows do not expire (`expired` is None).
    """
    if expired is None:
        return False
    return expired.may_be_among(value_stats(table, file).get(expired.field.name))
