"""Parse and encode schema files, and create the schema of a new table.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#schema
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.changelog_checks import check_changelog_options
from ingestd.paimon.spec.data_types import (
    DataField,
    DataType,
    encode_field,
    max_field_id,
    parse_field,
)
from ingestd.paimon.spec.document_checks import check_seal, refuse_misspelt
from ingestd.paimon.spec.file_options import with_orc_zone
from ingestd.paimon.spec.merge_checks import check_merge_options
from ingestd.paimon.spec.record_level_expire import check_record_level_expire
from ingestd.paimon.spec.schema_rules import check_schema
from ingestd.paimon.spec.table_schema import SCHEMA_VERSION, TableSchema, reassign_ids

_KEYS = (
    "version", "id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options",
    "comment", "timeMillis",
)  # fmt: skip


def parse_schema(data: bytes, source: str) -> TableSchema:
    """Parse a schema file. Raises FormatError, naming `source`, if it is invalid."""
    try:
        check_seal(data)
        document = json.loads(data)
        refuse_misspelt(document.keys(), _KEYS)
        return _from_document(document)
    except FormatError as error:
        raise FormatError(f"schema file {source}: {error.message}") from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FormatError(f"schema file {source} cannot be read: {error!r}") from error


def _from_document(document: Mapping[str, Any]) -> TableSchema:
    version = int(document.get("version", 1))
    if version > SCHEMA_VERSION:
        raise FormatError(f"version {version} is newer than {SCHEMA_VERSION}")
    options = {str(key): str(value) for key, value in (document.get("options") or {}).items()}
    if version <= 1:
        options.setdefault(honoured.BUCKET.name, "1")
    if version < SCHEMA_VERSION:
        options.setdefault(honoured.FILE_FORMAT.name, "orc")
    fields = tuple(map(parse_field, document["fields"]))
    for what, several in (("name", [f.name for f in fields]), ("id", [f.id for f in fields])):
        if len(set(several)) < len(several):
            raise FormatError(f"two columns have the same {what}")
    keys = {*document["partitionKeys"], *document["primaryKeys"]}
    strangers = sorted(keys - {column.name for column in fields})
    if strangers:
        raise FormatError(f"keys {strangers} are not among its columns")
    return TableSchema(
        id=int(document["id"]),
        fields=fields,
        highest_field_id=int(document["highestFieldId"]),
        partition_keys=tuple(document["partitionKeys"]),
        primary_keys=tuple(document["primaryKeys"]),
        options=options,
        comment=document.get("comment"),
        time_millis=int(document.get("timeMillis", 0)),
    )


def encode_schema(schema: TableSchema) -> bytes:
    """Return the bytes of a schema file.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#schema
    """
    document: dict[str, Any] = {
        "version": schema.version,
        "id": schema.id,
        "fields": [encode_field(column) for column in schema.fields],
        "highestFieldId": schema.highest_field_id,
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(schema.options),
    }
    if schema.comment is not None:
        document["comment"] = schema.comment
    document["timeMillis"] = schema.time_millis
    return json.dumps(document, indent=2, ensure_ascii=False).encode()


def new_schema(
    columns: Sequence[tuple[str, DataType]],
    primary_keys: Sequence[str],
    partition_keys: Sequence[str],
    options: Mapping[str, str],
    time_millis: int,
    comment: str | None = None,
) -> TableSchema:
    """Return the first schema of a table, with id 0.

    Primary key columns become NOT NULL. Field ids are assigned from 0: a column gets its id before
    the fields nested in it, but a nested field after the fields nested in it. The keys may be given
    by the options `primary-key` and `partition` instead of the arguments. `time_millis` is the
    creation time in milliseconds since 1970, `comment` the comment of the table (None: no comment).
    Raises SchemaConflictError for invalid columns and keys, ConfigError for invalid options and for
    keys that are given twice.
    """
    remaining = with_orc_zone(options)
    primary = _keys_from(remaining, "primary-key", primary_keys)
    partition = _keys_from(remaining, "partition", partition_keys)
    ids = itertools.count()
    fields = tuple(
        DataField(next(ids), name, reassign_ids(t.not_null() if name in primary else t, ids))
        for name, t in columns
    )
    check_schema(fields, primary, partition, remaining)
    schema = TableSchema(
        id=0,
        fields=fields,
        highest_field_id=max_field_id(fields),
        partition_keys=partition,
        primary_keys=primary,
        options=remaining,
        comment=comment,
        time_millis=time_millis,
    )
    check_merge_options(schema)
    check_changelog_options(schema)
    check_record_level_expire(schema)
    return schema


def _keys_from(options: dict[str, str], name: str, declared: Sequence[str]) -> tuple[str, ...]:
    text = options.pop(name, None)
    if text is None:
        return tuple(declared)
    if declared:
        raise ConfigError(
            f"option '{name}' is set to '{text}', but keys {list(declared)} are given"
        )
    return tuple(column.strip() for column in text.split(",") if column.strip())
