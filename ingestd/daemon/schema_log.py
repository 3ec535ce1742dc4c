"""A bounded history of schema changes since the start, for the status page."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ingestd.paimon.spec.data_types import DataType, encode_type
from ingestd.paimon.spec.schema import TableSchema

_KEPT = 20


@dataclass(frozen=True, slots=True)
class SchemaChanged:
    """One change of a table's schema; `at` in seconds since 1970, `what` is a description."""

    at: float
    table: str
    schema_id: int
    what: str


class SchemaLog:
    """The schemas of tables and their changes. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, TableSchema] = {}
        self._changes: deque[SchemaChanged] = deque(maxlen=_KEPT)

    def opened(self, schemas: Mapping[str, TableSchema], now: float) -> None:
        """Set the schemas at the start of a run; another writer may have changed them since."""
        for table, schema in schemas.items():
            if table in self._known:
                self.seen(table, schema, now)
            self._known[table] = schema

    def seen(self, table: str, schema: TableSchema, now: float) -> None:
        """Note the schema of a commit."""
        known = self._known.get(table)
        if known is not None and known.id == schema.id:
            return
        what = f"new, {len(schema.fields)} columns"
        if known is not None:
            what = "; ".join(_differences(known, schema)) or "options or comments"
        self._known[table] = schema
        self._changes.append(SchemaChanged(now, table, schema.id, what))

    def schema_id(self, table: str) -> int | None:
        """Return the id of the newest schema; None if no schema is known."""
        return self._known[table].id if table in self._known else None

    def document(self) -> list[dict[str, Any]]:
        """Return all changes for /status, newest first."""
        return [
            {
                "at": change.at,
                "table": change.table,
                "schema_id": change.schema_id,
                "what": change.what,
            }
            for change in reversed(self._changes)
        ]


def _differences(before: TableSchema, after: TableSchema) -> Iterator[str]:
    """Yield added, renamed, changed and dropped columns, matched by field id."""
    old = {field.id: field for field in before.fields}
    new = {field.id: field for field in after.fields}
    for number, field in new.items():
        was = old.get(number)
        if was is None:
            yield f"added {field.name} {_text(field.type)}"
        elif was.name != field.name:
            yield f"renamed {was.name} to {field.name}"
        if was is not None and was.type != field.type:
            yield f"{field.name} from {_text(was.type)} to {_text(field.type)}"
    for number, field in old.items():
        if number not in new:
            yield f"dropped {field.name}"


def _text(of: DataType) -> str:
    text = encode_type(of)
    return text if isinstance(text, str) else of.root
