"""Lives of a pipeline in memory: what happens to it, and whether it kept its promise.

The start of the pipeline, planning, batches, commits and tables are the real ones, over files in
memory and the brokers of `truth_rig`. A life is a row of actions; afterwards the pipeline runs to
its end, and the promise is looked at: every record of every log is in its table once, or a dead
letter names it, or the start ends with an error that it repeats until an operator acts. A record
that is rejected has one dead letter.
"""

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from ingestd.crash_points import CrashPoint, watch
from ingestd.errors import (
    ConfigError,
    IngestdError,
    OffsetLostError,
    ProgressLostError,
    SchemaConflictError,
)
from ingestd.ingest.recovery.losses import TO_BE
from ingestd.ingest.recovery.set_progress import at_claims, at_origin, begin
from ingestd.ingest.settings.rejection import GAP_STAGE
from ingestd.ingest.tables.claims import read_claims
from ingestd.ingest.tables.log_positions import Vector
from ingestd.ingest.tables.progress import decode_properties, pipelines_in
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.properties import OutOfRangePolicy
from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    find_snapshot,
    latest_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite.rescale import rescale as rescale_table
from tests.support.fast_driver import KEPT
from tests.support.truth_rig import DATABASE, Kafka, Log, Topic, Truth

LETTERS = "ingestd_dead_letters"
TABLES = ("orders", "users", "items", "orders_moved", "people")
LOUD = (OffsetLostError, ProgressLostError, SchemaConflictError)
FOREVER = 1 << 30
_NOT_BY_CLAIMS = re.compile(
    "(beside )?(roll_back|restore|fast_forward|foreign_overwrite|rename|drop|delete|move)"
)
LogPartition = tuple[str, int]


class DiedError(BaseException):
    """The process is gone; nothing that it would still do happens."""


class BrokenError(AssertionError):
    """The promise was not kept."""


class MortalFiles(MemoryFileIO):
    """Files in memory that a process cannot reach any more once it is dead."""

    dead = False

    def __getattribute__(self, name: str) -> Any:
        if name in _CALLS and object.__getattribute__(self, "dead"):
            raise DiedError
        return object.__getattribute__(self, name)


_CALLS = frozenset(
    name for name, one in vars(MemoryFileIO).items() if callable(one) and name[0] != "_"
)


@dataclass(frozen=True)
class Letter:
    """A dead letter of the driver: what it names, and what was there when it was written."""

    table: str | None
    reason: str
    topic: str
    partition: int
    start: int
    until: int
    message: str
    keys: frozenset[str]
    gone: frozenset[str]
    tables: frozenset[str]
    policy: OutOfRangePolicy

    def names(self, tables: Collection[str], key: str, place: tuple[str, int, int]) -> bool:
        """Whether it speaks of a record of a log for one of the tables to which it was routed."""
        topic, partition, offset = place
        if key not in self.keys:
            return False
        if self.reason == "table-dropped":
            starts = json.loads(self.message[self.message.index("{") :])
            before = key in self.gone or offset < starts.get(f"{topic}/{partition}", 0)
            return self.table in tables and before
        useless = self.reason == "log-truncated" and self.policy != "latest"
        useless |= self.reason == "rerouted" and len(tables) == 1
        if useless or self.reason == "table-overwritten":
            return False
        meant = self.table in (*tables, TO_BE) or self.tables.isdisjoint(tables)
        meant |= LETTERS in tables  # a rejected record may have been one of any table
        return (
            meant
            and (self.topic, self.partition) == (topic, partition)
            and (self.start <= offset < self.until)
        )


