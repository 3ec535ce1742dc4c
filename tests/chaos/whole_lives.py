"""Lives of a pipeline as in `driver_lives`, but whole: real processes, broker, Spark and files.

What happens is noted in the same world of lists, which the broker is brought to before a daemon
runs; so the promise is judged by the same rules. Left out is what one broker cannot have happen to
it (leaders that change, logs that are cut) and what is of one process (its clock).
"""

import random
import re
import shutil
import time
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka.cimpl import NewPartitions

from ingestd import errors
from ingestd.crash_points import CrashPoint
from ingestd.dev.broker import DevBroker
from ingestd.errors import IngestdError
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.io.local import LocalFileIO
from tests.support.daemon import Daemon, ingestd, run_daemon
from tests.support.driver_actions import beside
from tests.support.driver_events import ACTIONS, Action
from tests.support.driver_lives import (
    LETTERS,
    LOUD,
    TABLES,
    BrokenError,
    Home,
    World,
    check_once,
    ids,
    live,
    settle,
)
from tests.support.kafka_broker import WAIT_SECONDS, admin, delete_records, delete_topic, produce
from tests.support.oracle import Oracle
from tests.support.truth_rig import DATABASE, Kafka, Log, Topic, Truth

_KILLED = -9
_EXCLUDED = re.compile(
    r"die_|truncate_log|change_leader|clock_|refresh_records|batches_of|another_daemon|lose_terms"
)


