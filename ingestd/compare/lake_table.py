"""Read a table of the lake as canonical texts: digests of pages, hashes of rows, whole rows."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ingestd.compare.canonical import (
    Form,
    canonical_texts,
    hash_of,
    joined_cells,
    part_of,
    row_cells,
)
from ingestd.compare.column_pairs import WHOLE_NUMBERS, Key, Pairing
from ingestd.compare.source_table import Digest, Page, Part, Texts
from ingestd.paimon.spec.arrow import Array, column_of, to_arrow_type
from ingestd.paimon.spec.data_types import BINARY_ROOTS, DataType
from ingestd.paimon.spec.predicate import Comparison, Predicate, all_of
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import TableReader

_ROWS_OF_BATCH = 50_000
PagePart = tuple[int, Part]
"""The index of a page, and a part of the page. If keys have no order, the index is -1."""


class PageIndex:
    """An index that finds the page of a key, or its hash partition if keys have no order.

    The pages are in key order and do not overlap. Hash partitions are partitions of the whole
    table, not of a page.
    """

    def __init__(self, pairing: Pairing, pages: Sequence[Page]) -> None:
        self._pairing = pairing
        self._ordered = pairing.is_ordered
        self._lows = [page.keys.low and pairing.order_of(page.keys.low) for page in pages]
        highs = [page.keys.high for page in pages]
        self._is_open = bool(highs) and highs[-1] is None
        self._highs = [pairing.order_of(high) for high in highs if high is not None]

    def part_of_key(self, key: Key) -> PagePart | None:
        """Return the page and part to which a key belongs, or None if it is in no page.

        If keys have no order, the index of the page is -1, and the result is never None.
        """
        if not self._ordered:
            return -1, part_of(joined_cells(key))
        order = self._pairing.order_of(key)
        page = bisect_left(self._highs, order)
        if page == len(self._highs) and not self._is_open:
            return None
        low = self._lows[page]
        return None if low is not None and order <= low else (page, "")

    def bounds(self) -> Predicate | None:
        """Return a condition on the first key column that all keys of the pages meet.

        Returns None if there is no such condition.
        """
        if not self._ordered or not self._lows:
            return None
        column = self._pairing.key[0]
        # The lake sorts unsigned numbers as signed ones.
        if column.type.root not in WHOLE_NUMBERS or column.form is Form.UNSIGNED:
            return None
        parts: list[Predicate] = []
        if self._lows[0] is not None:
            parts.append(Comparison(column.name, ">=", self._lows[0][0]))
        if not self._is_open:
            parts.append(Comparison(column.name, "<=", self._highs[-1][0]))
        return all_of(parts)


@dataclass(frozen=True, slots=True)
class LakeReader:
    """A reader of the compared columns of a table, as of a snapshot.

    `snapshot` is None if the table has no rows. Only rows that meet `condition` are read.
    """

    table: FileStoreTable
    pairing: Pairing
    snapshot: Snapshot | None
    condition: Predicate | None = None

    def digests(self, index: PageIndex) -> dict[PagePart, Digest]:
        """Return the digests of the rows in the pages of an index, by page and part.

        A digest is the number of rows and the sum of their hashes. Pages and parts without rows are
        left out, and so are rows in no page.
        """
        digests: dict[PagePart, Digest] = {}
        for key, row_hash in self._hashes(index.bounds()):
            page_part = index.part_of_key(key)
            if page_part is not None:
                count, total = digests.get(page_part, (0, 0))
                digests[page_part] = count + 1, total + row_hash
        return digests

    def hashes(self, index: PageIndex, wanted: Collection[PagePart]) -> dict[Key, int]:
        """Return the hashes of the rows in the `wanted` pages and parts of an index, by key."""
        rows = self._hashes(index.bounds())
        return {key: row_hash for key, row_hash in rows if index.part_of_key(key) in wanted}

    def rows(self, keys: Sequence[Key]) -> dict[Key, Texts]:
        """Return the canonical texts of the rows with the given keys, by key.

        Keys without a row are left out.
        """
        wanted, rows_by_key = frozenset(keys), dict[Key, Texts]()
        size = self.pairing.key_size
        for columns in self._texts(None, self._key_filter(keys)):
            for row in zip(*(column.to_pylist() for column in columns), strict=True):
                if row[:size] in wanted:
                    rows_by_key[row[:size]] = row
        return rows_by_key

    def _hashes(self, bounds: Predicate | None) -> Iterator[tuple[Key, int]]:
        for columns in self._texts(bounds, None):
            cells: list[Any] = row_cells(columns).cast(pa.binary()).to_pylist()
            keys = zip(
                *(column.to_pylist() for column in columns[: self.pairing.key_size]), strict=True
            )
            yield from zip(keys, map(hash_of, cells), strict=True)

    def _texts(
        self, bounds: Predicate | None, key_filter: pa.Table | None
    ) -> Iterator[list[Array]]:
        """Yield the canonical texts of each batch of rows: one array per compared column."""
        if self.snapshot is None:
            return
        names = self.pairing.names
        condition = all_of([part for part in (bounds, self.condition) if part is not None])
        reader = TableReader(self.table, names, condition, key_filter=key_filter)
        for rows in reader.rows(self.snapshot):
            for batch in rows.select(names).combine_chunks().to_batches(_ROWS_OF_BATCH):
                yield [self._column(batch, number) for number in range(len(names))]

    def _column(self, batch: pa.RecordBatch, number: int) -> Array:
        column = self.pairing.columns[number]
        return canonical_texts(batch.column(number), column.type, column.form)

    def _key_filter(self, keys: Sequence[Key]) -> pa.Table | None:
        """Return the primary keys to look up, or None if the compared keys do not determine them.

        They do not if a column of the primary key is not part of the compared keys, or if values
        cannot be restored from its canonical texts.
        """
        by_name = {column.name: number for number, column in enumerate(self.pairing.key)}
        primary = self.table.schema.primary_keys
        if not primary or not by_name.keys() >= set(primary):
            return None
        columns = {}
        for name in primary:
            column = self.pairing.key[by_name[name]]
            values = _VALUES.get((_kind(column.type), column.form))
            if values is None:
                return None
            columns[name] = values([key[by_name[name]] for key in keys], column.type)
        return pa.table(columns)


def _kind(t: DataType) -> str:
    return "BYTES" if t.root in BINARY_ROOTS else t.root


def _whole_numbers(texts: Sequence[str], t: DataType) -> Array:
    return column_of([int(text) for text in texts], t)


def _texts(texts: Sequence[str], t: DataType) -> Array:
    return column_of(texts, t)


def _bytes(texts: Sequence[str], t: DataType) -> Array:
    return column_of([bytes.fromhex(text) for text in texts], t)


def _decimals(texts: Sequence[str], t: DataType) -> Array:
    numbers: Array = pa.array(texts, pa.string()).cast(to_arrow_type(t))
    return numbers


def _signed(texts: Sequence[str], t: DataType) -> Array:
    numbers = pa.array(map(int, texts), pa.uint64())
    return numbers.view(pa.int64())


_VALUES: Mapping[tuple[str, Form], Callable[[Sequence[str], DataType], Array]] = {
    **{(root, Form.AS_IS): _whole_numbers for root in WHOLE_NUMBERS},
    ("VARCHAR", Form.AS_IS): _texts,
    ("STRING", Form.AS_IS): _texts,
    ("BYTES", Form.AS_IS): _bytes,
    ("DECIMAL", Form.AS_IS): _decimals,
    ("BIGINT", Form.UNSIGNED): _signed,
}
