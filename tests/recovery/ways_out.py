"""What an operator does when the daemon has stopped: the ways out that its message names."""

from collections.abc import Callable
from dataclasses import replace

from tests.recovery.broker import Position
from tests.recovery.losses import emptied
from tests.recovery.memory import common_memory
from tests.recovery.tables import DEAD_LETTERS, Progress, Snapshot, Table, newest_records
from tests.recovery.world import StoppedError, World


def accept(world: World, stopped: StoppedError) -> None:
    """Set the policy of lost offsets."""
    world.change(stopped.role, policy="earliest")


def drop_or_accept(world: World, stopped: StoppedError) -> None:
    """Drop the tables that a lost topic fed, never the dead letters; or accept that."""
    if world.numbers % 2:
        accept(world, stopped)
    else:
        for name in set(stopped.what.split()) - {DEAD_LETTERS}:
            world.warehouse(stopped.role).tables.pop(name, None)


def begin(world: World, stopped: StoppedError) -> None:
    """`ingestd begin TABLE --at now`: a record at the ends of the logs, in an empty commit."""
    settings, warehouse = world.settings[stopped.role], world.warehouse(stopped.role)
    memory = common_memory(world, settings)
    table = warehouse.tables.get(stopped.what, Table())
    end = {key: Position(log.end, log.epoch) for _, key, log in world.logs(settings)}
    record = Progress(
        world.number(),
        memory.sequence + 1,
        end,
        {},
        frozenset(key.topic_id for key in end),
        frozenset(memory.names | {stopped.what}),
        frozenset(memory.sources),
        dict(memory.origin),
        dict(memory.topics),
        frozenset(memory.retired),
        settings.routing,
    )
    records = {**newest_records(table), settings.pipeline: record}
    latest = table.latest
    snapshot = Snapshot(
        world.number(), latest.id + 1 if latest else 1, "ingestd", table.rows, records
    )
    warehouse.tables[stopped.what] = replace(
        table,
        snapshots=(*table.snapshots, snapshot),
        marks=table.marks | {settings.pipeline},
    )
    warehouse.dead_letters.extend(emptied(memory, stopped.what, end))


def formerly(world: World, stopped: StoppedError) -> None:
    """Say what the pipeline was called before."""
    old = stopped.what.split()[-1]
    world.change(stopped.role, formerly=world.settings[stopped.role].formerly | {old})


WAYS_OUT: dict[str, Callable[[World, StoppedError], None]] = {
    "offsets-lost": accept,
    "topic-lost": drop_or_accept,
    "record-lost": begin,
    "other-pipeline": formerly,
}
