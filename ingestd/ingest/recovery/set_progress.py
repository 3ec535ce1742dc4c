"""Set the progress record of a table as an operator requests it (`ingestd begin`)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ingestd.errors import ConfigError
from ingestd.ingest.recovery.log_coverage import routing_hash
from ingestd.ingest.recovery.logs import LogCluster, ask_logs
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.claims import Claims
from ingestd.ingest.tables.log_positions import Position, TopicName, Vector, offset_in
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.table.metadata.snapshot_manager import snapshot_ids
from ingestd.wording import counted


class NextOffset(NamedTuple):
    """The offset from which a table continues in a partition of a topic."""

    name: TopicName
    partition: int
    offset: int


def begin(
    settings: PipelineSettings,
    catalog: Catalog,
    io: FileIO,
    table: str,
    vector_at: Callable[[TableRegistry], Vector],
    now_ms: Callable[[], int],
) -> list[NextOffset]:
    """Commit a progress record with the positions `vector_at(registry)` to a table, without rows.

    Returns where the table continues in each log. `catalog` and `io` are those of the pipeline's
    warehouse, and `now_ms` returns the time in milliseconds since the epoch. The caller must be the
    leader of the pipeline, so that no daemon is running. Raises the errors of `check_table`, of
    `vector_at`, of `TableRegistry.open` and of a commit, and ConfigError if the table is dropped.
    """
    check_table(settings, catalog, table)
    registry = TableRegistry(settings, catalog, io, now_ms)
    registry.open(undecided=(table,))
    if registry.adopt(table) is None:
        raise ConfigError(f"table {table} was dropped; it needs no progress record")
    vector = vector_at(registry)
    known = registry.progress.accepted
    accepted = known - _not_covered(registry, vector)
    registry.note(replace(registry.progress, accepted=accepted, routing=routing_hash(settings)))
    registry.record(table, vector)
    registry.note(replace(registry.progress, accepted=known))
    registry.write_claims()
    return [
        NextOffset(registry.progress.topics.get(key, TopicName(key, "")), partition, at.offset)
        for key, partitions in sorted(vector.items())
        for partition, at in sorted(partitions.items())
    ]


def check_table(settings: PipelineSettings, catalog: Catalog, table: str) -> None:
    """Raise ConfigError for a table that does not exist, or is not in the pipeline's database."""
    identifier = Identifier.parse(table)
    if identifier.database != settings.database:
        raise ConfigError(
            f"pipeline {settings.name} writes only tables of database {settings.database} "
            f"(warehouse.database): name one of them instead of {table}"
        )
    if not catalog.table_exists(identifier):
        raise ConfigError(f"table {table} does not exist; it needs no progress record")


def _not_covered(registry: TableRegistry, vector: Vector) -> set[str]:
    """Return the keys of topics that `vector` does not cover up to the progress of the pipeline."""
    return {
        key
        for key, ends in registry.progress.end.items()
        if any(offset_in(vector, key, partition) < end.offset for partition, end in ends.items())
    }


def _truncate_command(registry: TableRegistry, table: str) -> str:
    """Return the command that empties a table, and what it requires if others write the table."""
    command = f"`ingestd truncate WAREHOUSE {table}`"
    if table not in registry.others:
        return command
    return (
        f"{command} (it deletes the rows of all pipelines: use --at origin for each of them before "
        "one starts)"
    )


def at_origin(table: str) -> Callable[[TableRegistry], Vector]:
    """Return a function for `begin` that returns the offsets at which the pipeline began to read.

    The table then gets all records from there on that the logs still have. The function raises
    ConfigError if the table has rows that would count twice: it has no primary key, or aggregates.
    """

    def vector(registry: TableRegistry) -> Vector:
        managed = registry.tables[table]
        rows = managed.row_count
        if rows and managed.counts_twice:
            why = "aggregates values" if managed.table.schema.primary_keys else "has no primary key"
            raise ConfigError(
                f"table {table} {why} and has {counted(rows, 'row')}, which would be duplicated; "
                f"empty it first with {_truncate_command(registry, table)}"
            )
        return registry.progress.beginning

    return vector


def at_claims(table: str, claims: Claims | None) -> Callable[[TableRegistry], Vector]:
    """Return a function for `begin` that returns the covered offsets in the claims file.

    `claims` is the content of the file (None: missing or damaged). The offsets are valid if only
    the progress records were removed. The function raises ConfigError if the file has no entry for
    the table, or if the table was rolled back or restored since the file was written. In a table in
    which rows would count twice, it also raises ConfigError if the number of rows has changed since
    then, for example because a daemon ended before it wrote the file.
    """

    def vector(registry: TableRegistry) -> Vector:
        if claims is None or table not in claims.complete:
            raise ConfigError(
                f"the claims file has no entry for table {table} (it is missing, damaged, or the "
                "table had not caught up yet); use --at origin to read everything again, or "
                "--at now to read only new records"
            )
        managed, claimed = registry.tables[table], claims.complete[table]
        ways_out = (
            f"Empty it with {_truncate_command(registry, table)} and use --at origin to read "
            "everything again, or use --at now to read only new records"
        )
        earliest = min(snapshot_ids(managed.table.io, managed.table.paths), default=0)
        # The oldest snapshots expire first, so all remaining ones are newer than the claimed one,
        # unless a rollback or a restore gave their ids a second time.
        if earliest <= claimed.snapshot_id:
            raise ConfigError(
                f"table {table} was rolled back or restored since the claims file was written: it "
                f"has snapshot {earliest}, and its record was in {claimed.snapshot_id}. {ways_out}"
            )
        if managed.row_count != claimed.rows and managed.counts_twice:
            raise ConfigError(
                f"table {table} has {counted(managed.row_count, 'row')}, and {claimed.rows} when "
                "the claims file was written: the rows of a later commit would be written again, "
                f"and no snapshot contains its progress record. {ways_out}"
            )
        return claims.progress.end

    return vector


def at_now(clusters: Mapping[str, LogCluster]) -> Callable[[TableRegistry], Vector]:
    """Return a function for `begin` that returns the current ends of the logs.

    The table then gets only new records. A log that no longer exists keeps the position of the
    pipeline. `clusters` maps sources to their brokers. The function raises SourceError if brokers
    do not respond, ConfigError if two sources read the same topic, and LogChangedError if a topic
    is deleted or recreated during the requests.
    """

    def vector(registry: TableRegistry) -> Vector:
        logs = ask_logs(clusters)
        ends: dict[str, dict[int, Position]] = {}
        for (key, partition), state in logs.states.items():
            ends.setdefault(key, {})[partition] = Position(state.end, state.epoch)
        topics = {**registry.progress.topics, **logs.names}
        registry.note(replace(registry.progress, topics=topics))
        return {**registry.progress.end, **ends}

    return vector
