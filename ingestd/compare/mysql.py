"""The SQL dialect of MySQL and MariaDB.

Rows have no version in these databases, and comparisons of row values do not use an index.
"""

from collections.abc import Sequence

from ingestd.compare import mysql_texts
from ingestd.compare.canonical import HASH_DIGITS, NULL_CELL, PART_DIGITS, Form
from ingestd.compare.column_pairs import DatabaseColumn, Key
from ingestd.compare.dialect import Condition, Connection, HashedRows, Server
from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType

ROW_VERSION = "''"
RANDOM_ID = "uuid()"
SETTINGS = (
    "SET SESSION TRANSACTION READ ONLY",
    "SET time_zone = '+00:00'",
    "SET sql_mode = ''",
)
"""Settings of a session: every statement is a read-only transaction of its own."""
SERVER = "SELECT database(), version(), @@server_id, @@hostname, @@port"
COLUMNS = """
SELECT column_name, lower(data_type), lower(column_type), is_nullable = 'YES',
  coalesce(collation_name, '')
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s
ORDER BY ordinal_position
"""
KEY = """
SELECT column_name FROM information_schema.key_column_usage
WHERE table_schema = %s AND table_name = %s AND constraint_name = 'PRIMARY'
ORDER BY ordinal_position
"""
TABLES = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND table_schema IN ({}) ORDER BY 1, 2
"""
_BYTE_ORDER = ("nopad_bin", "0900_bin")
"""Ends of collations that sort by code point and do not pad."""
_UNICODE = ("utf8mb4_", "utf8mb3_", "utf8_", "ascii_")
_NUMBERS = mysql_texts.INTEGERS | mysql_texts.DATETIMES | {"date", "year"}
_BOUNDABLE = _NUMBERS | mysql_texts.TEXTS | mysql_texts.BYTES | {"decimal", "uuid"}


def read_server(connection: Connection) -> Server:
    """Return the server of a connection.

    Raises ConfigError if its version is not supported, or if the connection has no database.
    """
    [(database, version, server_id, host, port)] = connection.query(SERVER)
    if database is None:
        raise ConfigError("name the database in the URL: mysql://USER@HOST:PORT/DATABASE")
    major = int(str(version).partition(".")[0])
    if major < 8:
        raise ConfigError(f"the database is version {version}; MySQL 8.0 or MariaDB 10 is needed")
    return Server(str(database), f"{server_id}@{host}:{port}")


def read_columns(connection: Connection, schema: str, name: str) -> list[DatabaseColumn]:
    """Return the columns of a table; [] if it does not exist or may not be read."""
    return [_column(*row) for row in connection.query(COLUMNS, (schema, name))]


def read_key(connection: Connection, schema: str, name: str) -> tuple[str, ...]:
    """Return the primary key columns of a table, in key order; () if it has no primary key."""
    return tuple(str(column) for (column,) in connection.query(KEY, (schema, name)))


def list_tables(connection: Connection, schemas: Sequence[str]) -> list[tuple[str, str]]:
    """Return the (schema, name) of each table in some databases, sorted, without views.

    A database is a schema.
    """
    if not schemas:
        return []
    sql = TABLES.format(", ".join(["%s"] * len(schemas)))
    return [(str(schema), str(name)) for schema, name in connection.query(sql, schemas)]


def name_in_source(source_table: QualifiedSourceTable, database: str) -> tuple[str, str] | None:
    """Return the database and name of a source table, never None.

    A connection reads the tables of all databases of a server.
    """
    return source_table.database or source_table.schema or database, source_table.table


def identifier(name: str) -> str:
    """Quote a name as an identifier, in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quoted(name: str) -> str:
    """Quote a name for a statement with parameters, in which `%` is doubled."""
    return identifier(name).replace("%", "%%")


