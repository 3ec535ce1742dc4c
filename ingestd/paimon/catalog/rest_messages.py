"""Messages to a REST catalog: schemas, schema changes and commits as JSON.

The functions only convert values to documents and back.

Specification: https://paimon.apache.org/docs/1.4/concepts/rest/rest-api/
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ingestd.errors import FormatError, StorageError
from ingestd.paimon.spec.data_types import encode_field, encode_type, max_field_id, parse_field
from ingestd.paimon.spec.schema import parse_schema
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    ColumnPath,
    DropColumn,
    DropPrimaryKey,
    Move,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ingestd.paimon.spec.snapshot import Snapshot, encode_snapshot
from ingestd.paimon.spec.table_schema import SCHEMA_VERSION, TableSchema
from ingestd.paimon.table.metadata.catalog_commit import PartitionChange

Document = dict[str, Any]
"""A JSON object of a request or a response."""
_SERVER_OPTIONS = frozenset({"path"})
"""Options that servers add to a schema and that repeat other parts of the response."""


@dataclass(frozen=True, slots=True)
class StorageToken:
    """Credentials of a store that a REST catalog hands out.

    `options` are pairs of the name and the value of an option of the store. `expires_at` is the
    time when the credentials expire, in seconds since 1970.
    """

    options: frozenset[tuple[str, str]] = field(repr=False)
    expires_at: float


def token_of(response: Mapping[str, Any], source: str) -> StorageToken:
    """Return the credentials of a table's store in a server's response.

    Raises StorageError, naming `source`, if the response has none.
    """
    token, expires_at = response.get("token"), response.get("expiresAtMillis")
    if not isinstance(token, dict) or type(expires_at) is not int:
        raise StorageError(f"{source} responds without 'token' and 'expiresAtMillis'")
    options = frozenset((str(name), str(value)) for name, value in token.items())
    return StorageToken(options, expires_at / 1000)


def schema_document(schema: TableSchema) -> Document:
    """Return the schema document of a request that creates a table."""
    return {
        "fields": [encode_field(field) for field in schema.fields],
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(schema.options),
        "comment": schema.comment,
    }


def schema_of(response: Mapping[str, Any], source: str) -> TableSchema:
    """Return the schema of a server's response.

    Its time is 0, since servers state only that of the table. The schema must not be altered by the
    client, because only the server knows which field ids were ever used. Raises FormatError, naming
    `source`, if it is invalid.
    """
    try:
        return parse_schema(json.dumps(_schema_file(response)).encode(), source)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"schema of {source} cannot be read: {type(error).__name__}") from error


def _schema_file(response: Mapping[str, Any]) -> Document:
    schema = response.get("schema") or {}
    fields = schema.get("fields") or []
    options = {k: v for k, v in (schema.get("options") or {}).items() if k not in _SERVER_OPTIONS}
    return {
        "version": SCHEMA_VERSION,
        "id": response.get("schemaId"),
        "fields": fields,
        "highestFieldId": max_field_id(tuple(map(parse_field, fields))) if fields else -1,
        "partitionKeys": schema.get("partitionKeys") or [],
        "primaryKeys": schema.get("primaryKeys") or [],
        "options": options,
        "comment": schema.get("comment"),
    }


def commit_document(
    table_id: str, snapshot: Snapshot, changes: Iterable[PartitionChange]
) -> Document:
    """Return the document of a request that commits a snapshot.

    `table_id` is the server's id of the table, `changes` are the changes of its partitions.
    """
    return {
        "tableId": table_id,
        "snapshot": json.loads(encode_snapshot(snapshot)),
        "statistics": [
            {
                "spec": dict(change.spec),
                "recordCount": change.record_count,
                "fileSizeInBytes": change.file_size,
                "fileCount": change.file_count,
                "lastFileCreationTime": change.last_file_creation_ms,
                "totalBuckets": change.total_buckets,
            }
            for change in changes
        ],
    }


def rollback_document(snapshot_id: int, tag: str | None) -> Document:
    """Return the document of a request that rolls a table back to a snapshot.

    If `tag` is not None, the table is rolled back to the snapshot of this tag.
    """
    if tag is not None:
        return {"instant": {"type": "tag", "tagName": tag}}
    return {"instant": {"type": "snapshot", "snapshotId": snapshot_id}}


def change_document(change: SchemaChange) -> Document:
    """Return a schema change as an element of a request that alters a table."""
    action, write = _CHANGES[type(change)]
    return {"action": action, **cast("Callable[[SchemaChange], Document]", write)(change)}


def _path(name: ColumnPath) -> list[str]:
    return [name] if isinstance(name, str) else list(name)


def _move(name: ColumnPath, move: Move | None) -> Document | None:
    if move is None:
        return None
    return {
        "fieldName": _path(name)[-1],
        "referenceFieldName": move.reference,
        "type": move.type.value.upper(),
    }


def _add_column(change: AddColumn) -> Document:
    return {
        "fieldNames": _path(change.name),
        "dataType": encode_type(change.type),
        "comment": change.comment,
        "move": _move(change.name, change.move),
    }


def _column_type(change: UpdateColumnType) -> Document:
    return {
        "fieldNames": _path(change.name),
        "newDataType": encode_type(change.type),
        "keepNullability": change.keep_nullability,
    }


def _of_column(member: str, attribute: str) -> Callable[[Any], Document]:
    """Return an encoder of changes of one column property.

    The property is `attribute` in the change, and `member` in the request.
    """
    return lambda change: {
        "fieldNames": _path(change.name),
        member: getattr(change, attribute),
    }


_CHANGES: Mapping[type, tuple[str, Callable[..., Document]]] = {
    AddColumn: ("addColumn", _add_column),
    UpdateColumnType: ("updateColumnType", _column_type),
    RenameColumn: ("renameColumn", _of_column("newName", "new_name")),
    DropColumn: ("dropColumn", lambda change: {"fieldNames": _path(change.name)}),
    UpdateColumnNullability: (
        "updateColumnNullability",
        _of_column("newNullability", "nullable"),
    ),
    UpdateColumnComment: ("updateColumnComment", _of_column("newComment", "comment")),
    UpdateColumnDefaultValue: (
        "updateColumnDefaultValue",
        _of_column("newDefaultValue", "default_value"),
    ),
    UpdateColumnPosition: (
        "updateColumnPosition",
        lambda change: {"move": _move(change.name, change.move)},
    ),
    SetOption: ("setOption", lambda change: {"key": change.key, "value": change.value}),
    RemoveOption: ("removeOption", lambda change: {"key": change.key}),
    UpdateComment: ("updateComment", lambda change: {"comment": change.comment}),
    DropPrimaryKey: ("dropPrimaryKey", lambda _: {}),
}
