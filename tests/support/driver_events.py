"""What others do in a life: to tables, to files outside them, and to brokers.

An action returns False if there was nothing for it to do.
"""

from collections.abc import Callable
from dataclasses import replace

from ingestd.ingest.tables.claims import claims_path
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.spec.snapshot import (
    BATCH_COMMIT_IDENTIFIER,
    CommitKind,
    Snapshot,
    encode_snapshot,
)
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    on_branch,
    tag_names,
    tagged_snapshot,
)
from ingestd.paimon.table.retention.branches import create_branch, drop_branch, fast_forward
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.rewrite.rescale import rescale as rescale_table
from tests.support.driver_lives import LETTERS, Home, World, ids
from tests.support.truth_rig import DATABASE, Log

Action = Callable[[World], bool]
ACTIONS: dict[str, Action] = {}
_TAG = "kept"
_BRANCH = "side"


def action(function: Action) -> Action:
    """Let lives draw an action, by its name."""
    ACTIONS[function.__name__] = function
    return function


# Tables


def _newest(home: Home, name: str) -> Snapshot | None:
    if not home.has(name):
        return None
    return latest_snapshot(home.truth.io, home.truth.table(name).paths)


def _roll_back(world: World, name: str, place: int) -> bool:
    home = world.home
    if not home.has(name):
        return False
    table = home.truth.table(name)
    numbers = sorted(snapshot_ids(table.io, table.paths))
    if len(numbers) < 2:
        return False
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, numbers[place])))
    return True


@action
def roll_back_orders(world: World) -> bool:
    return _roll_back(world, "orders", 0)


@action
def roll_back_orders_by_one(world: World) -> bool:
    return _roll_back(world, "orders", -2)


@action
def roll_back_users(world: World) -> bool:
    return _roll_back(world, "users", 0)


@action
def roll_back_letters(world: World) -> bool:
    return _roll_back(world, LETTERS, 0)


@action
def roll_back_all(world: World) -> bool:
    done = [_roll_back(world, name, 0) for name in ("orders", "users", "items", LETTERS)]
    return any(done)


@action
def save(world: World) -> bool:
    home = world.home
    home.saved = {
        path: data for path, data in world.io.files.items() if path.startswith(home.warehouse)
    }
    return True


def _restore(world: World, prefix: str) -> bool:
    home = world.home
    saved = {path: data for path, data in (home.saved or {}).items() if path.startswith(prefix)}
    if not saved:
        return False
    world.io.delete_tree(prefix)
    world.io.files.update(saved)
    return True


@action
def restore_orders(world: World) -> bool:
    return _restore(world, world.home.path("orders"))


@action
def restore_users(world: World) -> bool:
    return _restore(world, world.home.path("users"))


@action
def restore_letters(world: World) -> bool:
    return _restore(world, world.home.path(LETTERS))


@action
def restore_tables(world: World) -> bool:
    return _restore(world, f"{world.home.warehouse}/lake.db")


@action
def restore_all(world: World) -> bool:
    return _restore(world, world.home.warehouse)


@action
def restore_claims(world: World) -> bool:
    path = claims_path(world.home.warehouse, world.home.truth.name)
    return _restore(world, path)


def _drop(world: World, name: str) -> bool:
    found = world.home.has(name)
    world.io.delete_tree(world.home.path(name))
    return found


@action
def drop_orders(world: World) -> bool:
    return _drop(world, "orders")


@action
def drop_users(world: World) -> bool:
    return _drop(world, "users")


@action
def create_orders_table_again(world: World) -> bool:
    """Another client drops the table and creates it again, without the marks of a pipeline."""
    home = world.home
    if not home.has("orders"):
        return False
    schema = home.truth.table("orders").schema
    kept = {name: one for name, one in schema.options.items() if not name.startswith("ingestd")}
    _drop(world, "orders")
    created = replace(schema, id=0, options=kept, time_millis=world.clock[0])
    home.truth.catalog.create_table(Identifier(DATABASE, "orders"), created, ignore_if_exists=False)
    return True


