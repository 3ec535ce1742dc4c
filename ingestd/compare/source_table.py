"""Read a source table: digests of pages, hashes of rows, and rows as canonical texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ingestd.compare.column_pairs import DatabaseTable, Key, Pairing
from ingestd.compare.dialect import Connection
from ingestd.compare.throttle import Throttle
from ingestd.errors import ConfigError, UnsupportedError

Part = str
"""A hash partition of keys, named by the first digits of their hashes; "" if keys have an order."""
Digest = tuple[int, int]
"""The number of rows, and the sum of their hashes."""
Texts = tuple[str | None, ...]
"""The canonical texts of a row."""
_KEYS_OF_STATEMENT = 500
_T = TypeVar("_T")


class MissingTableError(ConfigError):
    """The source has no table of this name, or the user may not read it."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys after `low` up to and including `high`; None is the beginning or the end."""

    low: Key | None = None
    high: Key | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page: a range of keys in the order of the database, with digests of its rows.

    `digests` maps each part of the page to the number of its rows and the sum of their hashes. A
    page has a single part if keys have an order, and otherwise a part for each hash partition of
    its keys.
    """

    keys: KeyRange
    digests: dict[Part, Digest] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of rows that the page had in the database."""
        return sum(count for count, _ in self.digests.values())


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of the source database: its canonical texts, and its version.

    Every update changes the version, except in a database whose rows have none.
    """

    texts: Texts
    version: str


def read_source_table(connection: Connection, schema: str, name: str) -> DatabaseTable:
    """Return the columns and the primary key of a table.

    Raises MissingTableError if it does not exist or may not be read.
    """
    columns = connection.dialect.read_columns(connection, schema, name)
    if not columns:
        raise MissingTableError(f"the source has no table {schema}.{name}, or it may not be read")
    key = connection.dialect.read_key(connection, schema, name)
    return DatabaseTable(schema, name, {column.name: column for column in columns}, key)


class SourceReader:
    """Reads one source table with statements of bounded size, at a bounded rate.

    Methods raise SourceError if a statement fails, SchemaMovedError if a column or the table does
    not exist.
    """

    def __init__(
        self, connection: Connection, table: DatabaseTable, pairing: Pairing, throttle: Throttle
    ) -> None:
        self._connection, self._dialect = connection, connection.dialect
        self._table, self._pairing = table, pairing
        self._throttle = throttle
        quoted = self._dialect.quoted
        self._from = f"{quoted(table.schema)}.{quoted(table.name)}"
        self._key = [quoted(column.source.name) for column in pairing.key]
        self._values = [
            str(self._dialect.key_sql(column.source, column.type)) for column in pairing.key
        ]
        self._texts = [column.text_sql for column in pairing.columns]

    def pages(self, keys: KeyRange, size: int) -> Iterator[Page]:
        """Yield the pages of a range of keys, of `size` rows each; the last has fewer, maybe none.

        The last page extends to the end of the range. The database reads each row twice: for the
        bound of its page, and for its hash. Raises UnsupportedError for rows that are too long to
        be hashed.
        """
        low = keys.low
        while True:
            high = self._bound(KeyRange(low, keys.high), size)
            # The last page extends to the end of the range, to include keys that only the lake has.
            bounds = KeyRange(low, high or keys.high)
            page = Page(bounds, self._digests(bounds))
            self._throttle.took(2 * page.rows)
            yield page
            if high is None:
                return
            low = high

    def hashes(self, page: Page, parts: Sequence[Part]) -> dict[Key, int]:
        """Return the hashes of the rows in `parts` (at least one) of a page, by key."""
        rows, parameters = self._hashed(page.keys)
        size = self._pairing.key_size
        names = ", ".join(f"k{number}" for number in range(size))
        listed = ", ".join(["%s"] * len(parts))
        sql = f"SELECT {names}, hash FROM ({rows}) d WHERE part IN ({listed})"
        hashes = self._connection.query(sql, (*parameters, *parts))
        self._throttle.took(page.rows)
        return {tuple(row[:size]): row[size] for row in hashes}

    def rows(self, keys: Sequence[Key]) -> dict[Key, SourceRow]:
        """Return the rows with the given keys, by key. Keys without a row are left out."""
        rows_by_key: dict[Key, SourceRow] = {}
        size = self._pairing.key_size
        selected = ", ".join([self._dialect.ROW_VERSION, *self._texts])
        for chunk in chunks(keys, _KEYS_OF_STATEMENT):
            condition, parameters = self._dialect.listed(self._key, self._values, chunk)
            sql = f"SELECT {selected} FROM {self._from} WHERE {condition}"
            for version, *row in self._connection.query(sql, parameters):
                rows_by_key[tuple(row[:size])] = SourceRow(tuple(row), str(version))
            self._throttle.took(len(chunk))
        return rows_by_key

    def _bound(self, keys: KeyRange, size: int) -> Key | None:
        """Return the key of the last row of a page of `size` rows, or None if fewer rows remain."""
        where, parameters = self._where(keys)
        names = ", ".join(column.text_sql for column in self._pairing.key)
        order = ", ".join(self._key)
        # ORDER BY prefers names of the result, and the text of a column has the name of the column.
        row = f"SELECT {order} FROM {self._from}{where} ORDER BY {order} LIMIT 1 OFFSET %s"
        sql = f"SELECT {names} FROM ({row}) r"
        rows = self._connection.query(sql, (*parameters, size - 1))
        return tuple(rows[0]) if rows else None

    def _digests(self, keys: KeyRange) -> dict[Part, Digest]:
        """Return the digests of a range. Raises UnsupportedError for rows that have no hash."""
        rows, parameters = self._hashed(keys)
        sql = f"SELECT part, count(*), sum(hash), count(hash) FROM ({rows}) d GROUP BY part"
        results = self._connection.query(sql, parameters)
        if any(count != hashed for _, count, _, hashed in results):
            raise UnsupportedError(
                f"{self._table} has rows longer than max_allowed_packet of the server"
            )
        return {str(part): (int(count), int(total)) for part, count, total, _ in results}

    def _hashed(self, keys: KeyRange) -> tuple[str, list[str]]:
        """Return the SQL of the keys, parts and hashes of a range of rows, and its parameters."""
        where, parameters = self._where(keys)
        rows = self._dialect.hashed_rows(self._from, where, self._texts)
        key = rows.texts[: self._pairing.key_size]
        part = "''" if self._pairing.is_ordered else self._dialect.part_sql(key)
        names = [f"{text} AS k{number}" for number, text in enumerate(key)]
        hashed = [*names, f"{part} AS part", f"{self._dialect.hash_sql(rows.texts)} AS hash"]
        return f"SELECT {', '.join(hashed)} FROM {rows.source}", parameters

    def _where(self, keys: KeyRange) -> tuple[str, list[str]]:
        bounds = [(">", keys.low), ("<=", keys.high)]
        conditions = [
            self._dialect.bound(self._key, operator, self._values, key)
            for operator, key in bounds
            if key is not None
        ]
        where = f" WHERE {' AND '.join(sql for sql, _ in conditions)}" if conditions else ""
        return where, [text for _, parameters in conditions for text in parameters]


def chunks(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """Return an iterator over consecutive parts of a sequence, of at most `size` items."""
    return (items[start : start + size] for start in range(0, len(items), size))
