"""What happens to topics and their logs."""

from collections.abc import Callable
from dataclasses import replace

from tests.recovery.broker import Topic
from tests.recovery.process import Driver
from tests.recovery.registry import action
from tests.recovery.world import World


@action
def produce_a(world: World, _: Driver) -> bool:
    if "a" not in world.topics:
        return False
    world.produce("a", 0, "x", "y", None)
    world.produce("a", 1, "x")
    return True


@action
def produce_b(world: World, _: Driver) -> bool:
    if "b" not in world.topics:
        return False
    world.produce("b", 0, "x", "bad")
    return True


@action
def add_partition(world: World, _: Driver) -> bool:
    topic = world.topics.get("a")
    if topic is None or len(topic.logs) > 3:
        return False
    world.produce("a", len(topic.logs), "y", "x")
    return True


@action
def add_topic(world: World, _: Driver) -> bool:
    if "c" in world.topics:
        return False
    new_topic(world, "c", 2)
    world.produce("c", 0, "x", "y")
    return True


@action
def recreate_topic(world: World, _: Driver) -> bool:
    old = world.topics.get("a")
    if old is None:
        return False
    if "topic-id" not in world.off:
        world.dead_topics.append(("a", old))
    new_topic(world, "a", len(old.logs), old.id)
    world.produce("a", 0, "x", "y")
    return True


def new_topic(world: World, name: str, partitions: int, old_id: int = 0) -> None:
    same = old_id and "topic-id" in world.off
    empty = Topic(old_id if same else world.number(), ())
    world.topics[name] = empty
    for partition in range(partitions):
        world.produce(name, partition)


@action
def delete_topic(world: World, _: Driver) -> bool:
    if "b" not in world.topics:
        return False
    world.dead_topics.append(("b", world.topics.pop("b")))
    return True


@action
def truncate_log(world: World, _: Driver) -> bool:
    if not _change_log(world, lambda log: log.truncated(2)):
        return False
    key, log = world.topics["a"].keyed_logs()[0]
    for warehouse in world.warehouses.values():
        for start in (warehouse.begun, warehouse.earliest):
            if key in start:  # what is added now is after the start, whatever its offset
                start[key] = min(start[key], log.end)
    return True


@action
def expire_log(world: World, _: Driver) -> bool:
    return _change_log(world, lambda log: log.expired(2))


def _change_log(world: World, change: Callable[..., object]) -> bool:
    topic = world.topics.get("a")
    if topic is None:
        return False
    log = change(topic.logs[0])
    world.topics["a"] = topic.with_log(0, log)  # type: ignore[arg-type]
    return log != topic.logs[0]


@action
def expire_logs(world: World, _: Driver) -> bool:
    before = dict(world.topics)
    for name, topic in before.items():
        world.topics[name] = replace(topic, logs=tuple(log.expired(99) for log in topic.logs))
    return world.topics != before
