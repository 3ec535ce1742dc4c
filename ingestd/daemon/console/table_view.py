"""The view of one table: its schema, schema changes, snapshots, files and compactions."""

from collections.abc import Mapping
from typing import Any

from ingestd.daemon.console.elements import change, number, table, text, time_tag
from ingestd.daemon.console.table_details import TableDetails
from ingestd.daemon.recent_history import type_text
from ingestd.wording import counted

_NO_COMPACTION = {False: "none since the start", True: "done by another process"}


def table_view(name: str, details: TableDetails | str) -> str:
    """Return the console's view of the table `name` as HTML.

    `details` is an error message if they could not be read.
    """
    title = f"<h2>{text(name)}</h2>"
    if isinstance(details, str):
        return f'{title}<ul class="health"><li class="bad">{text(details)}</li></ul>'
    sections = (_columns, _schemas, _snapshots, _files)
    return title + "".join(section(details) for section in sections)


def _columns(details: TableDetails) -> str:
    schema = details.schema
    rows = (
        (
            text(column.name),
            text(type_text(column.type)),
            "key" if column.name in schema.primary_keys else "",
            "partition" if column.name in schema.partition_keys else "",
            text(column.description or ""),
        )
        for column in schema.fields
    )
    head = ("column", "type", "primary key", "partition key", "comment")
    title = f"Schema {schema.id}, {counted(len(schema.fields), 'column')}"
    return table("columns", title, head, rows, "no column", long=head[4:])


def _schemas(details: TableDetails) -> str:
    rows = (
        (number(schema_id), time_tag(at), text(what))
        for schema_id, at, what in details.schema_changes
    )
    head = ("schema", "time", "what changed")
    return table("schemas", "Schema changes", head, rows, "none", long=head[2:])


def _snapshots(details: TableDetails) -> str:
    rows = (
        (
            number(snapshot.id),
            time_tag(snapshot.time_millis / 1000),
            text(snapshot.commit_kind.value),
            text(snapshot.commit_user),
            number(snapshot.delta_record_count),
            number(snapshot.changelog_record_count),
            number(snapshot.total_record_count),
        )
        for snapshot in details.snapshots
    )
    head = ("snapshot", "committed", "kind", "user", "records added", "changelog records",
            "records in all files")  # fmt: skip
    return table("snapshots", "Newest snapshots", head, rows, "no snapshot", numbers=head[4:])


def _files(details: TableDetails) -> str:
    rows = (
        (number(level.level), number(level.files), number(level.rows), number(level.size))
        for level in details.levels
    )
    head = ("level", "files", "records before merging", "bytes")
    return table("files", "Files", head, rows, "no file", numbers=head[1:])


def compactions_table(maintenance: Mapping[str, Any], name: str | None = None) -> str:
    """Return the last compactions of the table `name` (None: of all tables) as HTML.

    `maintenance` is the section `maintenance` of /status; if it is empty, the result is "".
    """
    if not maintenance:
        return ""
    rows = (
        (
            text(compaction["table"]),
            time_tag(compaction["at"]),
            text(": ".join(filter(None, (compaction["result"], compaction["message"])))),
            number(compaction.get("seconds")),
            change(compaction, "files_before", "files_after"),
            change(compaction, "bytes_read", "bytes_written"),
            number(compaction.get("snapshot_id")),
        )
        for compaction in maintenance["compactions"]
        if name in (None, compaction["table"])
    )
    head = ("table", "finished", "result", "seconds", "files", "bytes", "snapshot")
    nothing = _NO_COMPACTION[maintenance["mode"] == "off"]
    return table(
        "compactions", "Compactions", head, rows, nothing, numbers=head[3:], long=head[2:3]
    )
