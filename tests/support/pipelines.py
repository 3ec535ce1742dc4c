"""Configurations of pipelines for tests, as the documents that `ingestd run -c` reads."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.state import DatabaseTable

DATABASE = "ods"


def pipeline(
    folder: Path,
    bootstrap: str,
    topics: str,
    *,
    name: str = "shop",
    options: Mapping[str, str] | None = None,
    tables: Mapping[str, Any] | None = None,
    batch_rows: int = 500_000,
    **sections: Any,
) -> dict[str, Any]:
    """One source of Debezium JSON whose topics match a pattern, into the warehouse in `folder`."""
    return {
        "pipeline": {"name": name, "trigger": "200ms"},
        "warehouse": {"path": str(folder / "warehouse"), "database": DATABASE},
        "sources": {
            "shop": {
                "kafka": {"bootstrap.servers": bootstrap},
                "topic-pattern": topics,
                "format": "debezium-json",
                "max-offsets-per-trigger": batch_rows,
            }
        },
        "defaults": {"options": dict(options or {})},
        "tables": dict(tables or {}),
        **sections,
    }


_ARRAY = "[]"
_PLAIN = {
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "oid": "BIGINT",
    "boolean": "BOOLEAN",
    "bit(1)": "BOOLEAN",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "money": "DECIMAL(38, 2)",
    "numeric": "DECIMAL(38, 12)",
    "date": "DATE",
    "time(3) without time zone": "TIME(3)",
    "time without time zone": "BIGINT",
    "interval": "BIGINT",
    "timestamp without time zone": "TIMESTAMP(6)",
    "timestamp(0) without time zone": "TIMESTAMP(3)",
    "timestamp(3) without time zone": "TIMESTAMP(3)",
    "timestamp with time zone": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "bytea": "BYTES",
    "bit(8)": "BYTES",
    "bit varying(12)": "BYTES",
}


def declared_types(table: DatabaseTable) -> dict[str, Any]:
    """The types that an operator would declare for messages without a schema.

    Key columns too; whatever has no counterpart is text.
    """
    return {name: _declared(kind) for name, kind in table.types.items()}


def _declared(kind: str) -> Any:
    if kind.endswith(_ARRAY):
        return {"type": "ARRAY", "element": _declared(kind.removesuffix(_ARRAY))}
    decimal = re.fullmatch(r"numeric\((\d+),(-?\d+)\)", kind)
    if decimal:
        return f"DECIMAL({decimal[1]}, {decimal[2]})"
    return _PLAIN.get(kind, "STRING")
