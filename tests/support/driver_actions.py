"""What happens in a life: runs and deaths of the pipeline, and changes of its configuration.

What others do meanwhile is in `driver_events`. An action returns False if there was nothing for it
to do.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ingestd.crash_points import CrashPoint
from ingestd.errors import IngestdError
from tests.support.driver_events import ACTIONS, Action, action
from tests.support.driver_lives import LOUD, DiedError, Home, World, check_once, live, settle

HOUR_MS = 3_600_000


def named(name: str, found: Action) -> None:
    ACTIONS[name] = found


def _run(world: World, batches: int = 1 << 30) -> bool:
    try:
        live(world, batches)
    except LOUD as error:
        world.trace.append(type(error).__name__)
    return True


@action
def run_to_end(world: World) -> bool:
    return _run(world)


@action
def run_one_batch(world: World) -> bool:
    return _run(world, 1)


@action
def run_two_batches(world: World) -> bool:
    return _run(world, 2)


def die_at(point: CrashPoint | None, times: int) -> Action:
    """Run, and be gone when a step is passed for the n-th time; None: any step."""

    def act(world: World) -> bool:
        io, count = world.io, 0

        def watcher(passed: CrashPoint) -> None:
            nonlocal count
            count += point is None or passed is point
            if count >= times:
                io.dead = True
            if io.dead:
                raise DiedError

        try:
            live(world, death=watcher)
        except DiedError:
            return True
        except LOUD as error:
            world.trace.append(type(error).__name__)
        return False

    return act


UNREACHED = ("changelog.", "index", "vectors.", "moves.", "compaction.", "expiry.")
"""What only other tables, or maintenance, pass; the rest stays a step of the driver or a task."""
for _point in CrashPoint:
    if not _point.value.startswith(UNREACHED):
        named(f"die_{_point.value}_1", die_at(_point, 1))
for _point, _times in (
    (CrashPoint.BATCH_PLANNED, 2),
    (CrashPoint.SNAPSHOT_PUBLISHED, 2),
    (CrashPoint.SNAPSHOT_PUBLISHED, 3),
    (CrashPoint.CLAIMS_WRITTEN, 2),
):
    named(f"die_{_point.value}_{_times}", die_at(_point, _times))


@action
def die_anywhere(world: World) -> bool:
    return die_at(None, world.rng.randrange(1, 120))(world)


def beside(name: str) -> Action:
    """Let an action happen between the reading and the commits of a batch."""

    def act(world: World) -> bool:
        done: list[bool] = []

        def once() -> None:
            if not done:
                done.append(ACTIONS[name](world))

        try:
            live(world, between=once)
        except IngestdError as error:
            world.trace.append(type(error).__name__)
        return bool(done and done[0])

    return act


@action
def produce(world: World) -> bool:
    for name, topic in world.kafka.topics.items():
        for partition in range(len(topic.logs)):
            count = world.rng.choice((1, 3, 6))
            world.produce(name, count, partition)
            if count == 3:
                world.produce_garbage(name, partition)
    return bool(world.kafka.topics)


@action
def produce_orders(world: World) -> bool:
    if "shop.orders" in world.kafka.topics:
        world.produce("shop.orders", 5)
    return "shop.orders" in world.kafka.topics


@action
def produce_idle(world: World) -> bool:
    topic = world.kafka.topics.get("shop.orders")
    if topic is None or len(topic.logs) < 2:
        return False
    world.produce("shop.orders", 3, len(topic.logs) - 1)
    return True


# Configuration, and the rest


@action
def policy_fail(world: World) -> bool:
    changed = world.home.truth.policy != "fail"
    world.set(policy="fail")
    return changed


@action
def policy_earliest(world: World) -> bool:
    changed = world.home.truth.policy != "earliest"
    world.set(policy="earliest")
    return changed


@action
def policy_latest(world: World) -> bool:
    changed = world.home.truth.policy != "latest"
    world.set(policy="latest")
    return changed


@action
def rename_source(world: World) -> bool:
    world.set(source="src" if world.home.truth.source != "src" else "renamed")
    return True


@action
def split_source(world: World) -> bool:
    """Users are read by a source of their own, or by the first one again."""
    if world.home.truth.second_source is None:
        world.set(second_source="second", second_topics=("shop.users",))
    else:
        world.set(second_source=None, second_topics=())
    return True


@action
def rename_pipeline(world: World) -> bool:
    truth = world.home.truth
    world.set(name=f"{truth.name}x", formerly=(truth.name, *truth.formerly))
    return True


@action
def rename_pipeline_unnoticed(world: World) -> bool:
    world.set(name=f"{world.home.truth.name}y", formerly=())
    return True


@action
def change_routing(world: World) -> bool:
    world.set(merge_shards=not world.home.truth.merge_shards)
    return True


@action
def change_table_mapping(world: World) -> bool:
    """Users go to another table from now on, or back."""
    mapping = dict(world.home.truth.mapping)
    if mapping.pop("shop.users", None) is None:
        mapping["shop.users"] = "people"
    world.set(mapping=mapping)
    return True


@action
def change_topic_pattern(world: World) -> bool:
    """Users are left out, or are read again."""
    all_topics = world.home.truth.pattern == ".*"
    world.set(pattern=r".*\.(orders|items)" if all_topics else ".*")
    return True


@action
def change_startup(world: World) -> bool:
    late = world.home.truth.startup == "latest-offset"
    world.set(startup="earliest-offset" if late else "latest-offset")
    return True


@action
def batches_of_one(world: World) -> bool:
    world.set(batch_rows=1)
    return True


@action
def batches_of_many(world: World) -> bool:
    world.set(batch_rows=50)
    return True


@action
def copy_warehouse(world: World) -> bool:
    """The copy goes on, and so does the first one, later."""
    if len(world.homes) > 1:
        return False
    home = world.home
    other = replace(
        home,
        truth=replace(home.truth, root=home.truth.root / "copy"),
        begun=dict(home.begun),
        seen=set(home.seen),
        dead_letters=list(home.dead_letters),
        rows_of_letters=home.rows_of_letters.copy(),
        overwritten=list(home.overwritten),
        emptied=set(home.emptied),
        letters_gone=set(home.letters_gone),
        routed={topic: set(tables) for topic, tables in home.routed.items()},
        saved=None,
    )
    for path, data in list(world.io.files.items()):
        if path.startswith(home.warehouse + "/"):
            world.io.files[other.warehouse + path.removeprefix(home.warehouse)] = data
    world.homes.append(other)
    return True


@action
def another_warehouse(world: World) -> bool:
    """One that is empty, under the same name."""
    if len(world.homes) > 1:
        return False
    truth = replace(world.home.truth, root=world.home.truth.root / "empty")
    world.homes.append(Home(truth))
    return True


@action
def move_warehouse(world: World) -> bool:
    home = world.home
    old, root = home.warehouse, home.truth.root / "moved"
    if not world.io.exists(old):
        return False
    world.io.rename_directory(old, str(root / "warehouse"))
    world.set(root=root)
    if home.saved is not None:
        new = home.warehouse
        home.saved = {new + path.removeprefix(old): data for path, data in home.saved.items()}
    return True


@action
def second_pipeline(world: World) -> bool:
    """Another pipeline is to read the same topics into the same tables."""
    before = world.home.truth
    world.set(name="other", formerly=())
    try:
        live(world)
    except IngestdError as error:
        world.trace.append(type(error).__name__)
    finally:
        world.set(name=before.name, formerly=before.formerly)
    return True


@action
def another_daemon(world: World) -> bool:
    """The pipeline is started again, although a daemon of it may be at work."""
    return _run(world)


@action
def clock_ahead(world: World) -> bool:
    world.clock[0] += 26 * HOUR_MS
    return True


@action
def clock_behind(world: World) -> bool:
    world.clock[0] -= 26 * HOUR_MS
    return True


@action
def refresh_records(world: World) -> bool:
    """What a daemon does between batches after some hours."""
    world.clock[0] += 7 * HOUR_MS
    try:
        lake = live(world, 1)
    except LOUD:
        return False
    lake.refresh_records()
    lake.write_claims()
    return True


def _is_thing_to_others(name: str) -> bool:
    """Whether brokers, operators or other programs do it, so that it can happen beside a daemon.

    A folder is put back when the daemon is stopped, as the documents say.
    """
    own = ("run", "die", "policy", "batches", "refresh", "another_w", "change", "move")
    return not name.startswith((*own, "rename", "restore"))


ADDED = (
    "split_source",
    "create_orders_table_again",
    "restore_letters",
    "beside create_orders_table_again",
)
"""Actions that are drawn apart, so that the lives of known seeds remain the same."""
_DRAWN = [name for name in ACTIONS if name not in ADDED]
BESIDE = sorted(filter(_is_thing_to_others, _DRAWN))
RUNS = [name for name in ACTIONS if name.startswith(("run", "die"))]


def drawn(
    rng: Random, kinds: Sequence[tuple[str, str]], added: float = 0
) -> tuple[tuple[str, str], list[str]]:
    """Return how a random life begins, and what happens in it, by chance also one of `ADDED`."""
    names = []
    for _ in range(rng.randrange(2, 9)):
        which = rng.random()
        if which < 0.3:
            names.append(rng.choice(RUNS))
        elif which < 0.38:
            names.append("produce")
        elif which < 0.45:
            names.append(f"beside {rng.choice(BESIDE)}")
        else:
            names.append(rng.choice(_DRAWN))
    kind = rng.choice(kinds)
    if rng.random() < added:
        names.insert(rng.randrange(len(names) + 1), rng.choice(ADDED))
    return kind, names


def play(world: World, names: Sequence[str]) -> World:
    """Live a life to its end. Raises BrokenError if the promise was not kept."""
    world.rng = Random(" ".join(names))
    for name in names:
        world.trace.append(name)
        act = ACTIONS[name] if name in ACTIONS else beside(name.removeprefix("beside "))
        act(world)
        check_once(world)
    settle(world)
    return world