@action
def drop_letters(world: World) -> bool:
    world.home.letters_gone |= {-number for number in range(1, world.numbers + 1)}
    return _drop(world, LETTERS)


def _put(table: FileStoreTable, snapshot: Snapshot) -> bool:
    table.io.overwrite(table.paths.snapshot(snapshot.id), encode_snapshot(snapshot))
    table.io.overwrite(table.paths.latest_hint, str(snapshot.id).encode())
    return True


@action
def foreign_commit(world: World) -> bool:
    newest = _newest(world.home, "orders")
    if newest is None:
        return False
    foreign = replace(
        newest,
        id=newest.id + 1,
        commit_user="other",
        properties={},
        commit_identifier=1,
        commit_kind=CommitKind.APPEND,
        delta_record_count=0,
    )
    return _put(world.home.truth.table("orders"), foreign)


@action
def foreign_overwrite(world: World) -> bool:
    home = world.home
    if _newest(home, "orders") is None:
        return False
    held = frozenset(ids(home, "orders"))
    truncate_table(home.truth.table("orders"), now_ms=world.clock[0])
    newest = _newest(home, "orders")
    assert newest is not None
    home.overwritten.append(("orders", newest.id, len(home.dead_letters), held))
    foreign = replace(
        newest,
        commit_user="spark",
        properties={},
        commit_identifier=BATCH_COMMIT_IDENTIFIER,
        commit_kind=CommitKind.OVERWRITE,
    )
    return _put(home.truth.table("orders"), foreign)


@action
def roll_back_as_latest(world: World) -> bool:
    """To the tag, if there is one, or the oldest snapshot, as Java does."""
    home = world.home
    newest = _newest(home, "orders")
    if newest is None:
        return False
    table = home.truth.table("orders")
    target = read_snapshot(table.io, table.paths, min(snapshot_ids(table.io, table.paths)))
    if _TAG in tag_names(table.io, table.paths):
        target = tagged_snapshot(table, _TAG)
    if not target.properties:  # looks like any other overwrite
        held = frozenset(ids(home, "orders"))
        home.overwritten.append(("orders", newest.id + 1, len(home.dead_letters), held))
    again = replace(
        target,
        id=newest.id + 1,
        commit_user="java",
        commit_identifier=BATCH_COMMIT_IDENTIFIER,
        commit_kind=CommitKind.OVERWRITE,
        delta_record_count=(target.total_record_count or 0) - (newest.total_record_count or 0),
    )
    return _put(table, again)


@action
def truncate_orders(world: World) -> bool:
    home = world.home
    if _newest(home, "orders") is None:
        return False
    home.emptied |= {("orders", number) for number in ids(home, "orders")}
    truncate_table(home.truth.table("orders"), now_ms=world.clock[0])
    return True


@action
def tag_orders(world: World) -> bool:
    newest = _newest(world.home, "orders")
    if newest is None:
        return False
    table = world.home.truth.table("orders")
    again = _TAG in tag_names(table.io, table.paths)
    create_tag(table, _TAG, newest, now_ms=world.clock[0], must_exist=again)
    return True


@action
def roll_back_to_tag(world: World) -> bool:
    if not world.home.has("orders"):
        return False
    table = world.home.truth.table("orders")
    if _TAG not in tag_names(table.io, table.paths):
        return False
    rollback(table, plan_rollback(table, tagged_snapshot(table, _TAG)))
    return True


@action
def branch_orders(world: World) -> bool:
    """A branch at a new tag of the newest snapshot, in place of the branch before."""
    if not tag_orders(world):
        return False
    table = world.home.truth.table("orders")
    if _BRANCH in branch_names(table.io, table.paths):
        drop_branch(table, _BRANCH)
    create_branch(table, _BRANCH, _TAG)
    return True