@dataclass
class Home:
    """One warehouse, and what is known of it from outside."""

    truth: Truth
    begun: dict[LogPartition, int] = field(default_factory=dict)
    seen: set[LogPartition] = field(default_factory=set)
    dead_letters: list[Letter] = field(default_factory=list)
    rows_of_letters: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    overwritten: list[tuple[str, int, int, frozenset[int]]] = field(default_factory=list)
    emptied: set[tuple[str, int]] = field(default_factory=set)
    letters_gone: set[int] = field(default_factory=set)
    routed: dict[str, set[str]] = field(default_factory=dict)
    saved: dict[str, bytes] | None = None
    names: tuple[str, ...] = ()

    @property
    def warehouse(self) -> str:
        return str(self.truth.root / "warehouse")

    def path(self, table: str) -> str:
        return f"{self.warehouse}/{DATABASE}.db/{table}"

    def selects(self, topic: str) -> bool:
        """Whether the pipeline reads a topic, by its configuration."""
        return any(source.kafka.selects(topic) for source in self.truth.settings.sources.values())

    def note_routing(self, topics: Iterable[str]) -> None:
        """Remember to which tables each topic was ever routed."""
        for topic in topics:
            table = self.truth.mapping.get(topic, topic.rpartition(".")[2])
            self.routed.setdefault(topic, set()).add(table)

    def has(self, table: str) -> bool:
        folder = self.path(table) + "/schema"
        # A death may leave the folder without a schema.
        names = self.truth.io.list_names(folder) if self.truth.io.exists(folder) else []
        return any(name.startswith("schema-") for name in names)


@dataclass
class World:
    """Brokers, warehouses, and everything that ever was in a log."""

    kafka: Kafka = field(default_factory=Kafka)
    homes: list[Home] = field(default_factory=list)
    dead: list[tuple[str, Topic]] = field(default_factory=list)
    replaced: dict[LogPartition, int] = field(default_factory=dict)
    numbers: int = 0
    topics_made: int = 0
    processes: int = 0
    rng: Random = field(default_factory=lambda: Random(0))
    clock: list[int] = field(default_factory=lambda: [1_700_000_000_000])
    trace: list[str] = field(default_factory=list)

    @property
    def home(self) -> Home:
        return self.homes[-1]

    @property
    def io(self) -> MortalFiles:
        return self.home.truth.io  # type: ignore[return-value]

    def set(self, **changes: Any) -> None:
        """Change the configuration."""
        self.home.truth = replace(self.home.truth, **changes)

    def produce(self, topic: str, count: int, partition: int = 0) -> None:
        self.kafka.produce(topic, *range(self.numbers, self.numbers + count), partition=partition)
        self.numbers += count

    def produce_garbage(self, topic: str, partition: int) -> None:
        """Append two records that are rejected, each in another stage."""
        for _ in range(2):
            self.numbers += 1
            self.kafka.produce(topic, -self.numbers, partition=partition)

    def make_topic(self, name: str, partitions: int = 1) -> None:
        self.topics_made += 1
        logs = [Log() for _ in range(partitions)]
        self.kafka.topics[name] = Topic(f"id-{self.topics_made}", logs)

    @property
    def claims_may_hold(self) -> bool:
        """Whether nothing happened after which the way out is not that by the claims."""
        return not any(map(_NOT_BY_CLAIMS.match, self.trace))

    def begin_again(self, message: str) -> None:
        """Take the way out of a table that says nothing although it should."""
        truth = self.home.truth
        found = re.search(r"table (\S+?):", message)
        assert found
        table = found[1]
        claims = read_claims(truth.io, truth.settings.warehouse, truth.name)

        def begin_at(vector: Callable[[TableRegistry], Vector]) -> None:
            begin(truth.settings, truth.catalog, truth.io, table, vector, lambda: self.clock[0])

        if self.claims_may_hold:
            try:
                begin_at(at_claims(table, claims))
            except ConfigError as error:
                self.trace.append(str(error))
            else:
                return
        truncate_table(truth.table(table.removeprefix(f"{DATABASE}.")), now_ms=1)
        begin_at(at_origin(table))

    def copy(self) -> "World":
        """A world that goes on by itself."""
        return copy.deepcopy(self)


