"""What the logs no longer have of what the tables lack, judged at a start and nowhere else."""

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from tests.recovery.broker import Key, Log, Position
from tests.recovery.memory import Memory, furthest
from tests.recovery.tables import DEAD_LETTERS, EVERY_PARTITION, Letter, Vector
from tests.recovery.world import Settings, World


class Loss(NamedTuple):
    """Offsets `first` to `until` that a table (None: one that is yet to be) can not have any more,
    and the position after them.
    """

    table: str | None
    key: Key
    first: int
    until: int
    position: Position


class LostTopic(NamedTuple):
    """A topic that is gone, or another one now; None: it never fed a table."""

    table: str | None
    topic_id: int


def lost_ranges(world: World, settings: Settings, memory: Memory) -> list[Loss]:
    """All losses of partitions whose topics are there, by table."""
    tables: list[str | None] = [*memory.coverage, None]
    if "losses-by-table" in world.off:
        tables = [DEAD_LETTERS]
    latest = settings.policy == "latest"
    epochs = "leader-epoch" not in world.off
    return [
        loss
        for _, key, log in world.logs(settings)
        if memory.knows(key)
        for table in tables
        if (loss := _loss(table, key, memory.covered(table, key), log, (epochs, latest)))
    ]


def _loss(
    table: str | None, key: Key, known: Position, log: Log, asked: tuple[bool, bool]
) -> Loss | None:
    epochs, latest = asked
    agreed = min(log.end_of_epoch(known.epoch) if epochs else log.end, log.end)
    if agreed < known.offset:
        position = max(agreed, log.first)
        return Loss(table, key, agreed, max(known.offset, position), Position(position, log.epoch))
    if known.offset < log.first:
        position = log.end if latest else log.first
        return Loss(table, key, known.offset, position, Position(position, log.epoch))
    return None


def lost_topics(world: World, settings: Settings, memory: Memory) -> list[LostTopic]:
    """Topics that are read by name and are gone by id, for each table that they fed or that lags.

    A table that was rolled back to before the topic fed it lacks what the others have of it.
    """
    live = {topic.id for topic in world.topics.values()}
    vectors = (memory.finished, *memory.coverage.values())
    known = {key.topic_id for vector in vectors for key in vector}.union(*memory.fed.values())
    gone = [
        one
        for one in sorted(known - live)
        if one not in memory.topics or memory.topics[one] in settings.topics
    ]
    lost = [
        LostTopic(table, topic_id)
        for table in memory.coverage
        for topic_id in gone
        if "fed-topics" not in world.off
        and (topic_id in memory.fed[table] or _lags(world, memory, table, topic_id))
    ]
    if "unread-topic-reported" not in world.off:
        lost += [LostTopic(None, one) for one in gone if one not in memory.retired]
    return lost


def passed_by(world: World, memory: Memory, topics: list[LostTopic]) -> list[LostTopic]:
    """Topics that were given up while a table was elsewhere: one that was rolled back since.

    How much it had then is not known any more, so it is a dead letter and not an exit.
    """
    if "passed-topic" in world.off:
        return []
    return [
        LostTopic(table, topic_id)
        for table, passed in memory.passed.items()
        for topic_id in sorted(memory.retired - passed)
        if LostTopic(table, topic_id) not in topics
    ]


def _lags(world: World, memory: Memory, table: str, topic_id: int) -> bool:
    """Whether a table has less of a topic than another one, or than is finished.

    A process that died between two tables had one of them ahead of what is finished.
    """
    ahead = reduce(furthest, memory.coverage.values(), memory.finished)
    return "lagging-topic" not in world.off and any(
        memory.covered(table, key).offset < at.offset
        for key, at in ahead.items()
        if key.topic_id == topic_id
    )


def emptied(memory: Memory, table: str, coverage: Vector) -> list[Letter]:
    """Dead letters for a table of which nothing is left below a vector."""
    dead_letters = [Letter(table, key, 0, at.offset) for key, at in coverage.items()]
    gone = sorted(memory.retired)
    return dead_letters + [Letter(table, Key(one, EVERY_PARTITION), 0, None) for one in gone]


def routed_otherwise(memory: Memory) -> list[Letter]:
    """Dead letters for tables whose newest record is of another routing than today's.

    One that is ahead took what it has of a batch that died, and passed over what would be its own
    today; one that lags is brought what is its own today, not what it had.
    """
    dead_letters = []
    for table in sorted(memory.rerouted):
        for key in memory.finished.keys() | memory.coverage[table].keys():
            ends = sorted((memory.covered(table, key).offset, memory.covered(None, key).offset))
            if ends[0] < ends[1]:
                dead_letters.append(Letter(table, key, ends[0], ends[1]))
    return dead_letters


def letters_of(memory: Memory, losses: list[Loss], topics: list[LostTopic]) -> list[Letter]:
    """Dead letters for what was lost."""
    known = frozenset(memory.coverage)
    dead_letters = [Letter(loss.table, loss.key, loss.first, loss.until, known) for loss in losses]
    keys = {key for vector in (memory.finished, *memory.coverage.values()) for key in vector}
    for table, topic_id in topics:
        # The tail that no batch has read is unknown, to every table that the topic may feed.
        for key in sorted(key for key in keys if key.topic_id == topic_id):
            at = memory.covered(table, key)
            dead_letters.append(Letter(table, key, at.offset, None, epoch=at.epoch))
    return dead_letters


def begun_at_end(
    world: World, settings: Settings, memory: Memory, topics: list[LostTopic]
) -> Mapping[Key, Log]:
    """Partitions of the topics that took the place of lost ones, to begin at their ends."""
    names = {memory.topics.get(topic.topic_id) for topic in topics if topic.table}
    return {
        key: log
        for name, key, log in world.logs(settings)
        if name in names and not memory.knows(key)
    }
