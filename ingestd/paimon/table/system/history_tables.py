"""System tables of the history of a table: snapshots, tags, schemas, options.

Columns are those of Java's system tables, version 1.4.

Specification: https://paimon.apache.org/docs/1.4/concepts/system-tables/#snapshots-table
"""

import json
from collections.abc import Sequence

from ingestd.paimon.spec.civil_dates import days_since_1970
from ingestd.paimon.spec.data_types import DataField, DataType
from ingestd.paimon.spec.schema import encode_schema
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import schema_ids
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    tag_bytes,
    tag_names,
    tagged_snapshot,
)
from ingestd.paimon.table.retention.consumers import consumers

Cells = tuple[object, ...]


def columns(*named: tuple[str, str]) -> tuple[DataField, ...]:
    """Return fields with ids from 0, given by name and type; a type may end with NOT NULL.

    TIMESTAMP has precision 3, and ARRAY has elements of type STRING.
    """
    fields = []
    for i, (name, text) in enumerate(named):
        root = text.removesuffix(" NOT NULL")
        precision = 3 if root == "TIMESTAMP" else None
        element = DataType("STRING") if root == "ARRAY" else None
        nullable = root == text
        fields.append(DataField(i, name, DataType(root, nullable, precision, element=element)))
    return tuple(fields)


SNAPSHOTS = columns(
    ("snapshot_id", "BIGINT NOT NULL"), ("schema_id", "BIGINT NOT NULL"),
    ("commit_user", "STRING NOT NULL"), ("commit_identifier", "BIGINT NOT NULL"),
    ("commit_kind", "STRING NOT NULL"), ("commit_time", "TIMESTAMP NOT NULL"),
    ("base_manifest_list", "STRING NOT NULL"), ("delta_manifest_list", "STRING NOT NULL"),
    ("changelog_manifest_list", "STRING"), ("total_record_count", "BIGINT"),
    ("delta_record_count", "BIGINT"), ("changelog_record_count", "BIGINT"),
    ("watermark", "BIGINT"), ("next_row_id", "BIGINT"),
)  # fmt: skip
TAGS = columns(
    ("tag_name", "STRING NOT NULL"), ("snapshot_id", "BIGINT NOT NULL"),
    ("schema_id", "BIGINT NOT NULL"), ("commit_time", "TIMESTAMP NOT NULL"),
    ("record_count", "BIGINT"), ("create_time", "TIMESTAMP"), ("time_retained", "STRING"),
)  # fmt: skip
SCHEMAS = columns(
    ("schema_id", "BIGINT NOT NULL"), ("fields", "STRING NOT NULL"),
    ("partition_keys", "STRING NOT NULL"), ("primary_keys", "STRING NOT NULL"),
    ("options", "STRING NOT NULL"), ("comment", "STRING"), ("update_time", "TIMESTAMP NOT NULL"),
)  # fmt: skip
OPTIONS = columns(("key", "STRING NOT NULL"), ("value", "STRING NOT NULL"))
CONSUMERS = columns(("consumer_id", "STRING NOT NULL"), ("next_snapshot_id", "BIGINT NOT NULL"))
AGGREGATION_FIELDS = columns(
    ("field_name", "STRING NOT NULL"), ("field_type", "STRING NOT NULL"), ("function", "STRING"),
    ("function_options", "STRING"), ("comment", "STRING"),
)  # fmt: skip
BRANCHES = columns(("branch_name", "STRING NOT NULL"), ("create_time", "TIMESTAMP"))


def snapshot_rows(table: FileStoreTable) -> list[Cells]:
    """Return the rows of `snapshots`, oldest first.

    Raises FormatError if a snapshot file is damaged.
    """
    ids = snapshot_ids(table.io, table.paths)
    snapshots = (find_snapshot(table.io, table.paths, id_) for id_ in ids)
    return [_snapshot(snapshot) for snapshot in snapshots if snapshot is not None]


