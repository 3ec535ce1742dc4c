"""Start a pipeline: find the offsets to read from, given the covered offsets of the tables.

    1. ask the brokers for the existing logs
    2. refuse tables that another pipeline feeds from the same topics
    3. set the start positions of new sources
    4. find records that tables lack and logs no longer have: refuse, or accept by the policy
    5. commit the decisions: dead letters first, then the affected tables
    6. read each log from the position of the least advanced table on

No record is read before these steps are complete. A start after a crash at any step makes the same
decisions.

The routing must be compatible with the rows that the tables contain: the start fails if, after a
change of the routing or the removal of `merge-shards`, source tables that must not share a table
would do so. A changed `ordering` is not checked, because it affects only the records of one table
(see `ingest.rows.targets`).
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ingestd.cdc.base import RejectedRecord
from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.ingest.dead_letters.dead_letter import COLUMNS, DeadLetter, dead_letter_rows
from ingestd.ingest.dead_letters.dead_letter_topic import dead_letter_messages
from ingestd.ingest.recovery.log_coverage import (
    compare_logs,
    coverage_of,
    find_losses,
    policies_of,
    routing_hash,
)
from ingestd.ingest.recovery.logs import LogCluster, LogPartition, Logs, ask_logs
from ingestd.ingest.recovery.losses import (
    REPLACING_REASONS,
    TO_BE,
    Loss,
    accepted_positions,
    furthest_positions,
    lowered_origins,
    named_losses,
    refuse_losses,
    unreadable_ranges,
)
from ingestd.ingest.recovery.start_warnings import log_warnings
from ingestd.ingest.rows.router import Router, check_sharing
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    column_history_text,
    read_column_history,
    without_offsets,
)
from ingestd.ingest.settings.context import QualifiedSourceTable, marked_pipelines, other_pipelines
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.rejection import GAP_STAGE
from ingestd.ingest.tables.log_positions import (
    Position,
    TopicName,
    Vector,
    by_name,
    replaced,
)
from ingestd.ingest.tables.managed_table import ManagedTable
from ingestd.ingest.tables.progress import (
    TableProgress,
    decode_properties,
    pipelines_in,
    property_names,
)
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offset_ranges import OffsetRange, Offsets, SourcePartition, TopicOffsets
from ingestd.kafka.producer import produce
from ingestd.kafka.start_stop import first_positions
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.library.row_writer import RowWriter
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.spec.snapshot import OVERWRITTEN_PROPERTY
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState, load_state, newest_record
from ingestd.paimon.table.write.commit_message import CommitMessage

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartPositions:
    """The offsets from which topic partitions are read, by source, topic and partition.

    `epochs` are the current leader epochs of the logs, -1 if unknown. `covered` has the largest
    covered offset of any table, which may be larger than the offset in `offsets`. `losses` are the
    losses that were accepted, `dead_letters` the reasons of the dead letters that name them, and
    tables that were dropped or overwritten.
    """

    offsets: Offsets
    epochs: Offsets
    covered: Offsets
    losses: tuple[Loss, ...] = ()
    dead_letters: tuple[str, ...] = ()


def recover(
    registry: TableRegistry,
    settings: PipelineSettings,
    clusters: Mapping[str, LogCluster],
    given_up: Mapping[SourcePartition, OffsetRange] = {},
) -> StartPositions:
    """Find the offsets to read from, and commit the decisions that this requires.

    `registry` must be open. `clusters` maps sources to their brokers, and `given_up` maps (source,
    topic, partition) to unreadable ranges to skip. Raises OffsetLostError if the policy is to fail
    and records, or start positions of a consumer group, are lost; SchemaConflictError if another
    pipeline writes the same rows, or source tables share a target unintentionally; ConfigError for
    invalid start positions; FormatError or UnsupportedError for an unreadable progress record of
    another pipeline; and the errors of `ask_logs`, `check_routing`, dead letters and commits.
    """
    logs = ask_logs(clusters)
    registry.keys = logs.keys
    _refuse_shared_tables(registry, settings, logs)
    _log_renamed_sources(registry, settings, logs)
    check_routing(settings, registry)
    new_sources = _begin_new_sources(registry, settings, clusters, logs)
    compared = compare_logs(registry, clusters, logs, new_sources)
    losses = find_losses(registry, settings, logs, compared)
    losses += unreadable_ranges(coverage_of(registry), logs, given_up)
    of_tables = [loss for loss in losses if loss.table != registry.dead_letters]
    refuse_losses(of_tables, policies_of(settings))
    dead_letters = _commit_decisions(registry, settings, new_sources, losses, logs)
    _begin_new_logs(registry, settings, logs)
    floor = _of_existing(registry.floor(), logs)
    _log_start(registry, new_sources, floor)
    named = by_name(floor, logs.keys)
    offsets = {source: named.get(source, {}) for source in settings.sources}
    log_epochs = {log: state.epoch for log, state in logs.states.items()}
    epochs = {source: _of_source(logs, source, log_epochs) for source in settings.sources}
    furthest = furthest_positions(coverage_of(registry), logs)
    log_offsets = {log: position.offset for log, position in furthest.items()}
    covered = {source: _of_source(logs, source, log_offsets) for source in settings.sources}
    return StartPositions(offsets, epochs, covered, tuple(losses), dead_letters)


def _of_existing(vector: Vector, logs: Logs) -> Vector:
    """Return the positions of a vector in logs that exist."""
    return {
        key: {at: position for at, position in positions.items() if (key, at) in logs.states}
        for key, positions in vector.items()
        if key in logs.names
    }


def _refuse_shared_tables(registry: TableRegistry, settings: PipelineSettings, logs: Logs) -> None:
    """Raise SchemaConflictError if another pipeline writes the same rows to the same table.

    It is also raised if this pipeline is new and a pipeline without tables has read its topics,
    because the pipeline has probably been renamed.
    """
    _refuse_unnoticed_rename(registry, settings, logs)
    router = Router(settings.routing, settings.database)
    for name, table in registry.others.items():
        newest = load_state(table).snapshot
        for pipeline in other_pipelines(table, settings.names):
            snapshot = newest_record(table, newest, property_names(pipeline)[0])
            if snapshot is None:
                continue
            where = table.paths.snapshot(snapshot.id)
            record = decode_properties(pipeline, snapshot.properties, where)
            if record is None:
                continue
            shared = sorted(record.topic_keys & logs.names.keys())
            names = {logs.names[key].topic for key in shared}
            routed = {
                router.possible_target(topic, source_table.unqualified)
                for topic in names
                for source_table in record.source_tables
            }
            # A fast-forward of a branch would replace the records of both.
            if shared and _main(name) in {_main(target) for target in routed if target}:
                raise SchemaConflictError(
                    f"table {name} already gets the rows of topic {logs.names[shared[0]].topic} "
                    f"from pipeline {pipeline}: pipeline {settings.name} would write each of them "
                    f"to it, or to a branch of it, again. If {pipeline} was renamed, set "
                    f"pipeline.formerly: [{pipeline}]; otherwise route one of the two to other "
                    "tables"
                )


def _refuse_unnoticed_rename(
    registry: TableRegistry, settings: PipelineSettings, logs: Logs
) -> None:
    dead_letters = registry.tables[registry.dead_letters]
    if registry.progress.sources or dead_letters.state.snapshot is None:
        return
    active = {name for table in registry.others.values() for name in marked_pipelines(table)}
    for pipeline in pipelines_in(dead_letters.state.carried):
        where = dead_letters.table.paths.snapshot(dead_letters.state.snapshot.id)
        record = decode_properties(pipeline, dead_letters.state.carried, where)
        shared = [] if record is None else sorted(record.pipeline.end.keys() & logs.names.keys())
        if shared and pipeline not in active:
            raise SchemaConflictError(
                f"pipeline {pipeline} has read topic {logs.names[shared[0]].topic}, "
                f"and has no table yet. If {settings.name} is its new name, set "
                f"pipeline.formerly: [{pipeline}]; otherwise set another "
                "errors.dead-letter-table for one of the two"
            )


def _log_renamed_sources(registry: TableRegistry, settings: PipelineSettings, logs: Logs) -> None:
    """Log renamed sources, and rename them in progress records.

    A source was renamed, at least for a topic, if another source has read the topic before.
    Positions are stored by topic and do not change; source tables are stored with the name of the
    source.
    """
    renamed = _renamed(registry.progress.topics, logs)
    for old, new in renamed.items():
        _LOG.warning("source_renamed", extra={"ctx": {"from": old, "to": new}})
    # A table without new rows may have an old record, even if other records are newer.
    records = {
        name: table.progress
        for name, table in registry.tables.items()
        if table.progress is not None
    }
    renamed_in_records = {
        old: new
        for record in records.values()
        for old, new in _renamed(record.pipeline.topics, logs).items()
    }
    names = {**renamed_in_records, **renamed}
    gone = {old: new for old, new in names.items() if old not in settings.sources}
    for table, record in records.items():
        registry.rename_sources(table, {**gone, **_renamed_for(record, logs)})
    topics = {**registry.progress.topics, **logs.names}
    sources = registry.progress.sources | set(renamed.values())
    registry.note(replace(registry.progress, topics=topics, sources=sources))


def _renamed_for(record: TableProgress, logs: Logs) -> dict[str, str]:
    """Return the sources of a table that other sources have replaced for all of its topics."""
    known = record.pipeline.topics
    fed = {key: name for key, name in known.items() if key in record.topic_keys}
    topics = {name.topic for name in fed.values()}
    reading = {name.source for name in logs.names.values() if name.topic in topics}
    return {old: new for old, new in _renamed(fed, logs).items() if old not in reading}


def _renamed(topics: Mapping[str, TopicName], logs: Logs) -> dict[str, str]:
    """Return the former names of renamed sources, mapped to the current names."""
    by_topic = {name.topic: name for name in topics.values()}
    former: dict[str, str] = {}
    for key, name in logs.names.items():
        before = topics.get(key, by_topic.get(name.topic))
        if before is not None and before.source != name.source:
            former.setdefault(before.source, name.source)
    return former


def _begin_new_sources(
    registry: TableRegistry,
    settings: PipelineSettings,
    clusters: Mapping[str, LogCluster],
    logs: Logs,
) -> frozenset[str]:
    """Set the start positions of new sources; return the names of these sources.

    Raises the errors of `first_positions`.
    """
    new = settings.sources.keys() - registry.progress.sources
    for source in sorted(new):
        ends = _of_source(logs, source, {log: state.end for log, state in logs.states.items()})
        kafka = settings.sources[source].kafka
        given = first_positions(kafka, clusters[source], ends)
        _give_origins(registry, logs, source, given)
    sources = registry.progress.sources | new
    registry.note(replace(registry.progress, sources=frozenset(sources)))
    return frozenset(new)


def _of_source(logs: Logs, source: str, by_log: Mapping[LogPartition, int]) -> TopicOffsets:
    """Return the numbers of a source's logs by topic and partition."""
    numbers: dict[str, dict[int, int]] = {}
    for (key, partition), number in by_log.items():
        if logs.names[key].source == source:
            numbers.setdefault(logs.names[key].topic, {})[partition] = number
    return numbers