def born(
    startup: str = "earliest-offset", policy: OutOfRangePolicy = "fail", buckets: int = -1
) -> World:
    """A pipeline that has read two topics in several batches, and has something more to read."""
    world = World()
    io = MortalFiles()
    truth = Truth(
        Path("/life"),
        world.kafka,
        policy,
        batch_rows=4,
        startup=startup,  # type: ignore[arg-type]
        io=io,
        options={"bucket": str(buckets), **({"bucket-key": "id"} if buckets > 0 else {})},
    )
    world.homes.append(Home(truth))
    world.make_topic("shop.orders", 2)
    world.make_topic("shop.users")
    for topic in ("shop.orders", "shop.users"):
        world.produce(topic, 3)
    live(world)
    for topic in ("shop.orders", "shop.users"):
        world.produce(topic, 6)
    live(world)
    world.produce("shop.orders", 2)
    return world


def known(home: Home, names: Sequence[str]) -> tuple[set[LogPartition], set[str]]:
    """What the newest records of a pipeline and its claims file speak of: logs, and sources."""
    truth, io = home.truth, home.truth.io
    found = []
    for table in filter(home.has, io.list_names(f"{home.warehouse}/{DATABASE}.db")):
        paths = truth.table(table).paths
        for number in sorted(snapshot_ids(io, paths), reverse=True):
            snapshot = find_snapshot(io, paths, number)
            mine = [] if snapshot is None else pipelines_in(snapshot.properties)
            ours = [name for name in names if name in mine]
            if snapshot is not None and ours:
                record = decode_properties(ours[0], snapshot.properties, table)
                assert record is not None
                found.append(record.pipeline)
                break
    for name in names:
        claims = read_claims(io, home.warehouse, name)
        if claims is not None:
            found.append(claims.progress)
            break
    places = {(key, one) for record in found for key, ones in record.end.items() for one in ones}
    return places, {source for record in found for source in record.sources}


def live(
    world: World,
    batches: int = FOREVER,
    death: Callable[[CrashPoint], None] | None = None,
    between: Callable[[], object] | None = None,
) -> TableRegistry:
    """Run the pipeline of the current warehouse; raises what ends it."""
    home = world.home
    world.clock[0] += 1000
    world.processes += 1
    collect = _first_seen(world, home)

    def happens() -> None:
        if between is not None:
            collect()  # what was written may be gone after it
            between()

    truth = replace(
        home.truth,
        now_ms=lambda: world.clock[0],
        between=happens,
        holder=f"process {world.processes}",
    )
    if death is not None:
        watch(death)
    try:
        return truth.live(batches)
    finally:
        watch(None)
        world.io.dead = False
        collect()


def _first_seen(world: World, home: Home) -> Callable[[], None]:
    """Note which logs a start sees, and where new ones begin; returns what collects its letters."""
    truth = home.truth
    home.names = (truth.name, *(one for one in home.names if one != truth.name))
    home.note_routing(world.kafka.topics)
    places, sources = known(home, home.names)
    home.seen = known(home, (truth.name, *truth.formerly))[0]
    ends = {}
    for name, topic in world.kafka.topics.items():
        for partition, log in enumerate(topic.logs):
            place = (topic.topic_id, partition)
            ends[place] = len(log.records)
            if place not in places and home.selects(name):
                late = truth.startup == "latest-offset" and not sources
                home.begun[place] = len(log.records) if late else log.first
    # One without a snapshot is as one that is yet to be created.
    before = {
        table for table in TABLES if snapshot_ids(home.truth.io, TablePaths(home.path(table)))
    }
    home.rows_of_letters = _rows_of_letters(home)
    return partial(_collect_letters, world, home, before, places, ends)


def _rows_of_letters(home: Home) -> Counter[tuple[Any, ...]]:
    rows = _read(home.truth.table(LETTERS)) if home.has(LETTERS) else []
    names = ("table", "reason", "topic", "partition", "offset", "message")
    return Counter(tuple(row[name] for name in names) for row in rows if row["stage"] == GAP_STAGE)