class _Tree(MutableMapping[str, bytes]):
    """All files below a folder, by path."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __getitem__(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def __setitem__(self, path: str, data: bytes) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(data)

    def __delitem__(self, path: str) -> None:
        Path(path).unlink()

    def __iter__(self) -> Iterator[str]:
        return (str(path) for path in self._root.rglob("*") if path.is_file())

    def __len__(self) -> int:
        return sum(1 for _ in self)


class DiskFiles(LocalFileIO):
    """Files of a life on a disk."""

    __setattr__ = object.__setattr__  # what it extends is frozen
    files: MutableMapping[str, bytes]
    dead: bool

    def __init__(self, root: Path) -> None:
        super().__init__(sync=False)
        self.files = _Tree(root)
        self.dead = False


@dataclass
class WholeKafka(Kafka):
    """The lists of a life, and a broker that is brought to them."""

    broker: DevBroker | None = None
    real: dict[str, Topic] = field(default_factory=dict)
    sent: dict[tuple[str, int], int] = field(default_factory=dict)
    deleted: dict[tuple[str, int], int] = field(default_factory=dict)

    def create(self, name: str, partitions: int) -> str:
        """Create a topic in the broker, in place of one of that name; its key."""
        assert self.broker is not None
        self._drop(name)
        self.broker.create_topic(name, partitions)
        client = OffsetClient(
            KafkaSource("life", (name,), None, (), {"bootstrap.servers": self.broker.bootstrap})
        )
        try:
            end = time.monotonic() + WAIT_SECONDS
            while name not in (keys := client.topic_keys([name])):
                assert time.monotonic() < end, f"{name} does not appear"
                time.sleep(0.05)
            return keys[name]
        finally:
            client.close()

    def synchronize(self) -> None:
        """Bring the broker to what the lists are."""
        assert self.broker is not None
        for name in [one for one in self.real if self.topics.get(one) is not self.real[one]]:
            self._drop(name)
        for name, topic in self.topics.items():
            if len(topic.logs) > len([one for one in self.sent if one[0] == name]) and (
                name in self.real
            ):
                self._grow(name, len(topic.logs))
            self.real[name] = topic
            for partition, log in enumerate(topic.logs):
                self._fill(name, partition, log)

    def _fill(self, name: str, partition: int, log: Log) -> None:
        assert self.broker is not None
        place = (name, partition)
        first = self.sent.get(place, 0)
        values = [
            b'{"id": %d, "at": %d}' % (number, first + at)
            for at, (number, _) in enumerate(log.records[first:])
        ]
        if values:
            once = {"enable.idempotence": "true"}  # a retried request would double records
            produce(self.broker, name, [(None, value) for value in values], partition, config=once)
        self.sent[place] = len(log.records)
        if log.first > self.deleted.get(place, 0):
            delete_records(self.broker, name, log.first, partition)
            self.deleted[place] = log.first

    def _grow(self, name: str, partitions: int) -> None:
        assert self.broker is not None
        client = admin(self.broker)
        client.create_partitions([NewPartitions(name, partitions)])[name].result(WAIT_SECONDS)

    def _drop(self, name: str) -> None:
        assert self.broker is not None
        if self.real.pop(name, None) is not None:
            delete_topic(self.broker, name)
        for place in [one for one in self.sent if one[0] == name]:
            del self.sent[place]
            self.deleted.pop(place, None)


@dataclass
class WholeTruth(Truth):
    """A pipeline whose life is a process."""

    folder_of_processes: Path = Path()
    crash: tuple[CrashPoint, int] | None = None
    kill_after: float | None = None

    def live(self, batches: int = 1 << 30) -> None:  # type: ignore[override]
        """Run to the ends of all topics, or to the death that is set; raises what ended it."""
        kafka = self.kafka
        assert isinstance(kafka, WholeKafka)
        kafka.synchronize()
        crash = self.crash or ((CrashPoint.BATCH_DONE, batches) if batches < 1 << 20 else None)
        mark = self.folder_of_processes / f"mark-{time.monotonic_ns()}"
        given = {} if crash is None else {"INGESTD_CRASH_AT": f"{crash[0]}:{crash[1]}:{mark}"}
        log = self.folder_of_processes / "ingestd.log"
        log.unlink(missing_ok=True)
        with run_daemon(
            self._document(kafka), self.folder_of_processes, until_latest=True, environment=given
        ) as daemon:
            if self.kill_after is not None:
                time.sleep(self.kill_after)
                daemon.kill()
            _act_beside(daemon, self.between, kafka)
            code = daemon.wait(300)
        if code not in (0, _KILLED):
            raise _error(code, daemon)

    def document(self) -> dict[str, Any]:
        """Its configuration, as the file that commands read."""
        assert isinstance(self.kafka, WholeKafka)
        return self._document(self.kafka)

    def _document(self, kafka: WholeKafka) -> dict[str, Any]:
        assert kafka.broker is not None
        settings = self.settings
        return {
            "pipeline": {
                "name": self.name,
                "formerly": list(self.formerly),
                "trigger": "100ms",
            },
            "warehouse": {"path": str(self.root / "warehouse"), "database": DATABASE},
            "sources": {
                self.source: {
                    "kafka": {"bootstrap.servers": kafka.broker.bootstrap},
                    "topic-pattern": r"(shop|copy)\..*" if self.pattern == ".*" else self.pattern,
                    "format": "json",
                    "max-offsets-per-trigger": self.batch_rows,
                    "on-offset-out-of-range": self.policy,
                    "startup-mode": self.startup,
                }
            },
            "routing": {
                "merge-shards": self.merge_shards,
                "table-mapping": dict(settings.routing.table_mapping),
            },
            "logging": {"format": "json"},
            "defaults": {"options": dict(self.options)},
        }


def _act_beside(daemon: Daemon, act: Callable[[], object], kafka: WholeKafka) -> None:
    """Let something happen once the daemon has begun to write."""
    end = time.monotonic() + 120
    while daemon.process.poll() is None and time.monotonic() < end:
        if '"event":"batch_finished"' in daemon.log.read_text(errors="replace"):
            break
        time.sleep(0.02)
    act()
    kafka.synchronize()


def _error(code: int, daemon: Daemon) -> IngestdError:
    failed = daemon.logged("pipeline_failed") if "pipeline_failed" in daemon.tail(200) else None
    if failed is None:
        raise BrokenError(f"exit code {code} without a word:\n{daemon.tail(30)}")
    kind = getattr(errors, failed["error_type"])
    error: IngestdError = kind(failed["message"])
    if error.exit_code != code:
        raise BrokenError(f"exit code {code} for {error!r}")
    return error


def _succeed(*words: str) -> None:
    done = ingestd(*words)
    if done.returncode != 0:
        raise BrokenError(f"{' '.join(words)}: {done.stderr}")


@dataclass
class WholeWorld(World):
    """A world with a broker."""

    def make_topic(self, name: str, partitions: int = 1) -> None:
        assert isinstance(self.kafka, WholeKafka)
        key = self.kafka.create(name, partitions)
        topic = Topic(key, [Log() for _ in range(partitions)])
        self.kafka.topics[name] = self.kafka.real[name] = topic
        for partition in range(partitions):
            self.kafka.sent[name, partition] = 0

    def begin_again(self, message: str) -> None:
        """The command that the error names; if that knows nothing, the next one of its advice."""
        truth = self.home.truth
        assert isinstance(truth, WholeTruth)
        file = truth.folder_of_processes / "ingestd.yaml"
        file.write_text(yaml.safe_dump(truth.document()))
        named = re.search(r"`ingestd (begin -c CONFIG (\S+) --at claims)`", message)
        if named is None:
            raise BrokenError(f"NO COMMAND NAMED: {message}")
        words = named[1].replace("CONFIG", str(file)).split()
        if self.claims_may_hold and ingestd(*words).returncode == 0:
            return
        _succeed("truncate", self.home.warehouse, named[2], "--yes")
        _succeed(*words[:-1], "origin")


def born(root: Path, broker: DevBroker, startup: str, policy: str) -> WholeWorld:
    """A pipeline that has read two topics in several batches, and has something more to read."""
    kafka = WholeKafka(broker=broker)
    kafka.real = {
        name: Topic("")
        for name in admin(broker).list_topics(timeout=WAIT_SECONDS).topics
        if name.startswith(("shop.", "copy."))
    }
    truth = WholeTruth(
        root / "life",
        kafka,
        policy,  # type: ignore[arg-type]
        batch_rows=4,
        startup=startup,  # type: ignore[arg-type]
        io=DiskFiles(root),
        folder_of_processes=root,
    )
    world = WholeWorld(kafka)
    world.homes.append(Home(truth))
    kafka.synchronize()
    world.make_topic("shop.orders", 2)
    world.make_topic("shop.users")
    world.produce("shop.orders", 9)
    world.produce("shop.users", 9)
    live(world)
    world.produce("shop.orders", 6)
    return world


def _die(point: CrashPoint | None, times: int) -> Action:
    """Run and be killed at a step, or (None) some time after the start."""

    def act(world: World) -> bool:
        truth = world.home.truth
        if point is None:
            world.set(kill_after=random.Random(times).uniform(1.5, 8))
        else:
            world.set(crash=(point, times))
        try:
            live(world)
        except LOUD as error:
            world.trace.append(type(error).__name__)
        finally:
            world.home.truth = truth
        return True

    return act


def whole_actions() -> dict[str, Action]:
    """What can happen in a whole life."""
    found = {name: act for name, act in ACTIONS.items() if not _EXCLUDED.match(name)}
    for point in CrashPoint:
        if not point.value.startswith(("compaction", "expir", "vectors", "moves")):
            found[f"die_{point.value}"] = _die(point, 1)
            found[f"die_later_{point.value}"] = _die(point, 2)
    for number in range(8):
        found[f"kill_{number}"] = _die(None, number)
    return found


def play_whole(
    root: Path, broker: DevBroker, oracle: Oracle, kind: tuple[str, str], names: list[str]
) -> None:
    """Live a life to its end; Java has to read the same rows, and find nothing wrong."""
    world, actions = born(root, broker, *kind), whole_actions()
    world.rng = random.Random(" ".join(names))
    for name in names:
        world.trace.append(name)
        act = actions[name] if name in actions else beside(name.removeprefix("beside "))
        act(world)
        check_once(world)
    settle(world)
    for home in world.homes:
        _judge(home, oracle)
    shutil.rmtree(root, ignore_errors=True)


def _judge(home: Home, oracle: Oracle) -> None:
    for table in (*TABLES, LETTERS):
        if not home.has(table):
            continue
        # Who expires snapshots or dies may leave a hint behind; readers look further.
        found = oracle.fsck(home.warehouse, DATABASE, table)
        flaws = [flaw for flaw in found if flaw["code"] != "hint"]
        if flaws:
            raise BrokenError(f"{table}: Java finds {flaws[:3]}")
        if table != LETTERS:
            theirs = sorted(row["id"] for row in oracle.read(home.warehouse, DATABASE, table))
            if theirs != sorted(ids(home, table)):
                raise BrokenError(f"{table}: Java reads other rows")
