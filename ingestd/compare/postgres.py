"""The SQL dialect of PostgreSQL, with canonical texts for the types that Debezium sends."""

import re
from collections.abc import Callable, Mapping, Sequence

from ingestd.compare.canonical import HASH_DIGITS, NULL_CELL, PART_DIGITS, Form
from ingestd.compare.column_pairs import DatabaseColumn, Key
from ingestd.compare.dialect import Condition, Connection, HashedRows, Server
from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

SETTINGS = (
    "SET default_transaction_read_only = on",
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
    "SET extra_float_digits = 1",
    "SET enable_seqscan = off",
    "SET enable_sort = off",
)
"""Settings of a session: every statement is a read-only transaction of its own.

A page is read by the index of the primary key. Without the last two, a page of a table whose rows
are not stored in the order of their keys would read the whole table.
"""
ROW_VERSION = "xmin::text"
RANDOM_ID = "gen_random_uuid()::text"
_DEFAULT_SCHEMA = "public"
_OLDEST = 140_000
"""The oldest supported `server_version_num`: the first version with exact seconds in timestamps."""
SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
  current_database()::text, (SELECT oid::text FROM pg_database WHERE datname = current_database())
"""
COLUMNS = """
SELECT a.attname,
  format_type(b.oid, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END),
  b.typtype, a.attgenerated <> '',
  coalesce(l.collname IN ('C', 'POSIX', 'ucs_basic') OR l.collname = 'default' AND (
    SELECT datcollate IN ('C', 'POSIX') AND coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c'
    FROM pg_database d WHERE datname = current_database()), false)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
  AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname = ANY(%s) ORDER BY 1, 2
"""
KEY = """
SELECT a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(number, position)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE n.nspname = %s AND c.relname = %s AND i.indisprimary ORDER BY k.position
"""
POSITION = """
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
  ELSE pg_current_wal_lsn() END::text
"""
SLOTS = """
SELECT slot_name, confirmed_flush_lsn >= %s::pg_lsn, active, confirmed_flush_lsn::text
FROM pg_replication_slots
WHERE slot_type = 'logical' AND database = current_database() AND NOT temporary
"""
_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_TEXTS = frozenset(
    {"text", "character varying", "citext", "name", "uuid", "json", "jsonb", "xml", "enum",
     "ltree", "macaddr", "macaddr8", "cidr", "inet"}
)  # fmt: skip
_TIMESTAMPS = frozenset({"timestamp without time zone", "timestamp with time zone"})
_ORDERED = frozenset({"uuid", "bytea", "boolean"})
_NOT_THEIR_TEXT = frozenset({"real", "double precision", "time without time zone", "bit"})
"""Types whose canonical text a cast does not convert back to a value."""
_COLLATED = frozenset({"text", "character varying"})
_LENGTHS = re.compile(r"\([\d, -]*\)")
_INFINITE_MICROS = (9_223_372_036_825_200_000, -9_223_372_036_832_400_000)
"""The microseconds that Debezium sends for infinite timestamps."""
_INFINITE_DAYS = (2**31 - 1, -(2**31))


def read_server(connection: Connection) -> Server:
    """Return the server of a connection. Raises ConfigError if it is not supported."""
    [(version, encoding, database, identity)] = connection.query(SERVER)
    if version < _OLDEST:
        raise ConfigError("PostgreSQL before version 14 computes times in floating point")
    if encoding != "UTF8":
        raise ConfigError(f"the database has the encoding {encoding}; only UTF8 can be compared")
    return Server(str(database), str(identity))


def read_columns(connection: Connection, schema: str, name: str) -> list[DatabaseColumn]:
    """Return the columns of a table in order; [] if it does not exist."""
    return [source_column(*row) for row in connection.query(COLUMNS, (schema, name))]


def read_key(connection: Connection, schema: str, name: str) -> tuple[str, ...]:
    """Return the primary key columns of a table, in key order; () if it has no primary key."""
    return tuple(str(column) for (column,) in connection.query(KEY, (schema, name)))


def list_tables(connection: Connection, schemas: Sequence[str]) -> list[tuple[str, str]]:
    """Return the (schema, name) of each table in some schemas, sorted.

    Views are left out, and so are partitions, whose rows are those of their parent tables.
    """
    rows = connection.query(TABLES, (list(schemas),))
    return [(str(schema), str(name)) for schema, name in rows]


def name_in_source(source_table: QualifiedSourceTable, database: str) -> tuple[str, str] | None:
    """Return the schema and name of a source table; None if it is in another database.

    A connection reads the tables of one database.
    """
    if source_table.database not in (None, database):
        return None
    return source_table.schema or _DEFAULT_SCHEMA, source_table.table


def identifier(name: str) -> str:
    """Quote a name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted(name: str) -> str:
    """Quote a name for a statement with parameters, in which `%` is doubled."""
    return identifier(name).replace("%", "%%")


def literal(text: str) -> str:
    """Return the SQL string literal of a text."""
    return "'" + text.replace("'", "''") + "'"