@action
def write_branch(world: World) -> bool:
    if not world.home.has("orders"):
        return False
    table = world.home.truth.table("orders")
    if _BRANCH not in branch_names(table.io, table.paths):
        return False
    branch = on_branch(table, _BRANCH)
    newest = latest_snapshot(branch.io, branch.paths)
    assert newest is not None
    return _put(branch, replace(newest, id=newest.id + 1, commit_user="other", properties={}))


@action
def fast_forward_orders(world: World) -> bool:
    if not world.home.has("orders"):
        return False
    table = world.home.truth.table("orders")
    if _BRANCH not in branch_names(table.io, table.paths):
        return False
    fast_forward(table, _BRANCH)
    return True


@action
def rescale_orders(world: World) -> bool:
    home = world.home
    if _newest(home, "orders") is None or home.truth.table("orders").options.bucket < 1:
        return False
    buckets = home.truth.table("orders").options.bucket + 1
    changes = [SetOption("bucket", str(buckets))]
    table = home.truth.catalog.alter_table(Identifier(DATABASE, "orders"), changes, world.clock[0])
    for _ in rescale_table(table, buckets, clock_ms=lambda: world.clock[0]):
        pass
    return True


@action
def expire_orders(world: World) -> bool:
    if _newest(world.home, "orders") is None:
        return False
    one = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    expire_snapshots(world.home.truth.table("orders"), expire_settings(one), world.clock[0])
    return True


@action
def rename_table(world: World) -> bool:
    """With the routing to it, if it goes to the new name or back."""
    home = world.home
    moved = home.truth.mapping.get("shop.orders") == "orders_moved"
    old, new = ("orders_moved", "orders") if moved else ("orders", "orders_moved")
    if not home.has(old) or world.io.exists(home.path(new)):
        return False
    catalog = home.truth.catalog
    catalog.rename_table(Identifier(DATABASE, old), Identifier(DATABASE, new))
    world.set(mapping={**home.truth.mapping, "shop.orders": new, "copy.orders": new})
    return True


@action
def rename_table_only(world: World) -> bool:
    home = world.home
    if not home.has("users") or world.io.exists(home.path("people")):
        return False
    home.truth.catalog.rename_table(Identifier(DATABASE, "users"), Identifier(DATABASE, "people"))
    return True


@action
def foreign_expiry(world: World) -> bool:
    newest = _newest(world.home, "orders")
    if newest is None:
        return False
    table = world.home.truth.table("orders")
    for number in snapshot_ids(table.io, table.paths):
        if number < newest.id:
            table.io.delete_quietly(table.paths.snapshot(number))
    return True


@action
def foreign_expiry_of_records(world: World) -> bool:
    """No snapshot of ours is left."""
    return foreign_commit(world) and foreign_expiry(world)


@action
def compact(world: World) -> bool:
    if _newest(world.home, "orders") is None:
        return False
    compact_table(world.home.truth.table("orders"), now_ms=world.clock[0], full=True)
    return True


# Files outside the tables


def _claims(world: World) -> str | None:
    path = claims_path(world.home.warehouse, world.home.truth.name)
    return path if world.io.exists(path) else None


@action
def lose_claims(world: World) -> bool:
    path = _claims(world)
    if path is not None:
        world.io.delete_quietly(path)
    return path is not None


@action
def flip_claims(world: World) -> bool:
    path = _claims(world)
    if path is None:
        return False
    damaged = bytearray(world.io.files[path])
    damaged[world.rng.randrange(len(damaged))] ^= 1 << world.rng.randrange(8)
    world.io.files[path] = bytes(damaged)
    return True


@action
def change_claims_digit(world: World) -> bool:
    """Damage that leaves the file well-formed: one digit is another."""
    path = _claims(world)
    if path is None:
        return False
    damaged = bytearray(world.io.files[path])
    body = damaged[: damaged.index(b'"sha256"')]
    digits = [place for place, byte in enumerate(body) if chr(byte).isdigit()]
    damaged[world.rng.choice(digits)] = ord(world.rng.choice("123456789"))
    world.io.files[path] = bytes(damaged)
    return True