def _snapshot(snapshot: Snapshot) -> Cells:
    return (
        snapshot.id, snapshot.schema_id, snapshot.commit_user, snapshot.commit_identifier,
        snapshot.commit_kind.value, snapshot.time_millis, snapshot.base_manifest_list,
        snapshot.delta_manifest_list,
        snapshot.changelog_manifest_list, snapshot.total_record_count, snapshot.delta_record_count,
        snapshot.changelog_record_count, snapshot.watermark, snapshot.next_row_id,
    )  # fmt: skip


def tag_rows(table: FileStoreTable) -> list[Cells]:
    """Return the rows of the system table `tags`, ordered by tag name.

    Raises FormatError if the file of a tag is damaged.
    """
    return [_tag(table, name) for name in tag_names(table.io, table.paths)]


def _tag(table: FileStoreTable, name: str) -> Cells:
    snapshot = tagged_snapshot(table, name)
    document = json.loads(tag_bytes(table.io, table.paths, name))
    created, retained = document.get("tagCreateTime"), document.get("tagTimeRetained")
    return (
        name, snapshot.id, snapshot.schema_id, snapshot.time_millis, snapshot.total_record_count,
        _millis(created),
        None if retained is None else _duration(retained),
    )  # fmt: skip


def _millis(parts: Sequence[int] | None) -> int | None:
    """Return a time without a zone, in Java's JSON form, as milliseconds since 1970.

    `parts` are numbers from the year to the nanoseconds; zeros at the end may be left out. Returns
    None for None.
    """
    if parts is None:
        return None
    numbers = [*parts, *[0] * 7][:7]
    days = days_since_1970(*numbers[:3])
    seconds = ((days * 24 + numbers[3]) * 60 + numbers[4]) * 60 + numbers[5]
    return seconds * 1000 + numbers[6] // 1_000_000


def _duration(seconds: float) -> str:
    """Return a duration as Java prints it: PT1H30M, PT0.5S."""
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    parts = f"{int(hours)}H" if hours else ""
    parts += f"{int(minutes)}M" if minutes else ""
    parts += f"{left:g}S" if left or not parts else ""
    return f"PT{parts}"


def schema_rows(table: FileStoreTable) -> list[Cells]:
    """Return the rows of `schemas`, oldest first.

    Raises FormatError if a schema file is damaged.
    """
    return [_schema(table, schema_id) for schema_id in schema_ids(table.io, table.paths)]


def _schema(table: FileStoreTable, schema_id: int) -> Cells:
    schema = table.schemas(schema_id)
    document = json.loads(encode_schema(schema))
    texts = (
        json.dumps(document[name], ensure_ascii=False, separators=(",", ":"))
        for name in ("fields", "partitionKeys", "primaryKeys", "options")
    )
    return (schema.id, *texts, schema.comment, schema.time_millis)


def option_rows(table: FileStoreTable) -> list[Cells]:
    """Return the rows of the system table `options`, ordered by option name."""
    return sorted(table.schema.options.items())


def aggregation_field_rows(table: FileStoreTable) -> list[Cells]:
    """Return the rows of `aggregation_fields`: each column, with its options `fields.COLUMN.*`."""
    options: dict[str, list[tuple[str, str]]] = {field.name: [] for field in table.schema.fields}
    for name, value in option_rows(table):
        parts = str(name).split(".")
        if len(parts) > 2 and parts[0] == "fields" and parts[1] in options:
            options[parts[1]].append((str(name), str(value)))
    return [
        (
            field.name, str(field.type),
            f"[{', '.join(value for _, value in options[field.name])}]",
            f"[{', '.join(name for name, _ in options[field.name])}]", field.description,
        )
        for field in table.schema.fields
    ]  # fmt: skip


def consumer_rows(table: FileStoreTable) -> list[Cells]:
    """Return the rows of `consumers`, by name.

    Raises FormatError, naming the file, if a consumer file is damaged.
    """
    return list(consumers(table).items())


def branch_rows(table: FileStoreTable) -> list[Cells]:
    """Return the rows of `branches`, by name; the creation time of a branch is unknown (null)."""
    return [(name, None) for name in branch_names(table.io, table.paths)]
