"""The interface of the SQL dialects of source databases.

A dialect is a module; `connect` of `ingestd.compare.drivers` chooses it by the scheme of the URL.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ingestd.compare.canonical import Form
from ingestd.compare.column_pairs import DatabaseColumn, Key
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.paimon.spec.data_types import DataType

Rows = list[tuple[Any, ...]]
Condition = tuple[str, list[str]]
"""A condition in SQL, and its parameters."""


class Connection(Protocol):
    """A session with the source database; every statement is a read-only transaction of its own."""

    @property
    def dialect(self) -> "SqlDialect":
        """The SQL dialect of the connected database."""

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Return the rows of a statement; each `%s` in it stands for a parameter.

        Raises SourceError if it fails; SchemaMovedError if a column or table does not exist.
        """

    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True, slots=True)
class Server:
    """The database of a connection, and a text that identifies its server in progress files."""

    database: str
    identity: str


@dataclass(frozen=True, slots=True)
class HashedRows:
    """The source of a query that hashes rows.

    `source` is the text after FROM. `texts` are SQL expressions of the canonical text of each
    compared column.
    """

    source: str
    texts: Sequence[str]


class SqlDialect(Protocol):
    """The SQL dialect of a source database.

    `ROW_VERSION` is the SQL of a text that changes with every update of a row, or a constant if the
    database has no such text. `RANDOM_ID` is the SQL of a unique text.
    """

    @property
    def ROW_VERSION(self) -> str:  # noqa: N802
        """The SQL of a text that changes with each update of a row; a constant if there is none."""

    @property
    def RANDOM_ID(self) -> str:  # noqa: N802
        """The SQL of a text that is unique in each evaluation."""

    def read_server(self, connection: Connection) -> Server:
        """Return the server of a connection. Raises ConfigError if it is not supported."""

    def read_columns(
        self, connection: Connection, schema: str, name: str
    ) -> Sequence[DatabaseColumn]:
        """Return the columns of a table; [] if it does not exist or may not be read."""

    def read_key(self, connection: Connection, schema: str, name: str) -> tuple[str, ...]:
        """Return the primary key columns of a table, in key order; () if it has no primary key."""

    def list_tables(
        self, connection: Connection, schemas: Sequence[str]
    ) -> Sequence[tuple[str, str]]:
        """Return the (schema, name) of each table in some schemas, sorted, without views."""

    def name_in_source(
        self, source_table: QualifiedSourceTable, database: str
    ) -> tuple[str, str] | None:
        """Return the schema and name of a source table, or None.

        The result is None if a connection to `database` cannot read the table.
        """

    def identifier(self, name: str) -> str:
        """Quote a name as an identifier."""

    def quoted(self, name: str) -> str:
        """Quote a name for a statement with parameters, in which `%` is doubled."""

    def literal(self, text: str) -> str:
        """Return the SQL string literal of a text."""

    def text_sql(self, column: DatabaseColumn, t: DataType) -> tuple[str, Form] | None:
        """Return the SQL of a column's canonical text, and the form of the column in the lake.

        `t` is the column's type in the lake. Returns None if the column cannot be compared.
        """

    def key_sql(self, column: DatabaseColumn, t: DataType) -> str | None:
        """Return the SQL of a key column's value, with its canonical text as the parameter `%s`.

        `t` is the column's type in the lake. Returns None if pages of a table cannot be bounded by
        values of the column.
        """

    def hashed_rows(self, table: str, where: str, texts: Sequence[str]) -> HashedRows:
        """Return the source of a query that hashes the rows of a table.

        `table` is the quoted name, `where` a WHERE clause with a leading space or "", and `texts`
        the SQL of the canonical text of each column.
        """

    def hash_sql(self, texts: Sequence[str]) -> str:
        """Return the SQL of the hash of a row, given the SQL of its columns' canonical texts.

        The hash is an integer of 60 bits, that of `canonical.hash_of`; null if it cannot be
        computed.
        """

    def part_sql(self, texts: Sequence[str]) -> str:
        """Return the SQL of a key's hash partition, given the SQL of its canonical texts.

        The partition is a text of three hexadecimal digits, that of `canonical.part_of`.
        """

    def bound(
        self, columns: Sequence[str], operator: str, values: Sequence[str], key: Key
    ) -> Condition:
        """Return the condition that keys are greater (`>`) or not greater (`<=`) than `key`.

        It consists of the SQL and its parameters. `columns` are the quoted key columns; `values` is
        the SQL of each value, with one parameter.
        """

    def listed(
        self, columns: Sequence[str], values: Sequence[str], keys: Sequence[Key]
    ) -> Condition:
        """Return the SQL condition that a key is one of `keys` (at least one), and its parameters.

        `columns` are the quoted key columns; `values` is the SQL of each value, with one parameter.
        """
