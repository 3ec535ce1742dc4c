"""Parse and encode statistics files, the results of ANALYZE for a whole table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ingestd.errors import FormatError

_NUMBERS = ("distinct_count", "null_count", "avg_len", "max_len")
_TEXTS = ("min", "max")
_JSON_NAMES = {
    "id": "colId", "distinct_count": "distinctCount", "min": "min", "max": "max",
    "null_count": "nullCount", "avg_len": "avgLen", "max_len": "maxLen",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """Statistics of one column; None means unknown. `min` and `max` are texts.

    `avg_len` and `max_len` are the lengths of non-null values: characters of texts, bytes of binary
    values, else the size of the type.
    """

    name: str
    id: int
    distinct_count: int | None = None
    min: str | None = None
    max: str | None = None
    null_count: int | None = None
    avg_len: int | None = None
    max_len: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the known statistics of the column by their keys in the file."""
        pairs = ((json_name, getattr(self, name)) for name, json_name in _JSON_NAMES.items())
        return {name: value for name, value in pairs if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatistics:
    """Statistics of a table as of a snapshot: of its merged rows, and of its columns.

    `merged_record_size` is in bytes. None means unknown.
    """

    snapshot_id: int
    schema_id: int
    merged_record_count: int | None
    merged_record_size: int | None
    columns: tuple[ColumnStatistics, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the statistics as the JSON document of a statistics file."""
        figures = {
            "snapshotId": self.snapshot_id,
            "schemaId": self.schema_id,
            "mergedRecordCount": self.merged_record_count,
            "mergedRecordSize": self.merged_record_size,
        }
        known = {name: value for name, value in figures.items() if value is not None}
        return {**known, "colStats": {column.name: column.document() for column in self.columns}}


def encode_statistics(statistics: TableStatistics) -> bytes:
    """Return the bytes of a statistics file."""
    return json.dumps(statistics.document(), indent=2, ensure_ascii=False).encode()


def parse_statistics(data: bytes, source: str) -> TableStatistics:
    """Parse a statistics file.

    Raises FormatError, naming `source`, if it is invalid. Unknown keys are ignored.
    """
    try:
        document = json.loads(data)
        return TableStatistics(
            snapshot_id=int(document["snapshotId"]),
            schema_id=int(document["schemaId"]),
            merged_record_count=_number(document, "mergedRecordCount"),
            merged_record_size=_number(document, "mergedRecordSize"),
            columns=tuple(
                _column(name, column_document)
                for name, column_document in (document.get("colStats") or {}).items()
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FormatError(f"statistics file {source} cannot be read: {error!r}") from error


def _column(name: str, document: Mapping[str, Any]) -> ColumnStatistics:
    values: dict[str, Any] = {}
    for field in fields(ColumnStatistics):
        if field.name in _TEXTS and document.get(field.name) is not None:
            values[field.name] = str(document[field.name])
        elif field.name in _NUMBERS:
            values[field.name] = _number(document, _JSON_NAMES[field.name])
    return ColumnStatistics(name=name, id=int(document["colId"]), **values)


def _number(document: Mapping[str, Any], name: str) -> int | None:
    value = document.get(name)
    return None if value is None else int(value)