def _give_origins(registry: TableRegistry, logs: Logs, source: str, given: TopicOffsets) -> None:
    """Set origin and position of the logs of a source that the progress does not contain.

    They start at the offsets `given`, or else at the beginning of the log.
    """
    end: dict[str, dict[int, Position]] = {}
    origin: dict[str, dict[int, int]] = {}
    for (key, partition), state in logs.states.items():
        name = logs.names[key]
        if name.source != source or partition in registry.progress.end.get(key, {}):
            continue
        first = given.get(name.topic, {}).get(partition, state.begin)
        end.setdefault(key, {})[partition] = Position(first, state.epoch)
        if first:
            origin.setdefault(key, {})[partition] = first
    known = registry.progress
    merged = {key: {**known.origin.get(key, {}), **offsets} for key, offsets in origin.items()}
    registry.note(replace(known, end=replaced(known.end, end), origin={**known.origin, **merged}))


def _begin_new_logs(registry: TableRegistry, settings: PipelineSettings, logs: Logs) -> None:
    """Record the start of logs that no batch has read: their records may expire before one does."""
    for source in settings.sources:
        _give_origins(registry, logs, source, {})
    registry.write_claims()


def _commit_decisions(
    registry: TableRegistry,
    settings: PipelineSettings,
    new_sources: frozenset[str],
    losses: list[Loss],
    logs: Logs,
) -> tuple[str, ...]:
    """Commit dead letters and the new positions, the dead-letter table first.

    Returns the reasons of the dead letters.
    """
    named = named_losses(losses, registry.dead_letters)
    dead_letters = [(loss.name.source, loss.dead_letter()) for loss in named]
    dead_letters += [("", _table_dropped_dead_letter(name, registry)) for name in registry.missing]
    overwritten = [
        name
        for name, managed in registry.tables.items()
        if managed.overwritten_by is not None and name != registry.dead_letters
    ]
    dead_letters += [
        ("", _overwritten_dead_letter(name, registry.tables[name])) for name in overwritten
    ]
    covered = coverage_of(registry)
    changed = accepted_positions(covered, losses)
    _end_statements(registry, losses)
    _accept(registry, settings, losses, changed.pop(TO_BE, None), logs)
    own = changed.pop(registry.dead_letters, registry.tables[registry.dead_letters].covered)
    if new_sources or losses or dead_letters:
        _commit_dead_letters(registry, settings, dead_letters, own)
    concerned = {loss.table for loss in losses} | {
        name for name, managed in registry.tables.items() if managed.is_of_others
    }
    concerned -= {TO_BE, registry.dead_letters}
    for name in sorted({*changed, *overwritten, *concerned}):
        covered_now = changed.get(name, registry.tables[name].covered)
        registry.record(name, covered_now, dropped=(OVERWRITTEN_PROPERTY,))
    return tuple(dead_letter.rejected.reason for _, dead_letter in dead_letters)


