"""Compare one table: first hashes of pages, then hashes of rows, then the rows that differ.

The pages of the database are hashed first, each in a statement of its own, then the lake's rows are
hashed by the same pages. Differing pages are split, and the hashes of their rows are compared by
key. Keys that differ are only candidates, because both sides change, and were read at different
times. The row of a candidate is read from the database, from the lake after the stream has passed a
watermark, and from the database again. A candidate is a difference if this finds a difference twice
in a row, and the database had the same row before and after the lake was read.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ingestd.compare.column_pairs import Key, Pairing
from ingestd.compare.lake_table import LakeReader, PageIndex, PagePart
from ingestd.compare.source_table import (
    Digest,
    KeyRange,
    Page,
    SourceReader,
    SourceRow,
    Texts,
    chunks,
)
from ingestd.ingest.tables.log_positions import Vector

Kind = Literal["missing", "extra", "different"]
"""The kind of a difference: missing in the lake, only in the lake, or with other values there."""
_SPLIT = 20
_ROWS_OF_GROUP = 500_000
_KEYS_OF_LOOK = 5_000
_LOOKS = 6
_NO_ROWS: Digest = (0, 0)


class Pages(Protocol):
    """The hashed pages of a table, including those of an interrupted comparison."""

    def known(self) -> list[Page]:
        """Return the pages of the table in order, from its beginning."""

    def add(self, page: Page) -> None:
        """Record the next hashed page of the table."""


class Watermark(Protocol):
    """A position in the change stream that a table must reach before its rows are compared."""

    def wait_until_passed(self) -> None:
        """Wait until the table has all changes that the source made before the call.

        Raises SourceError if that takes too long.
        """


class KeyChanges(Protocol):
    """The changes of a table by key, including changes of rows that no longer exist."""

    def mark(self) -> Vector:
        """Return the offsets that the table covers now, as a mark for `changed_since`."""

    def changed_since(self, mark: Vector, keys: Collection[Key]) -> Collection[Key]:
        """Return those of the `keys` with a change that the table has received since the mark."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs: the canonical texts of its compared columns on each side.

    `kind` states whether the row is missing in the lake, extra (only in the lake) or different. The
    texts are None on a side that has no such row.
    """

    kind: Kind
    key: Key
    source: Texts | None
    lake: Texts | None


@dataclass(slots=True)
class ComparisonOutcome:
    """The outcome of the comparison of one table.

    `rows` is the number of rows in the database. `moving` has the keys whose rows kept changing, so
    that they could not be compared. `kept` is the number of rows that only the lake had, in a table
    that keeps truncated rows. `is_complete` is false if the comparison ended early, at the limit of
    differences.
    """

    rows: int = 0
    differences: list[Difference] = field(default_factory=list)
    moving: list[Key] = field(default_factory=list)
    kept: int = 0
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class TableComparison:
    """Compares one table of the lake with its source table.

    `open_lake` opens the newest snapshot of the table at each call. Without a `watermark` the
    source has no concurrent changes, and `open_lake` always opens the same snapshot. `page_rows` is
    the number of rows per page, `limit` the maximum number of differences. With `changes`, a row
    that changed while it was examined is not a difference, even if it has the same values again.
    With `keeps_truncated`, rows that only the lake has are not differences, but counted as kept.
    """

    source: SourceReader
    open_lake: Callable[[], LakeReader]
    pairing: Pairing
    watermark: Watermark | None
    page_rows: int
    limit: int
    changes: KeyChanges | None = None
    keeps_truncated: bool = False

    def run(self, pages: Pages) -> ComparisonOutcome:
        """Compare the table; `pages` are its pages that have been hashed so far.

        Raises SourceError if the database or the brokers fail or the table does not catch up,
        UnsupportedError for rows that are too long to be hashed, and the errors of reading a table.
        """
        hashed = self._hash_pages(pages)
        outcome = ComparisonOutcome(rows=sum(page.rows for page in hashed))
        differing, row_counts = self._differing(hashed)
        if self.pairing.is_ordered and self.page_rows > _SPLIT:
            size = self.page_rows // _SPLIT
            small = [part for page in differing for part in self.source.pages(page.keys, size)]
            differing, row_counts = self._differing(small)
        for keys in self._candidates(differing, row_counts, outcome):
            for chunk in chunks(keys, _KEYS_OF_LOOK):
                self._settle(chunk, outcome)
                if len(outcome.differences) > self.limit:
                    del outcome.differences[self.limit :]
                    outcome.is_complete = False
                    return outcome
        return outcome

    def _hash_pages(self, pages: Pages) -> list[Page]:
        """Return all pages of the database; hash those that earlier runs have not hashed."""
        hashed = pages.known()
        if hashed and hashed[-1].keys.high is None:
            return hashed
        low = hashed[-1].keys.high if hashed else None
        for page in self.source.pages(KeyRange(low), self.page_rows):
            pages.add(page)
            hashed.append(page)
        return hashed

    def _differing(self, pages: Sequence[Page]) -> tuple[list[Page], dict[PagePart, int]]:
        """Return the pages that differ, and the larger row count of both sides by page and part.

        If keys have no order, they may be in any page, so all pages are returned if a part differs.
        """
        if not pages:
            return [], {}
        in_lake = self.open_lake().digests(PageIndex(self.pairing, pages))
        in_source = self._source_digests(pages)
        differing = {
            page_part: max(
                in_source.get(page_part, _NO_ROWS)[0], in_lake.get(page_part, _NO_ROWS)[0]
            )
            for page_part in {*in_source, *in_lake}
            if in_source.get(page_part, _NO_ROWS) != in_lake.get(page_part, _NO_ROWS)
        }
        if not self.pairing.is_ordered:
            return list(pages) if differing else [], differing
        numbers = sorted(page for page, _ in differing)
        return [pages[number] for number in numbers], {
            (index, ""): differing[number, ""] for index, number in enumerate(numbers)
        }

    def _source_digests(self, pages: Sequence[Page]) -> dict[PagePart, Digest]:
        digests: dict[PagePart, Digest] = {}
        for number, page in enumerate(pages):
            for part, (count, total) in page.digests.items():
                page_part = (number if self.pairing.is_ordered else -1, part)
                known = digests.get(page_part, _NO_ROWS)
                digests[page_part] = known[0] + count, known[1] + total
        return digests

    def _candidates(
        self,
        pages: Sequence[Page],
        row_counts: Mapping[PagePart, int],
        outcome: ComparisonOutcome,
    ) -> Iterator[list[Key]]:
        """Yield the keys whose rows have different hashes, in groups that fit into memory.

        `row_counts` has the number of rows by page and part. Kept rows are counted in `outcome`.
        """
        for group in _groups(row_counts):
            if self.pairing.is_ordered:
                read = [pages[page] for page, _ in group]
                index = PageIndex(self.pairing, read)
                wanted = {(number, "") for number in range(len(read))}
            else:
                read, index, wanted = list(pages), PageIndex(self.pairing, pages), set(group)
            parts = sorted({part for _, part in wanted})
            source: dict[Key, int] = {}
            for page in read:
                source |= self.source.hashes(page, parts)
            lake = self.open_lake().hashes(index, wanted)
            if self.keeps_truncated:
                outcome.kept += len(lake.keys() - source.keys())
                lake = {key: row_hash for key, row_hash in lake.items() if key in source}
            yield sorted(key for key in {*source, *lake} if source.get(key) != lake.get(key))

    def _settle(self, keys: Sequence[Key], outcome: ComparisonOutcome) -> None:
        """Add the keys whose rows differ, and the keys whose rows kept changing, to the outcome."""
        suspects: frozenset[Key] = frozenset()
        since: Vector = {}
        rest = list(keys)
        for _ in range(_LOOKS):
            if not rest:
                return
            mark = since if self.changes is None else self.changes.mark()
            looks = self._look_at(rest)
            unequal = [look for look in looks if not look.is_equal]
            still = frozenset(look.key for look in unequal if look.is_still)
            certain = still if self.watermark is None else still & suspects
            if self.changes is not None and certain:
                certain -= frozenset(self.changes.changed_since(since, certain))
            outcome.differences += [look.difference for look in unequal if look.key in certain]
            suspects, since = still, mark
            rest = [look.key for look in unequal if look.key not in certain]
        outcome.moving += rest

    def _look_at(self, keys: Sequence[Key]) -> "list[_Look]":
        """Read rows from the database, then from the lake, then from the database again.

        Without a watermark, the database is read only once.
        """
        before = self.source.rows(keys)
        if self.watermark is not None:
            self.watermark.wait_until_passed()
        lake = self.open_lake().rows(keys)
        after = before if self.watermark is None else self.source.rows(keys)
        return [_Look(key, before.get(key), lake.get(key), after.get(key)) for key in keys]


@dataclass(frozen=True, slots=True)
class _Look:
    """A row as read from the database, then from the lake, then from the database again."""

    key: Key
    before: SourceRow | None
    lake: Texts | None
    after: SourceRow | None

    @property
    def is_equal(self) -> bool:
        return self.lake in [
            None if row is None else row.texts for row in (self.before, self.after)
        ]

    @property
    def is_still(self) -> bool:
        return self.before == self.after

    @property
    def difference(self) -> Difference:
        kind: Kind = (
            "extra" if self.after is None else "missing" if self.lake is None else "different"
        )
        source = None if self.after is None else self.after.texts
        return Difference(kind, self.key, source, self.lake)


def _groups(row_counts: Mapping[PagePart, int]) -> Iterator[list[PagePart]]:
    """Yield groups of pages and parts with at most `_ROWS_OF_GROUP` rows, or of a single part."""
    group: list[PagePart] = []
    rows = 0
    for page_part in sorted(row_counts):
        if group and rows + row_counts[page_part] > _ROWS_OF_GROUP:
            yield group
            group, rows = [], 0
        group.append(page_part)
        rows += row_counts[page_part]
    if group:
        yield group