def literal(text: str) -> str:
    """Return the SQL string literal of a text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def text_sql(column: DatabaseColumn, t: DataType) -> tuple[str, Form] | None:
    """Return the SQL of a column's canonical text, and the form of the column in the lake.

    `t` is the column's type in the lake. Returns None if the column cannot be compared.
    """
    return mysql_texts.text_sql(quoted(column.name), column, t)


def key_sql(column: DatabaseColumn, t: DataType) -> str | None:
    """Return the SQL of a key column's value, with its canonical text as the parameter `%s`.

    `t` is the column's type in the lake. Returns None if pages of a table cannot be bounded by
    values of the column.
    """
    if column.kind not in _BOUNDABLE or t.root == "BOOLEAN":
        return None
    if column.kind in mysql_texts.INTEGERS | {"year"}:
        return f"cast(%s AS {'unsigned' if mysql_texts.is_unsigned(column) else 'signed'})"
    if column.kind == "date":
        return "(cast('1970-01-01' AS date) + INTERVAL %s DAY)"
    if column.kind in mysql_texts.DATETIMES:
        unit = getattr(to_arrow_type(t), "unit", "us")
        micros = {"s": "%s * 1000000", "ms": "%s * 1000", "us": "%s"}.get(unit)
        start = "cast('1970-01-01' AS datetime(6))"
        return None if micros is None else f"({start} + INTERVAL {micros} MICROSECOND)"
    if column.kind in mysql_texts.BYTES:
        return "unhex(%s)"
    if column.kind == "decimal":
        return None if t.root == "DOUBLE" else f"cast(%s AS {column.type_text.split()[0]})"
    return "%s"


def hashed_rows(table: str, where: str, texts: Sequence[str]) -> HashedRows:
    """Return the FROM clause and the canonical texts for a query of row hashes.

    `table` is the quoted name, `where` a WHERE clause with a leading space or "", and `texts` the
    SQL of the canonical text of each column. The rows are not selected by a derived table, which
    the server would write to a temporary table.
    """
    return HashedRows(f"{table}{where}", texts)


def hash_sql(texts: Sequence[str]) -> str:
    """Return the SQL of the hash of a row, given the SQL of its columns' canonical texts.

    The hash is an unsigned integer of 60 bits, null for a row longer than `max_allowed_packet`.
    """
    return f"cast(conv(left(sha2({_cells(texts)}, 256), {HASH_DIGITS}), 16, 10) AS unsigned)"


def part_sql(texts: Sequence[str]) -> str:
    """Return the SQL of a key's hash partition, given the SQL of its canonical texts.

    The partition is a text of three hexadecimal digits.
    """
    return f"left(sha2({_cells(texts)}, 256), {PART_DIGITS})"


def bound(columns: Sequence[str], operator: str, values: Sequence[str], key: Key) -> Condition:
    """Return the condition that keys are greater (`>`) or not greater (`<=`) than `key`.

    It consists of the SQL and its parameters. `columns` are the quoted key columns; `values` is the
    SQL of each value, with one parameter. Each column is compared under the condition that the
    columns before it are equal, because comparisons of row values do not use an index.
    """
    last = len(columns) - 1
    alternatives: list[str] = []
    parameters: list[str] = []
    for number, column in enumerate(columns):
        equal = [f"{columns[before]} = {values[before]}" for before in range(number)]
        strict = operator if number == last else operator.removesuffix("=")
        alternatives.append(" AND ".join([*equal, f"{column} {strict} {values[number]}"]))
        parameters += key[: number + 1]
    return f"({' OR '.join(f'({part})' for part in alternatives)})", parameters


def listed(columns: Sequence[str], values: Sequence[str], keys: Sequence[Key]) -> Condition:
    """Return the SQL condition that a key is one of `keys` (at least one), and its parameters.

    `columns` are the quoted key columns; `values` is the SQL of each value, with one parameter.
    """
    parameters = [text for key in keys for text in key]
    if len(columns) == 1:
        return f"{columns[0]} IN ({', '.join([values[0]] * len(keys))})", parameters
    pairs = zip(columns, values, strict=True)
    row = " AND ".join(f"{column} = {value}" for column, value in pairs)
    return f"({' OR '.join([f'({row})'] * len(keys))})", parameters


def _column(
    name: str, kind: str, type_text: str, is_nullable: int, collation: str
) -> DatabaseColumn:
    is_number = kind in _NUMBERS
    by_code_point = collation.startswith(_UNICODE) and collation.endswith(_BYTE_ORDER)
    is_ordered = is_number or kind in mysql_texts.BYTES or by_code_point
    if kind in ("enum", "set"):
        is_ordered = False
    return DatabaseColumn(
        name, kind, type_text, is_ordered, is_number, is_nullable=bool(is_nullable)
    )


def _cells(texts: Sequence[str]) -> str:
    cells = (
        f"coalesce(concat(octet_length({text}), ':', {text}), '{NULL_CELL}')" for text in texts
    )
    return f"concat({', '.join(cells)})"