def _end_statements(registry: TableRegistry, losses: Sequence[Loss]) -> None:
    """Change the column histories of tables: statements in replaced records have no offset.

    Records that have the same offsets now are newer than these statements.
    """
    replaced_from: dict[tuple[str, int], int] = {}
    for loss in losses:
        if loss.reason in REPLACING_REASONS:
            start = 0 if loss.reason.startswith("topic") else loss.start
            log = (loss.name.topic, loss.log.partition)
            replaced_from[log] = min(start, replaced_from.get(log, start))
    for name, managed in registry.tables.items() if replaced_from else ():
        column_history = read_column_history(managed.table.schema.options, name)
        ended = without_offsets(column_history, replaced_from)
        if ended != column_history:
            registry.alter(name, [SetOption(COLUMN_HISTORY_OPTION, column_history_text(ended))])


def _accept(
    registry: TableRegistry,
    settings: PipelineSettings,
    losses: list[Loss],
    finished: Vector | None,
    logs: Logs,
) -> None:
    known = registry.progress
    keys = {loss.log.key for loss in losses if loss.reason.startswith("topic")}
    dropped = {**known.dropped, **{name: known.tables[name] for name in registry.missing}}
    progress = replace(
        known,
        accepted=known.accepted | keys,
        dropped=dropped,
        end=finished or known.end,
        origin=lowered_origins(known.origin, losses),
        routing=routing_hash(settings),
    )
    registry.note(progress)
    policies = policies_of(settings)
    for loss in losses:
        if loss.reason == "topic-recreated" and policies[loss.name.source] == "latest":
            states = logs.states.items()
            ends = _of_source(logs, loss.name.source, {log: state.end for log, state in states})
            given = {loss.name.topic: ends.get(loss.name.topic, {})}
            _give_origins(registry, logs, loss.name.source, given)


