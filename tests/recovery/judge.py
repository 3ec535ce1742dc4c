"""The sentence that every life is measured by.

For every table and every partition that feeds it: from the start that was fixed when the partition
was first seen, each event is in the table exactly once or is a dead letter; offsets that cannot be
had any more are named in a dead letter or an exit that is not 0, and the next start without an
operator's action says the same again; and whenever nothing is missing, the daemon goes on.
"""

from tests.recovery.broker import Key, Topic
from tests.recovery.process import Driver
from tests.recovery.tables import OTHERS, Warehouse
from tests.recovery.world import StoppedError, World


class BrokenError(AssertionError):
    """The sentence does not hold."""


def check_once(world: World) -> None:
    """No table has an event twice, or one from before the start of its partition."""
    for warehouse in world.warehouses.values():
        for name, table in warehouse.tables.items():
            rows = table.rows
            if len(set(rows)) != len(rows):
                twice = sorted({uid for uid in rows if rows.count(uid) > 1})
                raise BrokenError(f"DOUBLED in {name}: {twice}")


def check_all(world: World, role: str, *, gone_only: bool = False) -> None:
    """Each event that a pipeline owes a table is there, or a dead letter names its offset.

    With `gone_only` only those that the logs do not have any more.
    """
    warehouse, settings = world.warehouse(role), world.settings[role]
    rows = {name: set(table.rows) for name, table in warehouse.tables.items()}
    topics = [*world.topics.items(), *world.dead_topics]
    for name, topic in topics:
        if name in settings.topics:
            dead = world.topics.get(name) is not topic
            _check_topic(world, role, (name, topic), rows, gone_only=gone_only and not dead)


def _check_topic(
    world: World,
    role: str,
    named: tuple[str, Topic],
    rows: dict[str, set[int]],
    *,
    gone_only: bool,
) -> None:
    warehouse, settings = world.warehouse(role), world.settings[role]
    name, topic = named
    for key, log in topic.keyed_logs():
        begun = warehouse.begun.get(key, log.end)
        early = warehouse.earliest.get(key, 0)
        events = log.events[: log.first] if gone_only else log.events
        for offset, event in enumerate(events):
            table = settings.table_of(name, event.entity)
            if table is None:
                continue
            there = event.uid in rows.get(table, ())
            if offset < early and there:
                raise BrokenError(f"BEFORE ITS START: {name}/{key.partition} {offset} in {table}")
            if offset < begun or there:
                continue
            # Owed where it was routed when it was read first, or read again by another routing.
            owed = warehouse.settled.get(event.uid) or {table}
            if table in owed and not any(
                one is not None
                and (
                    event.uid in rows.get(one, ())
                    or _named(warehouse, one, key, (offset, event.epoch))
                )
                for one in owed
            ):
                gone = "GONE UNNAMED" if offset < log.first else "LOST"
                raise BrokenError(f"{gone}: {name}/{key.partition} {offset} of {table}")


def check_reason(world: World, role: str, stopped: StoppedError) -> None:
    """A stop has a reason that is there: the daemon goes on where nothing is missing."""
    topics = world.topics.values()
    warehouse = world.warehouse(role)
    if stopped.reason == "offsets-lost":
        there = any(log.first or log.epoch for topic in topics for log in topic.logs)
    elif stopped.reason == "topic-lost":
        there = bool(world.dead_topics)
    elif stopped.reason == "record-lost":
        there = True  # `expire_by_others` looks whether it was others that lost it
    else:
        users = {
            snapshot.user for table in warehouse.tables.values() for snapshot in table.snapshots
        }
        there = bool(users - {OTHERS, "ingestd", world.settings[role].pipeline})
    if not there:
        raise BrokenError(f"STOPPED FOR NOTHING: {stopped}")


def is_missing(world: World, role: str) -> bool:
    """Whether the logs do not have an event any more that a table lacks."""
    try:
        check_all(world, role, gone_only=True)
    except BrokenError:
        return True
    return False


def _named(warehouse: Warehouse, table: str, key: Key, place: tuple[int, int]) -> bool:
    return any(dead_letter.names(table, key, *place) for dead_letter in warehouse.dead_letters)


def forget(world: World, driver: Driver) -> None:
    """A partition or source that nothing knows any more was never seen, as far as one can tell."""
    warehouse = world.warehouse()
    pipelines = frozenset(
        name
        for setting in world.settings.values()
        for name in (setting.pipeline, *setting.formerly)
    )
    keys, sources = driver.kind.remembered(warehouse, pipelines)
    for key in warehouse.begun.keys() - keys:
        del warehouse.begun[key]
    warehouse.founded &= sources
