"""Types that a user declares for the captured databases, since plain JSON does not show them."""

import re
from collections.abc import Mapping
from typing import Any

from tests.support import corpus
from tests.support.state import DatabaseTable, database_tables

DECLARED = {
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "oid": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "money": "DECIMAL(19, 2)",
    "date": "DATE",
    "bytea": "BYTES",
    "bit(1)": "BOOLEAN",
    "interval": "BIGINT",
    "time without time zone": "BIGINT",
    "timestamp without time zone": "TIMESTAMP(6)",
    "timestamp with time zone": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
}
OF_MARIADB = {
    "tinyint": "SMALLINT",
    "mediumint": "INT",
    "int": "BIGINT",
    "bigint": "BIGINT",
    "year": "INT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bit": "BYTES",
    "binary": "BYTES",
    "varbinary": "BYTES",
    "blob": "BYTES",
    "date": "DATE",
    "time": "BIGINT",
    "datetime": "TIMESTAMP(6)",
    "timestamp": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
}
# What json-connect sends in another way than json: times have milliseconds, and 24:00:00 is none of
# TIME; intervals and binary values are text.
CONNECT = {
    "interval": "STRING",
    "bytea": "STRING",
    "time without time zone": "INT",
    "timestamp without time zone": "TIMESTAMP(3)",
    "time": "TIME(3)",
    "datetime": "TIMESTAMP(3)",
    "bigint unsigned": "DECIMAL(20, 0)",
}


def declared_types(table: str) -> dict[str, Any]:
    """Column -> Paimon type for the columns of a table such as ``shop.orders``."""
    return types_of(database_tables()[table], "json")


def types_of(table: DatabaseTable, mode: corpus.Mode) -> dict[str, Any]:
    """Column -> Paimon type for the columns of a table of either database."""
    other = CONNECT if mode == "json-connect" else {}
    return {
        name: paimon
        for name, kind in table.types.items()
        if (paimon := _declared(kind, other)) is not None
    }


def _declared(kind: str, other: Mapping[str, str]) -> Any:
    if kind.endswith("[]"):
        element = _declared(kind[:-2], other) or "STRING"
        return {"type": "ARRAY", "element": element}
    if match := re.fullmatch(r"(?:numeric|decimal)\((\d+),(\d+)\)", kind):
        return f"DECIMAL({match[1]}, {match[2]})"
    if match := re.fullmatch(r"time\(([0-3])\) without time zone", kind):
        return "TIME(3)"
    if match := re.fullmatch(r"timestamp\(([0-3])\) without time zone", kind):
        return "TIMESTAMP(3)"
    if re.fullmatch(r"bit\(\d+\)|bit varying(\(\d+\))?", kind) and kind != "bit(1)":
        return "BYTES"
    plain = re.sub(r"\(.*?\)", "", kind)
    return other.get(plain) or DECLARED.get(kind) or OF_MARIADB.get(plain.removesuffix(" unsigned"))