def rejected(home: Home) -> list[tuple[str, int]]:
    """The pipeline and the number of each record that has a dead letter."""
    rows = _read(home.truth.table(LETTERS)) if home.has(LETTERS) else []
    return [
        (row["job"], int(re.findall(rb"-?\d+", row["value"])[0]))
        for row in rows
        if row["stage"] != GAP_STAGE
    ]


def _collect_letters(
    world: World,
    home: Home,
    tables: set[str],
    places: set[LogPartition],
    ends: dict[LogPartition, int],
) -> None:
    rows = _rows_of_letters(home)
    new = rows - home.rows_of_letters
    home.rows_of_letters = rows
    for table_name, reason, topic, partition, start, message in new:
        gone = frozenset(one.topic_id for name, one in world.dead if topic in ("", name))
        alive = {t.topic_id for n, t in world.kafka.topics.items() if topic in ("", n)}
        keys = gone if reason.startswith("topic-") else gone | alive if not topic else alive
        span = re.search(r"offsets (\d+) to (\d+|its unknown end),", message)
        until = FOREVER if span is None or not span[2].isdigit() else int(span[2])
        short = table_name.removeprefix(f"{DATABASE}.") if table_name else None
        dead_letter = Letter(
            short,
            reason,
            topic,
            partition,
            start,
            until,
            message,
            frozenset(keys),
            gone,
            frozenset(tables),
            home.truth.policy,
        )
        home.dead_letters.append(dead_letter)
        if reason == "topic-recreated" and home.truth.policy == "latest":
            for one, log in enumerate(world.kafka.topics[topic].logs):
                place = (world.kafka.topics[topic].topic_id, one)
                if place not in places:
                    home.begun[place] = ends.get(place, len(log.records))


def _read(table: FileStoreTable) -> list[Any]:
    """The rows of a table, kept as long as its newest snapshot is the same one."""
    newest = latest_snapshot(table.io, table.paths)
    if newest is None:
        return []
    key = (newest.base_manifest_list, newest.delta_manifest_list)
    if len(_ROWS) > KEPT:
        _ROWS.clear()
    if key not in _ROWS:
        _ROWS[key] = read_table(table).to_pylist()
    return _ROWS[key]


_ROWS: dict[tuple[str, str], list[Any]] = {}


def ids(home: Home, table: str) -> list[int]:
    """The numbers of the records in a table."""
    return [row["id"] for row in _read(home.truth.table(table))] if home.has(table) else []


def check_once(world: World) -> None:
    """No table has a record twice."""
    for home in world.homes:
        for table in TABLES:
            twice = [one for one, count in Counter(ids(home, table)).items() if count > 1]
            if twice:
                raise BrokenError(f"DOUBLED in {table} of {home.warehouse}: {twice}")
        again = [one for one, count in Counter(rejected(home)).items() if count > 1]
        if again:
            raise BrokenError(f"DOUBLED dead letters of {home.warehouse}: {again}")


def missing(world: World, home: Home) -> list[str]:
    """Records that a table should have, has not, and that no dead letter names."""
    rows = {table: set(ids(home, table)) for table in TABLES}
    excused = {
        (table, number)
        for table, snapshot, since, numbers in home.overwritten
        for dead_letter in home.dead_letters[since:]
        if dead_letter.reason == "table-overwritten"
        and dead_letter.table == table
        and str(snapshot) in re.findall(r"\d+", dead_letter.message)
        for number in numbers
    }
    excused |= home.emptied
    letters = {number for _, number in rejected(home)} | home.letters_gone
    found = []
    for name, topic in [*world.kafka.topics.items(), *world.dead]:
        tables, key = home.routed.get(name, set()), topic.topic_id
        dead = world.kafka.topics.get(name) is not topic
        if not home.selects(name):
            continue
        there = {number for table in tables for number in rows[table]}
        there |= {number for table, number in excused if table in tables}
        for partition, log in enumerate(topic.logs):
            place = (key, partition)
            if dead and place not in home.seen:
                continue  # no one can know that it was there
            start = home.begun.get(place, log.first)
            # Nor what came in the place of something else, and went again before it was looked at.
            gone = len(log.records) if dead else log.first
            start = max(start, min(gone, world.replaced.get(place, 0)))
            for offset, (number, _) in enumerate(log.records):
                if offset < start or number in letters or number in there:
                    continue
                named = tables if number >= 0 else {*tables, LETTERS}
                if any(
                    dead_letter.names(named, key, (name, partition, offset))
                    for dead_letter in home.dead_letters
                ):
                    continue
                found.append(f"{name}({key})/{partition} offset {offset} of {sorted(tables)}")
    return found


