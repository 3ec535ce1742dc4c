"""Random differences are found by key, whatever the pages, and what moves is not reported."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ingestd.compare.canonical import hash_of, joined_cells, part_of
from ingestd.compare.column_pairs import ComparedColumn, DatabaseColumn, Key, Pairing
from ingestd.compare.lake_table import PageIndex, PagePart
from ingestd.compare.source_table import Digest, KeyRange, Page, SourceRow
from ingestd.compare.table_compare import ComparisonOutcome, KeyChanges, TableComparison
from ingestd.ingest.tables.log_positions import Position, Vector
from ingestd.paimon.spec.data_types import DataType

BIGINT = DataType("BIGINT")
Rows = dict[int, str]


def pairing(*, ordered: bool) -> Pairing:
    key = DatabaseColumn("id", "bigint", "bigint", is_ordered=ordered, is_number=True)
    value = DatabaseColumn("v", "text", "text")
    columns = (
        ComparedColumn("id", BIGINT, key, ""),
        ComparedColumn("v", DataType("STRING"), value, ""),
    )
    return Pairing(columns, 1, ())


def texts(number: int, value: str) -> tuple[str, str]:
    return str(number), value


@dataclass
class Source:
    """A database that is a dictionary; `moves` are called before each read of rows by key."""

    table: Rows
    pairing: Pairing
    moves: Callable[[Rows], None] = lambda rows: None
    largest_page: int = 0
    pages_read: int = 0

    def pages(self, keys: KeyRange, size: int) -> Iterator[Page]:
        low = keys.low
        while True:
            inside = self._inside(KeyRange(low, keys.high))
            high = texts(inside[size - 1], "")[:1] if len(inside) >= size else None
            bounds = KeyRange(low, high or keys.high)
            yield Page(bounds, self._digests(bounds))
            if high is None:
                return
            low = high

    def hashes(self, page: Page, parts: Sequence[str]) -> dict[Key, int]:
        self.pages_read += 1
        keys = self._inside(page.keys)
        return {
            (str(key),): hash_of(joined_cells(texts(key, self.table[key])))
            for key in keys
            if self._part(key) in parts
        }

    def rows(self, keys: Sequence[Key]) -> dict[Key, SourceRow]:
        self.moves(self.table)
        found = {key: self.table.get(int(key[0])) for key in keys}
        return {key: SourceRow((*key, v), v) for key, v in found.items() if v is not None}

    def _inside(self, keys: KeyRange) -> list[int]:
        low, high = keys.low, keys.high
        return sorted(
            one
            for one in self.table
            if (low is None or one > int(low[0])) and (high is None or one <= int(high[0]))
        )

    def _part(self, number: int) -> str:
        return "" if self.pairing.is_ordered else part_of(joined_cells((str(number),)))

    def _digests(self, keys: KeyRange) -> dict[str, Digest]:
        found: dict[str, Digest] = {}
        inside = self._inside(keys)
        self.largest_page = max(self.largest_page, len(inside))
        for one in inside:
            count, total = found.get(self._part(one), (0, 0))
            row_hash = hash_of(joined_cells(texts(one, self.table[one])))
            found[self._part(one)] = count + 1, total + row_hash
        return found


@dataclass
class Lake:
    """A lake that is a dictionary."""

    table: Rows

    def digests(self, index: PageIndex) -> dict[PagePart, Digest]:
        found: dict[PagePart, Digest] = {}
        for key, row_hash in self._hashes():
            page_part = index.part_of_key(key)
            if page_part is not None:
                count, total = found.get(page_part, (0, 0))
                found[page_part] = count + 1, total + row_hash
        return found

    def hashes(self, index: PageIndex, wanted: Any) -> dict[Key, int]:
        return {key: one for key, one in self._hashes() if index.part_of_key(key) in wanted}

    def rows(self, keys: Sequence[Key]) -> dict[Key, tuple[str, ...]]:
        there = [key for key in keys if int(key[0]) in self.table]
        return {key: texts(int(key[0]), self.table[int(key[0])]) for key in there}

    def _hashes(self) -> Iterator[tuple[Key, int]]:
        return (
            ((str(one),), hash_of(joined_cells(texts(one, v)))) for one, v in self.table.items()
        )


@dataclass
class Pages:
    """Pages of an earlier run, and those of this one."""

    pages: list[Page] = field(default_factory=list)

    def known(self) -> list[Page]:
        return list(self.pages)

    def add(self, page: Page) -> None:
        self.pages.append(page)


@dataclass
class Stream:
    """Calls `arrives` when it is waited for."""

    arrives: Callable[[], None] = lambda: None

    def wait_until_passed(self) -> None:
        self.arrives()


def run(
    source: Source,
    lake: Rows,
    *,
    stream: Stream | None = None,
    pages: Pages | None = None,
    page_rows: int = 40,
    limit: int = 1000,
    changes: KeyChanges | None = None,
) -> ComparisonOutcome:
    comparison: Any = TableComparison(
        source,
        lambda: Lake(lake),
        source.pairing,
        stream,
        page_rows,
        limit,  # type: ignore[arg-type]
        changes,
    )
    outcome: ComparisonOutcome = comparison.run(pages or Pages())
    return outcome


def true_differences(source: Rows, lake: Rows) -> dict[int, str]:
    kinds = {}
    for key in source.keys() | lake.keys():
        if source.get(key) != lake.get(key):
            kinds[key] = (
                "missing" if key not in lake else "extra" if key not in source else "different"
            )
    return kinds


def found_differences(outcome: ComparisonOutcome) -> dict[int, str]:
    return {int(difference.key[0]): difference.kind for difference in outcome.differences}


TABLES = st.dictionaries(st.integers(-300, 300), st.sampled_from("abc"), max_size=150)


@given(
    table=TABLES,
    changes=st.dictionaries(st.integers(-310, 310), st.sampled_from(["x", "a", None]), max_size=9),
    ordered=st.booleans(),
    page_rows=st.integers(1, 90),
)
def test_exactly_the_rows_that_differ_are_found(
    table: Rows, changes: Mapping[int, str | None], ordered: bool, page_rows: int
) -> None:
    lake = {key: v for key, v in {**table, **changes}.items() if v is not None}
    source = Source(table, pairing(ordered=ordered))
    outcome = run(source, lake, page_rows=page_rows)
    assert found_differences(outcome) == true_differences(table, lake)
    assert outcome.rows == len(table)
    assert source.largest_page <= page_rows


@given(table=TABLES, cut=st.integers(0, 20), ordered=st.booleans())
def test_a_run_goes_on_after_the_pages_of_an_earlier_one(
    table: Rows, cut: int, ordered: bool
) -> None:
    lake = {**table, 7: "other"}
    pages = Pages()
    whole = run(Source(table, pairing(ordered=ordered)), lake, pages=pages, page_rows=10)
    hashed = list(pages.pages)
    again = Pages(hashed[:cut])
    assert run(Source(table, pairing(ordered=ordered)), lake, pages=again, page_rows=10) == whole
    assert again.pages == hashed


def test_only_small_pages_around_a_difference_are_read_row_by_row() -> None:
    table = dict.fromkeys(range(10000), "a")
    source = Source(table, pairing(ordered=True))
    outcome = run(source, {**table, 4321: "b"}, page_rows=1000)
    assert found_differences(outcome) == {4321: "different"}
    assert source.pages_read == 1


def test_a_lake_that_is_late_is_no_difference() -> None:
    table, lake = {1: "new", 2: "a"}, {1: "old", 2: "a", 3: "deleted"}

    def arrives() -> None:
        lake.clear()
        lake.update(table)

    outcome = run(Source(table, pairing(ordered=True)), lake, stream=Stream(arrives))
    assert (outcome.differences, outcome.moving) == ([], [])


def test_a_row_that_changes_at_every_look_is_moving_and_no_difference() -> None:
    table, lake = {1: "0", 2: "a"}, {1: "old", 2: "wrong"}

    def moves(rows: Rows) -> None:
        rows[1] = str(int(rows[1]) + 1)

    source = Source(table, pairing(ordered=True), moves)
    outcome = run(source, lake, stream=Stream())
    assert found_differences(outcome) == {2: "different"}
    assert outcome.moving == [("1",)]


def test_a_row_that_comes_and_goes_is_no_difference() -> None:
    """It is absent before and after the first look, and was in the lake in between."""
    table, lake = {1: "a"}, {1: "a", 2: "short"}
    looks: list[int] = []

    def arrives() -> None:
        looks.append(1)
        if len(looks) == 2:
            del lake[2]

    outcome = run(Source(table, pairing(ordered=True)), lake, stream=Stream(arrives))
    assert (outcome.differences, outcome.moving) == ([], [])


def test_a_row_that_equals_what_the_source_has_after_the_look_is_equal() -> None:
    table, lake = {1: "a"}, {1: "b"}
    values = iter("abcdefgh")

    def moves(rows: Rows) -> None:
        rows[1] = next(values)

    source = Source(table, pairing(ordered=True), moves)
    outcome = run(source, lake, stream=Stream())
    assert (outcome.differences, outcome.moving) == ([], [])


@dataclass
class Changes:
    """Offsets that grow with each look, and the keys that changed since an offset."""

    by_offset: dict[int, list[Key]]
    marks: int = 0

    def mark(self) -> Vector:
        self.marks += 1
        return {"topic": {0: Position(self.marks)}}

    def changed_since(self, mark: Vector, keys: Collection[Key]) -> Collection[Key]:
        since = mark["topic"][0].offset
        assert since == self.marks - 1, "the mark was taken before the previous look"
        return [key for offset, some in self.by_offset.items() if offset >= since for key in some]


def test_a_row_without_a_version_that_had_the_same_values_again_is_no_difference() -> None:
    """Row 1 is deleted and inserted again during every look; row 2 changed before the looks."""
    table = {1: "a", 2: "b"}
    changes = Changes({0: [("2",)], **{look: [("1",)] for look in range(1, 9)}})
    outcome = run(Source(table, pairing(ordered=True)), {}, stream=Stream(), changes=changes)
    assert found_differences(outcome) == {2: "missing"}
    assert outcome.moving == [("1",)]


def test_the_limit_ends_the_search() -> None:
    table = dict.fromkeys(range(100), "a")
    outcome = run(Source(table, pairing(ordered=True)), {}, limit=10)
    assert (len(outcome.differences), outcome.is_complete) == (10, False)
    assert run(Source(table, pairing(ordered=True)), {}, limit=100).is_complete
