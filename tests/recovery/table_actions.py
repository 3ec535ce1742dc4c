"""What operators and other programs do to tables; the table is `x` where one is meant."""

from dataclasses import replace

from tests.recovery.process import Driver
from tests.recovery.registry import action
from tests.recovery.tables import DEAD_LETTERS, OTHERS, Progress, Snapshot, Table, newest_records
from tests.recovery.world import World


def _table(world: World, name: str) -> Table | None:
    table = world.warehouse().tables.get(name)
    return table if table is not None and table.snapshots else None


def _put(world: World, name: str, table: Table) -> bool:
    world.warehouse().tables[name] = table
    return True


def _roll_back(world: World, name: str, count: int) -> bool:
    table = _table(world, name)
    if table is None or not 0 < count % len(table.snapshots) < len(table.snapshots):
        return False
    return _put(world, name, table.up_to(count % len(table.snapshots)))


@action
def roll_back_one(world: World, _: Driver) -> bool:
    return _roll_back(world, "x", -1)


@action
def roll_back_to_first(world: World, _: Driver) -> bool:
    return _roll_back(world, "x", 1)


@action
def roll_back_all(world: World, _: Driver) -> bool:
    done = [_roll_back(world, name, 1) for name in sorted(world.warehouse().tables)]
    return any(done)


@action
def roll_back_letters(world: World, _: Driver) -> bool:
    return _roll_back(world, DEAD_LETTERS, 1)


@action
def save(world: World, _: Driver) -> bool:
    world.saved = world.warehouse().copy()
    return True


@action
def restore_table(world: World, _: Driver) -> bool:
    if world.saved is None:
        return False
    saved = world.saved.tables.get("x")
    if saved is None or saved == world.warehouse().tables.get("x"):
        return False
    world.warehouse().judged_like(world.saved)
    return _put(world, "x", saved)


@action
def restore_all(world: World, _: Driver) -> bool:
    if world.saved is None or world.saved.tables == world.warehouse().tables:
        return False
    world.warehouse().judged_like(world.saved)
    world.warehouse().tables = dict(world.saved.tables)
    return True


@action
def drop_table(world: World, _: Driver) -> bool:
    return world.warehouse().tables.pop("x", None) is not None


@action
def drop_letters(world: World, _: Driver) -> bool:
    return world.warehouse().tables.pop(DEAD_LETTERS, None) is not None


@action
def rename_table(world: World, _: Driver) -> bool:
    tables = world.warehouse().tables
    if "x" in tables and "x_old" not in tables:
        tables["x_old"] = tables.pop("x")
    elif "x_old" in tables and "x" not in tables:
        tables["x"] = tables.pop("x_old")
    else:
        return False
    return True


def _by_others(world: World, name: str, rows: tuple[int, ...] | None, records: object) -> bool:
    """A snapshot of Java's: other rows (None: the same), and what it carries as records."""
    table = _table(world, name)
    if table is None:
        return False
    latest = table.snapshots[-1]
    snapshot = Snapshot(
        world.number(),
        latest.id + 1,
        OTHERS,
        latest.rows if rows is None else rows,
        records,  # type: ignore[arg-type]
        rows is not None,
    )
    return _put(world, name, replace(table, snapshots=(*table.snapshots, snapshot)))


@action
def append_by_others(world: World, _: Driver) -> bool:
    return _by_others(world, "x", None, {})


@action
def overwrite_by_others(world: World, _: Driver) -> bool:
    return _by_others(world, "x", (), {})


@action
def expire_by_others(world: World, _: Driver) -> bool:
    table = _table(world, "x")
    if table is None or len(table.snapshots) < 2:
        return False
    latest = table.snapshots[-1]
    for pipeline, record in newest_records(table).items():
        if isinstance(record, Progress) and latest.user != OTHERS:
            replaced = any(pipeline in setting.formerly for setting in world.settings.values())
            if pipeline not in latest.records and not replaced:
                raise AssertionError(f"LOST THE RECORD of {pipeline} by a commit of ingestd")
    return _put(world, "x", replace(table, snapshots=(latest,)))


@action
def tag(world: World, _: Driver) -> bool:
    table = _table(world, "x")
    return table is not None and _put(world, "x", replace(table, tag=table.latest))


@action
def roll_back_as_latest(world: World, _: Driver) -> bool:
    table = _table(world, "x")
    if table is None:
        return False
    target = table.tag or table.snapshots[0]
    return _by_others(world, "x", target.rows, target.records)


@action
def branch(world: World, _: Driver) -> bool:
    table = _table(world, "x")
    return table is not None and _put(world, "x", replace(table, branch=table.snapshots))


@action
def write_branch(world: World, _: Driver) -> bool:
    table = _table(world, "x")
    if table is None or not table.branch:
        return False
    latest = table.branch[-1]
    snapshot = Snapshot(world.number(), latest.id + 1, OTHERS, latest.rows)
    return _put(world, "x", replace(table, branch=(*table.branch, snapshot)))


@action
def fast_forward(world: World, _: Driver) -> bool:
    table = _table(world, "x")
    if table is None or not table.branch or table.branch == table.snapshots:
        return False
    return _put(world, "x", replace(table, snapshots=table.branch, branch=None))


@action
def maintain(world: World, _: Driver) -> bool:
    """A compaction, a rescale or a repair by ingestd: the same rows, the records copied."""
    table = _table(world, "x")
    if table is None:
        return False
    copied = {} if "maintenance-copies" in world.off else newest_records(table, world.off)
    latest = table.snapshots[-1]
    snapshot = Snapshot(world.number(), latest.id + 1, "ingestd", latest.rows, copied)
    return _put(world, "x", replace(table, snapshots=(*table.snapshots, snapshot)))
