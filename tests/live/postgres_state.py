"""What a PostgreSQL holds, in the form that `tests.support.state` compares tables with."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.support.postgres_client import PostgresClient
from tests.support.state import DatabaseTable

_TABLES = """
SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname = '{schema}' ORDER BY 3
"""
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_KEY = """
SELECT a.attname FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(n, o)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n
WHERE i.indrelid = {oid} AND i.indisprimary ORDER BY k.o
"""
_INTEGERS = {"smallint", "integer", "bigint", "oid"}
_FLOATS = {"real", "double precision"}


def read_tables(client: PostgresClient, schema: str) -> dict[str, DatabaseTable]:
    """All tables of a schema by name, as of one moment."""
    client.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL IntervalStyle = 'iso_8601'")
    tables = {}
    for oid, namespace, name in client.run(_TABLES.format(schema=schema)):
        types = {str(c): str(t) for c, t in client.run(_COLUMNS.format(oid=oid))}
        key = tuple(str(column) for (column,) in client.run(_KEY.format(oid=oid)))
        cells = ", ".join(_text_of(quoted(c), kind) for c, kind in types.items())
        found = client.run(f"SELECT {cells} FROM {quoted(schema)}.{quoted(str(name))}")
        rows = [
            {c: _value(cell, types[c]) for c, cell in zip(types, row, strict=True)} for row in found
        ]
        tables[str(name)] = DatabaseTable(f"{namespace}.{name}", key, types, rows)
    client.run("COMMIT")
    return tables


def quoted(name: str) -> str:
    """A name as SQL takes it whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def expected_type(kind: str) -> Any:
    """The type of a column that messages with schemas tell, without nullability."""
    if kind.endswith("[]"):
        return {"type": "ARRAY", "element": expected_type(kind.removesuffix("[]"))}
    if match := re.fullmatch(r"numeric\((\d+),(\d+)\)", kind):
        return f"DECIMAL({match[1]}, {match[2]})"
    return _EXPECTED.get(kind, "STRING")


_EXPECTED: Mapping[str, str] = {
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "bytea": "BYTES",
    "timestamp(3) without time zone": "TIMESTAMP(3)",
    "timestamp without time zone": "TIMESTAMP(6)",
    "timestamp with time zone": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
}


def _text_of(column: str, kind: str) -> str:
    if kind.endswith("[]"):
        items = (
            f"(SELECT json_agg(e::text ORDER BY o) FROM unnest({column}) WITH ORDINALITY u(e, o))"
        )
        return f"CASE WHEN {column} IS NOT NULL THEN coalesce({items}, '[]')::text END"
    if kind == "bytea":
        return f"encode({column}, 'hex')"
    return f"{column}::text"


def _value(text: str | None, kind: str) -> Any:
    if text is None:
        return None
    if kind.endswith("[]"):
        return [_value(item, kind.removesuffix("[]")) for item in json.loads(text)]
    if kind in _INTEGERS:
        return int(text)
    if kind in _FLOATS:
        return text if text in {"NaN", "Infinity", "-Infinity"} else float(text)
    if kind == "boolean":
        return text in {"true", "t"}
    if kind.startswith("timestamp"):
        return text.replace(" ", "T").replace("+00", "Z")
    return text
