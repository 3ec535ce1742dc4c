"""Read a source table: pages of hashes, hashes of rows, and whole rows, as canonical texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ingestd.compare import postgres
from ingestd.compare.column_pairs import ComparedColumn, DatabaseTable, Key, Pairing
from ingestd.compare.drivers import Connection
from ingestd.compare.throttle import Throttle
from ingestd.errors import ConfigError

Part = str
"""A part of a page: the first digits of the hashes of its keys, or "" if keys have an order."""
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
    """A range of keys in the order of the database, with the digests of its parts."""

    keys: KeyRange
    digests: dict[Part, Digest] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Return the number of rows in the database."""
        return sum(count for count, _ in self.digests.values())


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of the database, and its version, which changes with every update."""

    texts: Texts
    version: str


def check_server(connection: Connection) -> tuple[str, str]:
    """Return the name and the OID of a database.

    Raises ConfigError if its version or encoding is not supported.
    """
    [(version, encoding, database, identity)] = connection.query(postgres.SERVER)
    if version < postgres.OLDEST:
        raise ConfigError("PostgreSQL before version 14 computes times in floating point")
    if encoding != "UTF8":
        raise ConfigError(f"the database has the encoding {encoding}; only UTF8 can be compared")
    return str(database), str(identity)


def read_source_table(connection: Connection, schema: str, name: str) -> DatabaseTable:
    """Return the columns and the primary key of a table.

    Raises MissingTableError if it does not exist or may not be read.
    """
    rows = connection.query(postgres.COLUMNS, (schema, name))
    if not rows:
        raise MissingTableError(f"the source has no table {schema}.{name}, or it may not be read")
    columns = [postgres.source_column(*row) for row in rows]
    key = tuple(str(column) for (column,) in connection.query(postgres.KEY, (schema, name)))
    return DatabaseTable(schema, name, {column.name: column for column in columns}, key)


def list_source_tables(connection: Connection, schemas: Sequence[str]) -> list[tuple[str, str]]:
    """Return the schemas and names of all tables in some schemas; a partition is not a table."""
    rows = connection.query(postgres.TABLES, (list(schemas),))
    return [(str(schema), str(name)) for schema, name in rows]


class SourceReader:
    """A reader of one table, by statements of a bounded number of rows, at a bounded rate."""

    def __init__(
        self, connection: Connection, table: DatabaseTable, pairing: Pairing, throttle: Throttle
    ) -> None:
        self._connection = connection
        self._pairing = pairing
        self._throttle = throttle
        self._from = f"{postgres.quoted(table.schema)}.{postgres.quoted(table.name)}"
        self._key = [postgres.quoted(column.source.name) for column in pairing.key]
        texts = [f"{column.text_sql} AS c{number}" for number, column in enumerate(pairing.columns)]
        self._texts = ", ".join(texts)
        cells = [postgres.cell_sql(f"c{number}") for number in range(len(texts))]
        self._hash = postgres.hash_sql(" || ".join(cells))
        key_cells = " || ".join(cells[: pairing.key_size])
        self._part = "''" if pairing.is_ordered else postgres.part_sql(key_cells)

    def pages(self, keys: KeyRange, size: int) -> Iterator[Page]:
        """Yield the pages of a range of keys, of `size` rows each; the last page has fewer rows."""
        low = keys.low
        while True:
            high = self._bound(KeyRange(low, keys.high), size)
            # The last page extends to the end of the range, to include keys that only the lake has.
            bounds = KeyRange(low, high or keys.high)
            yield Page(bounds, self._digests(bounds))
            if high is None:
                return
            low = high

    def hashes(self, page: Page, parts: Sequence[Part]) -> dict[Key, int]:
        """Return the hashes of the rows in some parts of a page, by key."""
        where, parameters = self._where(page.keys)
        size = self._pairing.key_size
        names = ", ".join(f"c{number}" for number in range(size))
        sql = (
            f"SELECT {names}, {self._hash} FROM ({self._select(where)}) r "
            f"WHERE {self._part} = ANY(%s)"
        )
        rows = self._connection.query(sql, (*parameters, list(parts)))
        self._throttle.took(page.rows)
        return {tuple(row[:size]): row[size] for row in rows}

    def rows(self, keys: Sequence[Key]) -> dict[Key, SourceRow]:
        """Return the rows with the given keys, by key. Keys without a row are left out."""
        rows_by_key: dict[Key, SourceRow] = {}
        size = self._pairing.key_size
        texts = ", ".join(column.text_sql for column in self._pairing.columns)
        for chunk in chunks(keys, _KEYS_OF_STATEMENT):
            listed = ", ".join([self._tuple(self._values())] * len(chunk))
            where = f"{self._tuple(self._key)} IN ({listed})"
            sql = f"SELECT xmin::text, {texts} FROM {self._from} WHERE {where}"
            for version, *row in self._connection.query(
                sql, [value for key in chunk for value in key]
            ):
                rows_by_key[tuple(row[:size])] = SourceRow(tuple(row), str(version))
            self._throttle.took(len(chunk))
        return rows_by_key

    def _bound(self, keys: KeyRange, size: int) -> Key | None:
        """Return the key of the last row of a page of `size` rows, or None if fewer rows remain."""
        where, parameters = self._where(keys)
        names = ", ".join(column.text_sql for column in self._pairing.key)
        order = ", ".join(self._key)
        # ORDER BY prefers names of the result, and the text of a column has the name of the column.
        row = f"SELECT {order} FROM {self._from}{where} ORDER BY {order} OFFSET %s LIMIT 1"
        sql = f"SELECT {names} FROM ({row}) r"
        rows = self._connection.query(sql, (*parameters, size - 1))
        return tuple(rows[0]) if rows else None

    def _digests(self, keys: KeyRange) -> dict[Part, Digest]:
        where, parameters = self._where(keys)
        sql = (
            f"SELECT part, count(*), sum(hash)::text FROM (SELECT {self._part} AS part, "
            f"{self._hash} AS hash FROM ({self._select(where)}) r) d GROUP BY part"
        )
        rows = self._connection.query(sql, parameters)
        digests = {str(part): (int(count), int(total)) for part, count, total in rows}
        self._throttle.took(sum(count for count, _ in digests.values()))
        return digests

    def _select(self, where: str) -> str:
        # With OFFSET 0 the planner computes each text only once.
        return f"SELECT {self._texts} FROM {self._from}{where} OFFSET 0"

    def _where(self, keys: KeyRange) -> tuple[str, list[str]]:
        bounds = [(">", keys.low), ("<=", keys.high)]
        given = [(operator, key) for operator, key in bounds if key is not None]
        key_tuple, values = self._tuple(self._key), self._tuple(self._values())
        conditions = [f"{key_tuple} {operator} {values}" for operator, _ in given]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return where, [text for _, key in given for text in key]

    def _values(self) -> list[str]:
        return [_key_sql(column) for column in self._pairing.key]

    @staticmethod
    def _tuple(items: Sequence[str]) -> str:
        return f"({', '.join(items)})"


def _key_sql(column: ComparedColumn) -> str:
    return postgres.key_sql(column.source, column.type)


def chunks(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """Yield parts of a sequence, of at most `size` items."""
    return (items[start : start + size] for start in range(0, len(items), size))