def source_column(
    name: str, type_text: str, category: str, generated: bool, is_collated: bool
) -> DatabaseColumn:
    """Describe a column of PostgreSQL, given the values of a row of the query `COLUMNS` in order.

    `type_text` is the type with its length, `category` is `pg_type.typtype` of the type or of its
    base type ("e" for an enum), `generated` is whether values are computed, and `is_collated`
    whether its collation sorts texts by their bytes.
    """
    kind = "enum" if category == "e" else _LENGTHS.sub("", type_text).strip()
    is_number = kind in _INTEGERS | {"date"} or kind in _TIMESTAMPS
    ordered = is_number or kind in _ORDERED or (kind in _COLLATED and is_collated)
    unpublished = "generated columns are not in the change stream" if generated else ""
    return DatabaseColumn(name, kind, type_text, ordered, is_number, unpublished)


def text_sql(column: DatabaseColumn, t: DataType) -> tuple[str, Form] | None:
    """Return the SQL of a column's canonical text, and the form of the column in the lake.

    `t` is the column's type in the lake. Returns None if the column cannot be compared.
    """
    expression = _text(quoted(column.name), column.kind, column.type_text, t)
    if expression is None:
        return None
    kind = column.kind.removesuffix("[]")
    target = t if t.element is None else t.element
    form = Form.AS_IS
    if target.root in CHARACTER_ROOTS:
        form = {"character": Form.PADDED, "numeric": Form.NUMBER}.get(kind, Form.AS_IS)
    return expression, form


def key_sql(column: DatabaseColumn, t: DataType) -> str | None:
    """Return the SQL of a key column's value, with its canonical text as the parameter `%s`.

    `t` is the column's type in the lake. Returns None if pages of a table cannot be bounded by
    values of the column.
    """
    if column.kind == "date":
        return _infinite_or("date", "date '1970-01-01' + v", *_INFINITE_DAYS)
    if column.kind in _TIMESTAMPS:
        zone = "timestamptz" if column.kind.endswith("with time zone") else "timestamp"
        day, unit = 86_400 * _UNITS_OF_SECOND[_unit(t)], _UNITS[_unit(t)]
        # An interval is multiplied in floating point: exact for days and for the rest of one.
        steps = f"v / {day} * interval '1 day' + mod(v, {day}) * interval '1 {unit}'"
        value = f"{zone} '1970-01-01 00:00:00+00' + {steps}"
        return _infinite_or(zone, value, *_infinite_numbers(t))
    if column.kind == "bytea":
        return "decode(%s, 'hex')"
    if column.kind in _NOT_THEIR_TEXT or column.kind.endswith("[]"):
        return None
    return f"%s::{column.type_text.replace('%', '%%')}"


def hashed_rows(table: str, where: str, texts: Sequence[str]) -> HashedRows:
    """Return the FROM clause and the canonical texts for a query of row hashes.

    `table` is the quoted name, `where` a WHERE clause with a leading space or "", and `texts` the
    SQL of the canonical text of each column. The subquery has OFFSET 0, so that the planner
    computes each text only once.
    """
    names = [f"c{number}" for number in range(len(texts))]
    selected = ", ".join(f"{text} AS {name}" for text, name in zip(texts, names, strict=True))
    return HashedRows(f"(SELECT {selected} FROM {table}{where} OFFSET 0) r", names)


def hash_sql(texts: Sequence[str]) -> str:
    """Return the SQL of the hash of a row, given the SQL of its columns' canonical texts.

    The hash is an integer of 60 bits.
    """
    return f"('x' || {_digits(texts, HASH_DIGITS)})::bit({HASH_DIGITS * 4})::bigint"


def part_sql(texts: Sequence[str]) -> str:
    """Return the SQL of a key's hash partition, given the SQL of its canonical texts.

    The partition is a text of three hexadecimal digits.
    """
    return _digits(texts, PART_DIGITS)


def bound(columns: Sequence[str], operator: str, values: Sequence[str], key: Key) -> Condition:
    """Return the condition that keys are greater (`>`) or not greater (`<=`) than `key`.

    It consists of the SQL and its parameters. `columns` are the quoted key columns; `values` is the
    SQL of each value, with one parameter.
    """
    return f"({', '.join(columns)}) {operator} ({', '.join(values)})", list(key)


def listed(columns: Sequence[str], values: Sequence[str], keys: Sequence[Key]) -> Condition:
    """Return the SQL condition that a key is one of `keys` (at least one), and its parameters.

    `columns` are the quoted key columns; `values` is the SQL of each value, with one parameter.
    """
    rows = ", ".join([f"({', '.join(values)})"] * len(keys))
    return f"({', '.join(columns)}) IN ({rows})", [text for key in keys for text in key]


def _digits(texts: Sequence[str], count: int) -> str:
    """Return the SQL of the first `count` hexadecimal digits, up to 16, of the hash of texts."""
    digest = f"sha256(convert_to({_cells(texts)}, 'UTF8'))"
    return f"left(encode(substring({digest}, 1, 8), 'hex'), {count})"


def _cells(texts: Sequence[str]) -> str:
    return " || ".join(map(_cell, texts))