def _commit_dead_letters(
    registry: TableRegistry,
    settings: PipelineSettings,
    dead_letters: list[tuple[str, DeadLetter]],
    own: Vector,
) -> None:
    table = registry.tables[registry.dead_letters]
    messages = write_dead_letters(settings, table.table, table.state, dead_letters)
    registry.record(registry.dead_letters, own, messages)
    for _, dead_letter in dead_letters:
        context = {"reason": dead_letter.rejected.reason, "message": dead_letter.rejected.message}
        _LOG.warning("loss_accepted", extra={"ctx": {**context, "table": dead_letter.table}})


def _log_start(registry: TableRegistry, new_sources: frozenset[str], floor: Vector) -> None:
    again = {
        registry.progress.topics[key].topic: sum(
            registry.progress.end[key][p].offset - position.offset
            for p, position in positions.items()
            if p in registry.progress.end.get(key, {})
        )
        for key, positions in floor.items()
        if key in registry.progress.topics
    }
    context = {
        "new_sources": sorted(new_sources),
        "tables": len(registry.tables),
        "read_again": {topic: count for topic, count in again.items() if count > 0},
    }
    _LOG.info("start_positions", extra={"ctx": context})


def _table_dropped_dead_letter(name: str, registry: TableRegistry) -> DeadLetter:
    """Return the dead letter for a dropped table, with the offsets at which the table continues."""
    progress = registry.progress
    # If several topics have the same name, the existing topic is last and takes precedence.
    topics = sorted(progress.topics.items(), key=lambda item: item[0] in registry.keys.values())
    starts = {
        f"{topic.topic}/{partition}": position.offset
        for key, topic in sorted(topics, key=lambda item: item[1].topic)
        for partition, position in sorted(progress.end.get(key, {}).items())
    }
    text = (
        "the table was dropped, or lost its snapshots; it receives records from these offsets on: "
        f"{json.dumps(starts)}"
    )
    return _without_record(name, "table-dropped", text)


