"""Limits on the number of tables that a pipeline creates; tables beyond a limit are not created."""

from collections.abc import Collection
from dataclasses import replace

from ingestd.ingest.schemas.schema_evolution import Evolution
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.settings.routing_rules import TableLimits
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import read_schema

_DAY_MS = 86_400_000


def within_limits(
    evolution: Evolution, existing: Collection[FileStoreTable], limits: TableLimits, now_ms: int
) -> Evolution:
    """Return the plan with new tables beyond the limits moved to `refused`.

    New tables are accepted in the order of their names. `existing` are the data tables of the
    pipeline, and `now_ms` is the time in milliseconds since the epoch. Reads the first schema of
    each table whose schema was changed within the last day. Raises the errors of reading a schema.
    """
    if not evolution.creates:
        return evolution
    room = {
        "routing.max-tables": limits.in_all - len(existing),
        "routing.max-new-tables-per-day": limits.per_day
        - _created_since(existing, now_ms - _DAY_MS),
    }
    key = min(room, key=lambda name: room[name])
    taken = sorted(evolution.creates)[: max(0, room[key])]
    if len(taken) == len(evolution.creates):
        return evolution
    limit = limits.in_all if key == "routing.max-tables" else limits.per_day
    refused = {
        name: SourceRejection("route", "too-many-tables", _message(name, key, limit))
        for name in evolution.creates.keys() - set(taken)
    }
    creates = {name: evolution.creates[name] for name in taken}
    return replace(evolution, creates=creates, refused={**evolution.refused, **refused})


def _message(table: str, key: str, limit: int) -> str:
    return (
        f"table {table} is not created: the pipeline has reached its limit ({key}, {limit}); raise "
        "it, or exclude source tables by routing.excluding-tables"
    )


def _created_since(tables: Collection[FileStoreTable], since_ms: int) -> int:
    return sum(
        _created(table) >= since_ms for table in tables if table.schema.time_millis >= since_ms
    )


def _created(table: FileStoreTable) -> int:
    """Return the creation time of a table, in milliseconds since the epoch."""
    if table.schema.id == 0:
        return table.schema.time_millis
    return read_schema(table.io, table.paths, 0).time_millis