@action
def lose_terms(world: World) -> bool:
    folder = f"{world.home.warehouse}/.ingestd/{world.home.truth.name}"
    terms = [name for name in world.io.list_names(folder) if name.startswith("term-")]
    for name in terms:
        world.io.delete_quietly(f"{folder}/{name}")
    return bool(terms)


@action
def lose_hidden_folder(world: World) -> bool:
    found = world.io.exists(f"{world.home.warehouse}/.ingestd")
    world.io.delete_tree(f"{world.home.warehouse}/.ingestd")
    return found


@action
def restore_hidden_folder(world: World) -> bool:
    return _restore(world, f"{world.home.warehouse}/.ingestd")


@action
def swap_claims(world: World) -> bool:
    """Of two warehouses each gets the file of the other."""
    paths = [claims_path(home.warehouse, home.truth.name) for home in world.homes]
    if len(paths) < 2 or not all(map(world.io.exists, paths)):
        return False
    first, second = (world.io.files[path] for path in paths)
    world.io.files.update(zip(paths, (second, first), strict=True))
    return True


# Brokers


@action
def add_partition(world: World) -> bool:
    topic = world.kafka.topics.get("shop.orders")
    if topic is None or len(topic.logs) > 4:
        return False
    topic.logs.append(Log())
    world.produce("shop.orders", 2, len(topic.logs) - 1)
    return True


@action
def add_copy_topic(world: World) -> bool:
    if "copy.orders" in world.kafka.topics:
        return False
    world.make_topic("copy.orders")
    world.produce("copy.orders", 3)
    return True


@action
def add_item_topic(world: World) -> bool:
    if "shop.items" in world.kafka.topics:
        return False
    world.make_topic("shop.items")
    world.produce("shop.items", 3)
    return True


def _end_topic(world: World, name: str) -> bool:
    topic = world.kafka.topics.pop(name, None)
    if topic is not None:
        world.dead.append((name, topic))
    return topic is not None


@action
def delete_orders(world: World) -> bool:
    return _end_topic(world, "shop.orders")


@action
def delete_users(world: World) -> bool:
    return _end_topic(world, "shop.users")


def _again(world: World, name: str, count: int) -> bool:
    _end_topic(world, name)
    world.make_topic(name)
    world.produce(name, count)
    return True


@action
def create_orders_again_longer(world: World) -> bool:
    return _again(world, "shop.orders", 14)


@action
def create_orders_again_shorter(world: World) -> bool:
    return _again(world, "shop.orders", 2)


@action
def create_users_again(world: World) -> bool:
    return _again(world, "shop.users", 12)


def _truncate(world: World, grown: int) -> bool:
    topic = world.kafka.topics.get("shop.orders")
    if topic is None:
        return False
    log = topic.logs[0]
    end = max(log.first, len(log.records) * 2 // 3)
    world.replaced[topic.topic_id, 0] = max(
        len(log.records), world.replaced.get((topic.topic_id, 0), 0)
    )
    del log.records[end:]
    log.epoch += 1
    world.produce("shop.orders", grown)
    return True


@action
def truncate_log(world: World) -> bool:
    return _truncate(world, 0)


@action
def truncate_log_and_grow(world: World) -> bool:
    return _truncate(world, 8)


@action
def change_leader(world: World) -> bool:
    for topic in world.kafka.topics.values():
        topic.logs[0].epoch += 1
    return bool(world.kafka.topics)


def _retain(world: World, name: str, kept: int) -> bool:
    topic = world.kafka.topics.get(name)
    if topic is None:
        return False
    for log in topic.logs:
        log.first = max(log.first, len(log.records) - kept)
    return True


@action
def retention_keeps_three(world: World) -> bool:
    return _retain(world, "shop.orders", 3)


@action
def retention_keeps_nothing(world: World) -> bool:
    return _retain(world, "shop.orders", 0)


@action
def retention_of_users(world: World) -> bool:
    return _retain(world, "shop.users", 2)