def _overwritten_dead_letter(name: str, table: ManagedTable) -> DeadLetter:
    """Return the dead letter for a table whose rows another writer replaced."""
    text = (
        f"overwritten by a program without a progress record in snapshot {table.overwritten_by}: "
        "rows that it left out are not read again, unless `ingestd begin` is used"
    )
    return _without_record(name, "table-overwritten", text)


def _without_record(table: str, reason: str, text: str) -> DeadLetter:
    return DeadLetter(RejectedRecord("", -1, -1, -1, GAP_STAGE, reason, text, None, None), table)


def write_dead_letters(
    settings: PipelineSettings,
    table: FileStoreTable,
    state: TableState,
    dead_letters: Sequence[tuple[str, DeadLetter]],
) -> list[CommitMessage]:
    """Write (source, dead letter) pairs to the dead-letter topic if one is set, else to the table.

    `table` is the dead-letter table, in the state `state`. Returns its commit messages, which are
    not committed. Raises StorageError if writing to the table fails; with a topic, SourceError if
    the brokers do not accept the messages, PolicyStopError for a message larger than the topic
    allows, and ConfigError for invalid properties.
    """
    messages: list[CommitMessage] = []
    for source in sorted({source for source, _ in dead_letters}):
        mine = [dead_letter for origin, dead_letter in dead_letters if origin == source]
        rows = dead_letter_rows(settings.name, source, mine).select([name for name, _ in COLUMNS])
        if settings.dead_letter_topic is not None:
            name = source or min(settings.sources)
            kafka = settings.sources[name].kafka
            produce(kafka, settings.dead_letter_topic, dead_letter_messages(rows))
            continue
        row_writer = RowWriter(table, state, settings.commit_user, fresh=False)
        messages += row_writer.write(rows)
    return messages