def settle(world: World) -> None:
    """Run each warehouse to its end, take the ways out that errors name, and check."""
    homes = list(world.homes)
    for home in homes:
        world.homes = [home]
        _settle(world)
        for topic in list(world.kafka.topics):
            for partition in range(len(world.kafka.topics[topic].logs)):
                world.produce(topic, 1, partition)
        if _settle(world):
            raise BrokenError("STOPPED although nothing happened since")
    world.homes = homes


def _settle(world: World) -> bool:
    stopped = False
    for _ in range(6):
        try:
            live(world)
        except LOUD as error:
            stopped = True
            world.trace.append(f"{type(error).__name__}: {error}")
            _same_again(world, error)
            _judge_reason(world, error)
            _way_out(world, error)
            continue
        except IngestdError as error:
            raise BrokenError(f"NOT LOUD BUT {type(error).__name__}: {error}") from error
        check_once(world)
        lost = missing(world, world.home)
        if lost:
            raise BrokenError(f"LOST: {'; '.join(lost[:4])} ({len(lost)})")
        return stopped
    raise BrokenError("NO WAY OUT WORKS")


def _same_again(world: World, first: IngestdError) -> None:
    try:
        live(world)
    except type(first) as again:
        if str(again) != str(first):
            raise BrokenError(f"ANOTHER ERROR: {first} / {again}") from again
    except IngestdError as again:
        raise BrokenError(f"ANOTHER ERROR: {first} / {again!r}") from again
    else:
        raise BrokenError(f"SAID ONCE ONLY: {first}")


_CONFLICTS = ("rename_pipeline_unnoticed", "second_pipeline", "rescale_orders")


def _judge_reason(world: World, error: IngestdError) -> None:
    logs = [log for topic in world.kafka.topics.values() for log in topic.logs]
    done = set(world.trace)
    if isinstance(error, OffsetLostError):
        there = bool(world.dead) or any(log.first or log.epoch for log in logs)
    elif isinstance(error, ProgressLostError):
        there = any(
            one.endswith(("foreign_expiry", "foreign_expiry_of_records", *_CONFLICTS))
            for one in done
        )
    else:
        there = any(one.endswith(_CONFLICTS) for one in done)
    if not there:
        raise BrokenError(f"STOPPED FOR NOTHING: {error}")


def _way_out(world: World, error: IngestdError) -> None:
    truth = world.home.truth
    if isinstance(error, OffsetLostError):
        fed = set(re.findall(rf"table {DATABASE}\.(\w+)", str(error)))
        if "drop the tables" in str(error) and world.rng.random() < 0.3:
            for table in fed:
                world.io.delete_tree(world.home.path(table))
        world.set(policy="earliest")
    elif isinstance(error, ProgressLostError):
        world.begin_again(str(error))
    elif rescale := re.search(r"ingestd rescale .* --buckets (\d+)`", str(error)):
        buckets = int(rescale[1])
        list(rescale_table(truth.table("orders"), buckets, clock_ms=lambda: world.clock[0]))
    else:
        found = re.search(r"formerly: \[(\S+?)\]", str(error))
        if found is None:
            raise BrokenError(f"NO WAY OUT NAMED: {error}")
        world.set(formerly=(*truth.formerly, found[1]))
