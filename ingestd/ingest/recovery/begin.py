"""Giving a table a progress record by the decision of a person."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ingestd.errors import ConfigError
from ingestd.ingest.recovery.comparison import routing_hash
from ingestd.ingest.recovery.logs import LogCluster, ask_logs
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.claims import Claims
from ingestd.ingest.tables.lake import Lake
from ingestd.ingest.tables.positions import Position, TopicName, Vector, offset_in
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.io.file_io import FileIO


def begin(
    settings: PipelineSettings,
    catalog: Catalog,
    io: FileIO,
    table: str,
    vector_at: Callable[[Lake], Vector],
    now_ms: Callable[[], int],
) -> list[tuple[TopicName, int, int]]:
    """Commit an empty snapshot to a table with a record that covers `vector_at(lake)`.

    Returns the topic, partition and offset of each log from which on the table is fed. The caller
    leads the pipeline, so no daemon is at work. Raises ConfigError for a table that does not exist,
    or that would hold rows twice.
    """
    if not catalog.table_exists(Identifier.parse(table)):
        raise ConfigError(f"table {table} does not exist; nothing has to be decided for it")
    lake = Lake(settings, catalog, io, now_ms)
    lake.open(undecided=(table,))
    if lake.adopt(table) is None:
        raise ConfigError(f"table {table} is gone; nothing has to be decided for it")
    vector = vector_at(lake)
    known = lake.progress.accepted
    accepted = known - _not_covered(lake, vector)
    lake.note(replace(lake.progress, accepted=accepted, routing=routing_hash(settings)))
    lake.record(table, vector)
    lake.note(replace(lake.progress, accepted=known))
    lake.write_claims()
    return [
        (lake.progress.topics.get(key, TopicName(key, "")), partition, position.offset)
        for key, partitions in sorted(vector.items())
        for partition, position in sorted(partitions.items())
    ]


def _not_covered(lake: Lake, vector: Vector) -> set[str]:
    """Return topics before whose end the table is to begin: for it no end was accepted."""
    return {
        key
        for key, ends in lake.progress.end.items()
        if any(offset_in(vector, key, partition) < end.offset for partition, end in ends.items())
    }


def at_origin(table: str) -> Callable[[Lake], Vector]:
    """Where the pipeline began with each log: the table gets all rows that the logs still have."""

    def vector(lake: Lake) -> Vector:
        one = lake.tables[table]
        rows = one.state.snapshot.total_record_count if one.state.snapshot else 0
        if rows and not one.table.schema.primary_keys:
            raise ConfigError(
                f"table {table} has no primary key and {rows} rows, which would be there twice; "
                f"empty it first with `ingestd truncate WAREHOUSE {table}`"
            )
        origin = lake.progress.origin
        return {
            key: {partition: Position(origin.get(key, {}).get(partition, 0)) for partition in ones}
            for key, ones in lake.progress.end.items()
        }

    return vector


def at_claims(table: str, claims: Claims | None) -> Callable[[Lake], Vector]:
    """What the claims file has of the table: right if only its records were taken away.

    Raises ConfigError if the file is missing or damaged, or does not speak of the table.
    """

    def vector(_: Lake) -> Vector:
        if claims is None or table not in claims.complete:
            raise ConfigError(
                f"the claims file says nothing of table {table} (it is missing, damaged, or the "
                "table had yet to catch up); use --at origin to read everything again, or "
                "--at now to take only what comes"
            )
        return claims.progress.end

    return vector


def at_now(clusters: Mapping[str, LogCluster]) -> Callable[[Lake], Vector]:
    """The ends of the logs as they are: the table gets what comes from now on."""

    def vector(lake: Lake) -> Vector:
        logs = ask_logs(clusters)
        found: dict[str, dict[int, Position]] = {}
        for (key, partition), state in logs.states.items():
            found.setdefault(key, {})[partition] = Position(state.end, state.epoch)
        topics = {**lake.progress.topics, **logs.names}
        lake.note_topics(topics)
        return {**lake.progress.end, **found}

    return vector
