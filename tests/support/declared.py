"""Types that a user declares for the captured database, since plain JSON does not show them."""

import re
from typing import Any

from tests.support.state import database_tables

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


def declared_types(table: str) -> dict[str, Any]:
    """Column -> Paimon type for the columns of a table such as ``shop.orders``."""
    return {
        name: paimon
        for name, kind in database_tables()[table].types.items()
        if (paimon := _declared(kind)) is not None
    }


def _declared(kind: str) -> Any:
    if kind.endswith("[]"):
        element = _declared(kind[:-2]) or "STRING"
        return {"type": "ARRAY", "element": element}
    if match := re.fullmatch(r"numeric\((\d+),(\d+)\)", kind):
        return f"DECIMAL({match[1]}, {match[2]})"
    if match := re.fullmatch(r"time\(([0-3])\) without time zone", kind):
        return "TIME(3)"
    if match := re.fullmatch(r"timestamp\(([0-3])\) without time zone", kind):
        return "TIMESTAMP(3)"
    if re.fullmatch(r"bit\(\d+\)|bit varying(\(\d+\))?", kind) and kind != "bit(1)":
        return "BYTES"
    return DECLARED.get(kind)
