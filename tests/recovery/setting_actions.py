"""What happens to files beside the tables, to the clock, to settings, and to the daemon itself."""

from contextlib import suppress
from dataclasses import replace

from tests.recovery.process import Driver
from tests.recovery.registry import ACTIONS, Action, action
from tests.recovery.world import DiedError, StoppedError, World


@action
def delete_files(world: World, _: Driver) -> bool:
    files = world.warehouse().files
    there = bool(files)
    files.clear()
    return there


@action
def damage_files(world: World, driver: Driver) -> bool:
    files = world.warehouse().files
    changed = {name: driver.kind.damaged(one) for name, one in files.items()}
    there = changed != files
    files.update(changed)
    return there


@action
def swap_files(world: World, _: Driver) -> bool:
    """Older files of the copy, or those of the other warehouse."""
    other = world.saved
    if other is None or other.files == world.warehouse().files:
        return False
    world.warehouse().judged_like(other)
    world.warehouse().files = dict(other.files)
    return True


@action
def delete_scratch(world: World, _: Driver) -> bool:
    there = bool(world.scratch)
    world.scratch.clear()
    return there


@action
def clock_jumps(world: World, driver: Driver) -> bool:
    """Six hours pass, by this host's clock at least: tables that are idle are committed to."""
    if "first" not in world.processes:
        return False
    with suppress(StoppedError, DiedError):
        driver.idle(world, "first")
    return True


@action
def copy_warehouse(world: World, _: Driver) -> bool:
    here = world.settings["first"].warehouse
    beside = "second" if here == "first" else "first"
    world.warehouses[beside] = world.warehouse().copy()
    return True


@action
def switch_warehouse(world: World, _: Driver) -> bool:
    here = world.settings["first"].warehouse
    world.change("first", warehouse="second" if here == "first" else "first")
    return True


@action
def rename_warehouse(world: World, driver: Driver) -> bool:
    here = world.settings["first"].warehouse
    beside = "second" if here == "first" else "first"
    if here not in world.warehouses:
        return False
    world.processes.clear()
    world.warehouses[beside] = world.warehouses.pop(here)
    for role in world.settings:
        world.change(role, warehouse=beside)
    return True


@action
def rename_pipeline(world: World, _: Driver) -> bool:
    old = world.settings["first"].pipeline
    world.change("first", pipeline="renamed" if old == "pipeline" else "pipeline")
    world.change("first", formerly=frozenset())
    return True


@action
def rename_pipeline_rightly(world: World, driver: Driver) -> bool:
    old = world.settings["first"].pipeline
    rename_pipeline(world, driver)
    world.change("first", formerly=frozenset({old}))
    return True


@action
def rename_source(world: World, _: Driver) -> bool:
    first, *others = world.settings["first"].sources
    name = "renamed" if first.name == "shop" else "shop"
    world.change("first", sources=(replace(first, name=name), *others))
    return True


@action
def change_topics(world: World, _: Driver) -> bool:
    first, *others = world.settings["first"].sources
    topics = frozenset("a") if "b" in first.topics else frozenset("ab")
    world.change("first", sources=(replace(first, topics=topics), *others))
    return True


@action
def change_start_mode(world: World, _: Driver) -> bool:
    sources = world.settings["first"].sources
    world.change(
        "first", sources=tuple(replace(source, latest=not source.latest) for source in sources)
    )
    return True


@action
def change_routing(world: World, _: Driver) -> bool:
    world.change("first", rerouted=not world.settings["first"].rerouted)
    return True


@action
def change_merge_shards(world: World, _: Driver) -> bool:
    world.change("first", merge_shards=not world.settings["first"].merge_shards)
    return True


@action
def accept_losses(world: World, _: Driver) -> bool:
    return _policy(world, "earliest")


@action
def accept_losses_from_now(world: World, _: Driver) -> bool:
    return _policy(world, "latest")


def _policy(world: World, policy: str) -> bool:
    there = world.settings["first"].policy
    world.change("first", policy=policy)
    return there != policy


@action
def run(world: World, driver: Driver) -> bool:
    _alive(world, driver, new=True)
    return True


@action
def run_on(world: World, driver: Driver) -> bool:
    """The process that runs reads what has come; it is left running."""
    _alive(world, driver)
    return True


@action
def run_one_batch(world: World, driver: Driver) -> bool:
    _alive(world, driver, most=1)
    return True


@action
def run_second(world: World, driver: Driver) -> bool:
    """Another pipeline, with a topic of its own that feeds the same tables."""
    driver.run(world, "second")
    return True


def _alive(world: World, driver: Driver, *, most: int = 60, new: bool = False) -> None:
    if new:
        world.processes.pop("first", None)
    with suppress(StoppedError, DiedError):
        driver.batches(world, "first", most)


def _dies_at(step: int) -> Action:
    def die(world: World, driver: Driver) -> bool:
        world.steps_left = step
        _alive(world, driver, new=True)
        died = world.steps_left is None
        world.steps_left = None
        world.processes.pop("first", None)
        return died

    return die


for _step in range(7):
    ACTIONS[f"die_at_{_step}"] = _dies_at(_step)