def _cell(text: str) -> str:
    return f"coalesce(octet_length({text})::text || ':' || {text}, '{NULL_CELL}')"


def _text(name: str, kind: str, type_text: str, t: DataType) -> str | None:
    if kind.endswith("[]"):
        return _array(name, kind.removesuffix("[]"), type_text.removesuffix("[]"), t)
    if t.root in CHARACTER_ROOTS:
        return _character(name, kind)
    if kind == "bytea":
        return f"encode({name}, 'hex')" if t.root in BINARY_ROOTS else None
    if t.root == "BOOLEAN":
        bit = kind == "bit" and type_text in ("bit", "bit(1)")
        return f"{name}::text" if kind == "boolean" else f"({name} = B'1')::text" if bit else None
    if t.root in INTEGER_ROOTS and kind in _INTEGERS:
        return f"{name}::text"
    convert = _BY_ROOT.get(t.root)
    return None if convert is None else convert(name, kind, t)


def _array(name: str, kind: str, type_text: str, t: DataType) -> str | None:
    inner = None if t.element is None else _text("e", kind, type_text, t.element)
    if inner is None:
        return None
    items = f"string_agg({_cell(inner)}, '' ORDER BY o)"
    cells = f"SELECT coalesce({items}, '') FROM unnest({name}) WITH ORDINALITY u(e, o)"
    return f"CASE WHEN {name} IS NOT NULL THEN ({cells}) END"


def _character(name: str, kind: str) -> str | None:
    if kind == "numeric":
        return f"trim_scale({name})::text"
    if kind == "character":
        return f"rtrim({name}::text)"
    if kind == "inet":  # a cast adds the length of the mask to every address
        return f"textin(inet_out({name}))"
    return f"{name}::text" if kind in _TEXTS | _INTEGERS else None


def _decimal(name: str, kind: str, t: DataType) -> str | None:
    if kind in _INTEGERS | {"numeric"}:
        return f"round({name}::numeric, {t.scale})::text"
    return None


def _double(name: str, kind: str, t: DataType) -> str | None:
    if kind in {"real", "double precision", "numeric"}:
        return f"encode(float8send({name}::float8 + 0), 'hex')"
    return None


def _float(name: str, kind: str, t: DataType) -> str | None:
    return f"encode(float4send(({name} + 0::real)::real), 'hex')" if kind == "real" else None


def _date(name: str, kind: str, t: DataType) -> str | None:
    days = f"({name} - date '1970-01-01')::text"
    return _finite_or(name, days, *_INFINITE_DAYS) if kind == "date" else None


def _time(name: str, kind: str, t: DataType) -> str | None:
    """Return the SQL of a time of day in milliseconds, or in microseconds for an integer type.

    For a column of another kind the result is None.
    """
    units = 1_000_000 if t.root in INTEGER_ROOTS else 1_000
    seconds = f"floor(extract(epoch FROM {name}) * {units})::bigint::text"
    return seconds if kind == "time without time zone" else None


def _timestamp(name: str, kind: str, t: DataType) -> str | None:
    if kind == "timestamp without time zone" and t.root == "TIMESTAMP_LTZ":
        return None
    if kind not in _TIMESTAMPS:
        return None
    text = f"floor(extract(epoch FROM {name}) * {_UNITS_OF_SECOND[_unit(t)]})::text"
    return _finite_or(name, text, *_infinite_numbers(t))


def _finite_or(name: str, text: str, late: int, early: int) -> str:
    """Return the SQL of `text`, or of the numbers `late` and `early` for infinite values."""
    return (
        f"CASE WHEN isfinite({name}) THEN {text} WHEN {name} = 'infinity' THEN '{late}'"
        f" WHEN {name} = '-infinity' THEN '{early}' END"
    )


def _infinite_or(kind: str, value: str, late: int, early: int) -> str:
    """Return the SQL of a date or timestamp, given its number as a parameter.

    The numbers `late` and `early` stand for infinite values. For all other numbers `v`, `value` is
    the SQL of the result.
    """
    number = "int" if kind == "date" else "bigint"
    infinite = f"WHEN {late} THEN {kind} 'infinity' WHEN {early} THEN {kind} '-infinity'"
    return f"(SELECT CASE v {infinite} ELSE {value} END FROM (SELECT %s::{number}) p(v))"


def _infinite_numbers(t: DataType) -> tuple[int, int]:
    """Return the numbers of infinite timestamps in the unit of a type."""
    late, early = (micros * _UNITS_OF_SECOND[_unit(t)] // 1_000_000 for micros in _INFINITE_MICROS)
    return late, early


def _unit(t: DataType) -> str:
    arrow_type = to_arrow_type(t)
    return str(getattr(arrow_type, "unit", "us"))


_UNITS_OF_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_UNITS = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
_BY_ROOT: Mapping[str, Callable[[str, str, DataType], str | None]] = {
    **dict.fromkeys(TIMESTAMP_ROOTS, _timestamp),
    "BIGINT": _time,
    "TIME": _time,
    "DATE": _date,
    "DECIMAL": _decimal,
    "DOUBLE": _double,
    "FLOAT": _float,
}
