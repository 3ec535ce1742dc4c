"""The start of a pipeline: from what the tables cover to where each log is read on.

    1. ask the brokers which logs there are
    2. refuse tables that another pipeline feeds from the same topics
    3. give sources that are new their start positions
    4. judge what tables lack and logs no longer have: refuse it, or accept it by the policy
    5. commit what was decided: dead letters first, then the tables concerned
    6. read each log on from the least advanced table

Nothing is read before this is done, and a start after a death at any step decides the same.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ingestd.errors import SchemaConflictError
from ingestd.ingest.letters.dead_letter import DeadLetter
from ingestd.ingest.recovery.comparison import (
    compare_logs,
    coverage_of,
    find_losses,
    policies_of,
    routing_hash,
)
from ingestd.ingest.recovery.letters import overwritten_letter, table_dropped_letter, write_letters
from ingestd.ingest.recovery.logs import LogCluster, Logs, Place, ask_logs
from ingestd.ingest.recovery.losses import (
    TO_BE,
    Loss,
    accepted_positions,
    furthest_positions,
    named_losses,
    refuse,
    unreadable_ranges,
)
from ingestd.ingest.rows.router import Router
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.lake import Lake
from ingestd.ingest.tables.lake_table import marked_pipelines
from ingestd.ingest.tables.positions import (
    Position,
    TopicName,
    Vector,
    by_name,
    replaced,
)
from ingestd.ingest.tables.progress import decode_properties, pipelines_in, property_names
from ingestd.ingest.tables.routing_check import check_ordering, check_routing
from ingestd.kafka.ranges import OffsetRange, Offsets, TopicOffsets
from ingestd.kafka.start_stop import first_positions
from ingestd.paimon.spec.snapshot import OVERWRITTEN_PROPERTY
from ingestd.paimon.table.metadata.table_state import load_state, newest_record

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartPositions:
    """Where each log is read on, by source and topic, and the leader epoch that was seen there.

    `covered` is how far the furthest table is, which may be beyond. `losses` are those that were
    accepted.
    """

    offsets: Offsets
    epochs: Offsets
    covered: Offsets
    losses: tuple[Loss, ...] = ()


def recover(
    lake: Lake,
    settings: PipelineSettings,
    clusters: Mapping[str, LogCluster],
    given_up: Mapping[tuple[str, str, int], OffsetRange] = {},
) -> StartPositions:
    """Work out where to read on, and commit what had to be decided for it.

    `lake` is open; `clusters` are the brokers by source; `given_up` ranges that could not be read
    and are to be left out, by source, topic and partition. Raises OffsetLostError for records that
    no log has any more, SchemaConflictError for tables that another pipeline feeds or that source
    tables would share unintended, ConfigError for start positions that do not exist, SourceError
    when brokers do not answer, and what a commit raises.
    """
    logs = ask_logs(clusters)
    lake.keys = logs.keys
    _refuse_shared_tables(lake, settings, logs)
    _log_renamed_sources(lake, settings, logs)
    check_routing(settings, lake)
    check_ordering(settings, lake)
    founded = _found_sources(lake, settings, clusters, logs)
    compared = compare_logs(lake, clusters, logs, founded)
    losses = find_losses(lake, settings, logs, compared)
    losses += unreadable_ranges(coverage_of(lake), logs, given_up)
    refuse([one for one in losses if one.table != lake.dead_letters], policies_of(settings))
    _commit_decisions(lake, settings, founded, losses, logs)
    floor = {key: ones for key, ones in lake.floor().items() if key in logs.names}
    _log_start(lake, founded, floor)
    named = by_name(floor, logs.keys)
    offsets = {source: named.get(source, {}) for source in settings.sources}
    epochs = {
        source: _of_source(logs, source, {place: one.epoch for place, one in logs.states.items()})
        for source in settings.sources
    }
    reached = furthest_positions(coverage_of(lake), logs)
    covered = {
        source: _of_source(logs, source, {place: one.offset for place, one in reached.items()})
        for source in settings.sources
    }
    return StartPositions(offsets, epochs, covered, tuple(losses))


def _refuse_shared_tables(lake: Lake, settings: PipelineSettings, logs: Logs) -> None:
    """Raise if another pipeline brings rows of a topic that we read to a table that we write.

    Also if we are new, and a pipeline without a table of its own has read our topics: it has
    another name now.
    """
    _refuse_unnoticed_rename(lake, settings, logs)
    router = Router(settings.routing, settings.database)
    for name, table in lake.others.items():
        newest = load_state(table).snapshot
        for pipeline in sorted(marked_pipelines(table) - {settings.name, *settings.formerly}):
            snapshot = newest_record(table, newest, property_names(pipeline)[0])
            if snapshot is None:
                continue
            where = table.paths.snapshot(snapshot.id)
            record = decode_properties(pipeline, snapshot.properties, where)
            if record is None:
                continue
            shared = sorted(record.fed & logs.names.keys())
            names = {logs.names[key].topic for key in shared}
            routed = {
                router.route(topic, feed.source_table) for topic in names for feed in record.feeds
            }
            if shared and (name in routed or not record.feeds):
                raise SchemaConflictError(
                    f"table {name} already gets the rows of topic {logs.names[shared[0]].topic} "
                    f"from pipeline {pipeline}: pipeline {settings.name} would write each of them "
                    f"again. If {pipeline} was renamed, write pipeline.formerly: [{pipeline}]; "
                    "otherwise give one of the two other tables by routing"
                )


def _refuse_unnoticed_rename(lake: Lake, settings: PipelineSettings, logs: Logs) -> None:
    letters = lake.tables[lake.dead_letters]
    if lake.progress.sources or letters.state.snapshot is None:
        return
    active = {name for table in lake.others.values() for name in marked_pipelines(table)}
    for pipeline in pipelines_in(letters.state.carried):
        where = letters.table.paths.snapshot(letters.state.snapshot.id)
        record = decode_properties(pipeline, letters.state.carried, where)
        shared = [] if record is None else sorted(record.pipeline.end.keys() & logs.names.keys())
        if shared and pipeline not in active:
            raise SchemaConflictError(
                f"pipeline {pipeline} has read topic {logs.names[shared[0]].topic} up to some "
                f"offset, and has no table yet. If {settings.name} is its new name, write "
                f"pipeline.formerly: [{pipeline}]; otherwise give one of the two another "
                "errors.dead-letter-table"
            )


def _log_renamed_sources(lake: Lake, settings: PipelineSettings, logs: Logs) -> None:
    """Notice topics that another source has read before: positions are kept by topic, so they stay.

    The names of source tables in records begin with the source's name and are renamed with it.
    """
    renamed = _renamed(lake.progress.topics, logs)
    for old, new in renamed.items():
        _LOG.warning("source_renamed", extra={"ctx": {"from": old, "to": new}})
    # A table without rows since has a record of before, whatever other records say.
    records = [one.progress.pipeline for one in lake.tables.values() if one.progress is not None]
    feeds = {old: new for one in records for old, new in _renamed(one.topics, logs).items()}
    names = {**feeds, **renamed}
    lake.rename_sources({old: new for old, new in names.items() if old not in settings.sources})
    topics = {**lake.progress.topics, **logs.names}
    sources = lake.progress.sources | set(renamed.values())
    lake.note(replace(lake.progress, topics=topics, sources=sources))


def _renamed(topics: Mapping[str, TopicName], logs: Logs) -> dict[str, str]:
    """Former names of the sources that read topics now, with the present ones."""
    by_topic = {name.topic: name for name in topics.values()}
    found: dict[str, str] = {}
    for key, name in logs.names.items():
        before = topics.get(key, by_topic.get(name.topic))
        if before is not None and before.source != name.source:
            found.setdefault(before.source, name.source)
    return found


def _found_sources(
    lake: Lake,
    settings: PipelineSettings,
    clusters: Mapping[str, LogCluster],
    logs: Logs,
) -> frozenset[str]:
    """Fix where the logs of new sources begin; the names of these sources.

    Raises OffsetLostError if a group that is to give the positions has none.
    """
    new = settings.sources.keys() - lake.progress.sources
    for source in sorted(new):
        ends = _of_source(logs, source, {place: one.end for place, one in logs.states.items()})
        kafka = settings.sources[source].kafka
        given = first_positions(kafka, clusters[source], ends)
        _give_origins(lake, logs, source, given)
    sources = lake.progress.sources | new
    lake.note(replace(lake.progress, sources=frozenset(sources)))
    return frozenset(new)


def _of_source(logs: Logs, source: str, by_place: Mapping[Place, int]) -> TopicOffsets:
    found: dict[str, dict[int, int]] = {}
    for (key, partition), offset in by_place.items():
        if logs.names[key].source == source:
            found.setdefault(logs.names[key].topic, {})[partition] = offset
    return found


def _give_origins(lake: Lake, logs: Logs, source: str, given: TopicOffsets) -> None:
    """Let the logs of a source that no record knows begin where they are said to."""
    end: dict[str, dict[int, Position]] = {}
    origin: dict[str, dict[int, int]] = {}
    for (key, partition), state in logs.states.items():
        name = logs.names[key]
        if name.source != source or partition in lake.progress.end.get(key, {}):
            continue
        first = given.get(name.topic, {}).get(partition, state.begin)
        end.setdefault(key, {})[partition] = Position(first, state.epoch)
        if first:
            origin.setdefault(key, {})[partition] = first
    known = lake.progress
    merged = {key: {**known.origin.get(key, {}), **ones} for key, ones in origin.items()}
    lake.note(replace(known, end=replaced(known.end, end), origin={**known.origin, **merged}))


def _commit_decisions(
    lake: Lake,
    settings: PipelineSettings,
    founded: frozenset[str],
    losses: list[Loss],
    logs: Logs,
) -> None:
    """Write dead letters and the new positions: first into the table of dead letters."""
    named = named_losses(losses, lake.dead_letters)
    letters = [(one.name.source, one.letter()) for one in named]
    letters += [("", table_dropped_letter(name, lake)) for name in lake.missing]
    overwritten = [
        name
        for name, one in lake.tables.items()
        if one.overwritten_by is not None and name != lake.dead_letters
    ]
    letters += [("", overwritten_letter(name, lake.tables[name])) for name in overwritten]
    covered = coverage_of(lake)
    changed = accepted_positions(covered, losses)
    _accept(lake, settings, losses, changed.pop(TO_BE, None), logs)
    own = changed.pop(lake.dead_letters, lake.tables[lake.dead_letters].covered)
    if founded or losses or letters:
        _commit_letters(lake, settings, letters, own)
    concerned = {one.table for one in losses} - {TO_BE, lake.dead_letters}
    for name in sorted({*changed, *overwritten, *concerned}):
        covered_now = changed.get(name, lake.tables[name].covered)
        lake.record(name, covered_now, dropped=(OVERWRITTEN_PROPERTY,))
    lake.write_claims()


def _accept(
    lake: Lake,
    settings: PipelineSettings,
    losses: list[Loss],
    finished: Vector | None,
    logs: Logs,
) -> None:
    known = lake.progress
    keys = {one.place[0] for one in losses if one.reason.startswith("topic")}
    dropped = {**known.dropped, **{name: known.tables[name] for name in lake.missing}}
    progress = replace(
        known,
        accepted=known.accepted | keys,
        dropped=dropped,
        end=finished or known.end,
        routing=routing_hash(settings),
    )
    lake.note(progress)
    policies = policies_of(settings)
    for loss in losses:
        if loss.reason == "topic-recreated" and policies[loss.name.source] == "latest":
            states = logs.states.items()
            ends = _of_source(logs, loss.name.source, {place: one.end for place, one in states})
            given = {loss.name.topic: ends.get(loss.name.topic, {})}
            _give_origins(lake, logs, loss.name.source, given)


def _commit_letters(
    lake: Lake, settings: PipelineSettings, letters: list[tuple[str, DeadLetter]], own: Vector
) -> None:
    one = lake.tables[lake.dead_letters]
    messages = write_letters(settings, one.table, one.state, letters)
    lake.record(lake.dead_letters, own, messages)
    for _, letter in letters:
        context = {"reason": letter.rejected.reason, "message": letter.rejected.message}
        _LOG.warning("loss_accepted", extra={"ctx": {**context, "table": letter.table}})


def _log_start(lake: Lake, founded: frozenset[str], floor: Vector) -> None:
    again = {
        lake.progress.topics[key].topic: sum(
            lake.progress.end[key][p].offset - position.offset
            for p, position in ones.items()
            if p in lake.progress.end.get(key, {})
        )
        for key, ones in floor.items()
        if key in lake.progress.topics
    }
    context = {
        "founded": sorted(founded),
        "tables": len(lake.tables),
        "read_again": {topic: count for topic, count in again.items() if count > 0},
    }
    _LOG.info("start_positions", extra={"ctx": context})