def check_routing(settings: PipelineSettings, registry: TableRegistry) -> None:
    """Check the routing against the source tables recorded in each table of the pipeline.

    `registry` must be open and have the topic keys. Raises SchemaConflictError if source tables
    that must not share a target would share it, and ConfigError if the routing is invalid, or rows
    are routed to the dead-letter table or to two branches of a table. Logs a warning for each table
    that gets no more rows of a source table since the routing was changed.
    """
    router, routing = Router(settings.routing, settings.database), routing_hash(settings)
    claims: dict[str, set[QualifiedSourceTable]] = {}
    targets = set(router.mapped_tables)
    for name, table in registry.tables.items():
        source_tables = table.progress.source_tables if table.progress else frozenset()
        claims.setdefault(name, set()).update(source_tables)
        for source_table, target in _targets(router, settings, registry, name, source_tables):
            if target is not None:
                claims.setdefault(target, set()).add(source_table)
                targets.add(target)
            if target != name and table.progress and table.progress.pipeline.routing != routing:
                log_warnings([_left_out(name, source_table, target)])
    _refuse_two_branches(targets)
    for name, claimants in sorted(claims.items()):
        if name == registry.dead_letters and claimants:
            raise ConfigError(
                f"errors.dead-letter-table: {name} has rows of {min(map(str, claimants))}, or is "
                "to get them; name another table"
            )
        check_sharing(settings.routing, name, frozenset(claimants))


def _refuse_two_branches(targets: Set[str]) -> None:
    """Raise ConfigError if rows are routed to two branches of one table.

    After a fast-forward, the record of one would cover rows that only the other has.
    """
    by_table: dict[str, str] = {}
    for target in sorted(targets):
        other = by_table.setdefault(_main(target), target)
        if other != target:
            raise ConfigError(
                f"routing: {other} and {target} are branches of one table, and a pipeline writes "
                "one of them: route all rows to the same one in routing.table-mapping, or let a "
                "pipeline of its own, with other topics, write the other"
            )


def _main(table: str) -> str:
    return str(Identifier.parse(table).main)


def _left_out(table: str, source_table: QualifiedSourceTable, target: str | None) -> str:
    return (
        f"table {table} gets no more rows of {source_table}, which the changed routing sends to "
        f"{target or 'no table'}: if the routing is changed back, the records in between are not "
        f"read, unless the table is read again (`ingestd begin -c CONFIG {table} --at origin`)"
    )


def _targets(
    router: Router,
    settings: PipelineSettings,
    registry: TableRegistry,
    name: str,
    source_tables: frozenset[QualifiedSourceTable],
) -> Iterator[tuple[QualifiedSourceTable, str | None]]:
    """Yield the source tables of a table whose topics are still read, and their current targets.

    For a source with several topics and several source tables in the table, it is unknown which
    topic contains which source table; only targets that are the same for all topics are certain.
    """
    read = registry.source_topics(name)
    for source in {source for source, _ in read} & settings.sources.keys():
        topics = [topic for topic_source, topic in read if topic_source == source]
        own = [source_table for source_table in source_tables if source_table.source == source]
        selected = list(filter(settings.sources[source].kafka.selects, topics))
        for source_table in own:
            targets = {
                router.possible_target(topic, source_table.unqualified) for topic in selected
            }
            if len(targets) == 1 or len(own) == 1 or len(topics) == 1:
                yield from ((source_table, target) for target in targets)
