"""Lives: actions one after the other, and after them starts until nothing moves."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.recovery.actions import ACTIONS, new_topic
from tests.recovery.judge import (
    BrokenError,
    check_all,
    check_once,
    check_reason,
    forget,
    is_missing,
)
from tests.recovery.process import Driver
from tests.recovery.ways_out import WAYS_OUT
from tests.recovery.world import Settings, Source, StoppedError, World

_FORGETFUL = (
    "roll_back", "restore", "drop", "expire_by_others", "fast_forward", "overwrite",
    "delete_files", "damage_files", "swap_files", "rename_table",
    "rename_pipeline",
)  # fmt: skip
_MOST_WAYS_OUT = 8
_OFTEN = ("produce_a", "produce_b", "run", "run_on", "run_one_batch")
PRODUCE = ("produce_a", "produce_b")
Verdicts = Iterator[tuple[tuple[str, ...], str | AssertionError]]


def new_world(
    driver: Driver, *, latest: bool = True, policy: str = "fail", off: Sequence[str] = ()
) -> World:
    """A pipeline with some history: two sources, one without topics yet, and unread events."""
    world = World(off=frozenset(off))
    shop = Source("shop", frozenset("ab"), latest)
    late = Source("late", frozenset("c"), latest)
    world.settings["first"] = Settings("pipeline", (shop, late), policy=policy)
    other = Source("other", frozenset("d"), latest=False)
    world.settings["second"] = Settings("second", (other,))
    for name, partitions in (("a", 2), ("b", 1), ("d", 1)):
        new_topic(world, name, partitions)
    world.produce("a", 0, "x")
    world.produce("b", 0, "y")
    world.produce("d", 0, "x", "x")
    for number in range(3):
        if number:
            for action in PRODUCE:
                ACTIONS[action](world, driver)
        stopped = driver.run(world, "first")
        if stopped is not None:
            raise stopped
    for action in PRODUCE:
        ACTIONS[action](world, driver)
    return world


def act(world: World, driver: Driver, name: str) -> bool:
    """One action; False if there was nothing for it to do."""
    if not ACTIONS[name](world, driver):
        return False
    if name.startswith(_FORGETFUL):
        forget(world, driver)
    check_once(world)
    return True


def settle(world: World, driver: Driver) -> str:
    """Start until nothing moves, let the logs grow, start again; take the ways out if it stops.

    The reason of the first stop, or "sound".
    """
    world.processes.clear()
    first = _starts(world, driver)
    lost = first is not None and first.code == 3 and first.reason == "offsets-lost"
    cautious = lost and not is_missing(world, first.role if first else "")
    for action in (*PRODUCE, "produce_c"):
        if action in ACTIONS:
            ACTIONS[action](world, driver)
    grown = _starts(world, driver)
    if _told(first) != _told(grown):
        raise BrokenError(f"SAYS {grown} WHERE IT SAID {first}")
    stopped, met = grown, []
    while stopped is not None:
        met.append(_told(stopped))
        if len(met) > _MOST_WAYS_OUT:
            raise BrokenError(f"NO WAY OUT of {met}")
        WAYS_OUT[stopped.reason](world, stopped)
        forget(world, driver)
        stopped = _starts(world, driver)
    if first is None:
        return "sound"
    return f"{first.reason} by caution" if cautious else first.reason


def _told(stopped: StoppedError | None) -> tuple[int, str]:
    return (stopped.code, stopped.reason) if stopped else (0, "")


def _starts(world: World, driver: Driver) -> StoppedError | None:
    """Start twice; both must say the same, and where they go on nothing may be missing."""
    roles = [role for role in ("first", "second") if role == "first" or role in world.started]
    found: dict[str, StoppedError | None] = {}
    for turn in range(2):
        for role in roles:
            dead_letters = len(world.warehouse(role).dead_letters)
            stopped = driver.run(world, role)
            check_once(world)
            if stopped is not None:
                stopped.role = role
                check_reason(world, role, stopped)
            if turn and len(world.warehouse(role).dead_letters) > dead_letters:
                raise BrokenError(f"{role} TOLD AGAIN: {world.warehouse(role).dead_letters[-1]}")
            if turn and _told(stopped) != _told(found[role]):
                raise BrokenError(f"{role} SAYS {stopped} WHERE IT SAID {found[role]}")
            found[role] = stopped
    for role in roles:
        if found[role] is not None:
            return found[role]
        check_all(world, role)
    return None


def life(world: World, driver: Driver, names: Sequence[str]) -> str:
    """Live a life in a copy of a world; BrokenError with what was done in it."""
    world = world.copy()
    try:
        for name in names:
            act(world, driver, name)
        return settle(world, driver)
    except AssertionError as error:
        raise BrokenError(f"{' '.join(names)}: {error}") from None


def every_life(world: World, driver: Driver, depth: int, names: tuple[str, ...] = ()) -> Verdicts:
    """All orders of up to `depth` actions that each had something to do, and their verdicts."""
    for name in ACTIONS:
        after = world.copy()
        here = (*names, name)
        try:
            if not act(after, driver, name):
                continue
            yield here, settle(after.copy(), driver)
        except AssertionError as error:
            yield here, error
            continue
        if depth > 1:
            yield from every_life(after, driver, depth - 1, here)


def worlds(driver: Driver, off: Sequence[str] = ()) -> list[World]:
    """Worlds to begin in: both start modes, each policy; `fail` twice, as it is the usual one."""
    policies = ("fail", "fail", "earliest", "latest")
    return [
        new_world(driver, latest=latest, policy=policy, off=off)
        for latest in (True, False)
        for policy in policies
    ]


def random_life(
    begin: Sequence[World], driver: Driver, seed: int, length: int | None = None
) -> str:
    """The life of a seed, of 3 to 12 actions unless its length is given, and its verdict."""
    chance = random.Random(seed)
    world = begin[chance.randrange(len(begin))]
    choice = [*ACTIONS, *_OFTEN * 3] if length is None else list(ACTIONS)
    names = [chance.choice(choice) for _ in range(length or chance.randrange(3, 13))]
    return life(world, driver, names)


def tally(verdicts: Verdicts) -> Counter[str]:
    """Count verdicts; the first life that breaks the sentence is raised."""
    counts: Counter[str] = Counter()
    for names, verdict in verdicts:
        if isinstance(verdict, AssertionError):
            raise BrokenError(f"{' '.join(names)}: {verdict}")
        counts[verdict] += 1
    return counts
