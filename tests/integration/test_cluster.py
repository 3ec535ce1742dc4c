"""The daemon on clusters of Spark: executors that are processes of their own, as elsewhere.

One daemon lives through the faults of executors, one after the other. With INGESTD_LONG=1 each
fault also meets a daemon of its own, for a minute and longer, and the traffic is counted on
another kind of master.
"""

import json
import os
import signal
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.event_log import SETTINGS, driver_traffic
from bench.spark_cluster import SparkCluster
from ingestd.daemon.watchdog import MISSING_SECONDS
from ingestd.dev.broker import DevBroker
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.table.verify.table_verify import verify
from tests.integration.hdfs_server import running_hdfs
from tests.support.daemon import Daemon, catch_up, run_daemon
from tests.support.daemon_progress import Watched
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.planted import Planted, files_below, processes
from tests.support.processes import session_of
from tests.support.s3_server import S3Server, built, can_be_had, running_s3

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(2700)]
PIECE = 10_000
RECORD_BYTES = 200  # at the least
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # No task before both executors are there: the first one alone could finish a run this short.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "180s",
}
KAFKA_SECRET = "planted-kafka-secret-aB3$x"
FAKE_CLOCK = Path(f"/usr/lib/{os.uname().machine}-linux-gnu/faketime/libfaketimeMT.so.1")
SKEWED = {"FAKETIME": "+1h", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
long_form = pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="takes minutes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cluster has its logs, and its executors their working directories."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[SparkCluster]:
    """A master and two workers; a test that kills one adds another."""
    with SparkCluster(folder, workers=2, cores=1) as running:
        yield running


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    """A cluster of one test."""
    (tmp_path / "cluster").mkdir()
    with SparkCluster(tmp_path / "cluster", workers=2, cores=1) as running:
        yield running


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A store that is the only thing which driver and executors share."""
    if not can_be_had():
        pytest.skip("the S3 server is built with go")
    with running_s3(built(), tmp_path_factory.mktemp("s3")) as server:
        yield server


@dataclass(frozen=True)
class Scene:
    """A daemon with two executors over a ledger, whose pieces are produced one by one.

    `events` is the folder of Spark's event log `log`; `s3` the server with the warehouse.
    """

    daemon: Daemon
    broker: DevBroker
    ledger: Ledger
    cluster: SparkCluster
    s3: S3Server
    events: Path
    log: "EventLog"

    @property
    def watched(self) -> Watched:
        """How far the daemon got."""
        return Watched(self.daemon, "shop")

    def produce(self, piece: int) -> None:
        """Put a piece of the ledger into its topics."""
        self.ledger.produce(self.broker, piece * PIECE, (piece + 1) * PIECE)

    def await_pieces(self, pieces: int) -> None:
        """Return when this many pieces are in the tables."""
        self.watched.await_offsets(pieces * PIECE)

    def await_executors(self, count: int) -> None:
        """Return when `/status` counts this number of executors."""
        self.daemon.wait_until(lambda: self.status()["executors"] == count)

    def status(self) -> dict[str, Any]:
        """The document of `/status`."""
        document: dict[str, Any] = json.loads(self.daemon.get("/status")[1])
        return document

    def hosts(self) -> list["Host"]:
        """The workers that run an executor, oldest first."""
        every = [Host.of(worker) for worker in self.cluster.worker_pids]
        return [host for host in every if host.jvms]

    def stop_in_decode(self, piece: int) -> None:
        """Produce a piece, and return while all tasks of the first stage of its batch wait."""
        self.await_executors(2)
        pause(pid for host in self.hosts() for pid in host.pythons)
        self.produce(piece)
        self.daemon.wait_until(lambda: self.log.completed_stages() == 0)

    def stop_in_write(self, piece: int) -> None:
        """Produce a piece, and return while tasks of the second stage of its batch wait for S3."""
        self.stop_in_decode(piece)
        pause([self.s3.pid])
        resume(pid for host in self.hosts() for pid in host.pythons)
        self.daemon.wait_until(lambda: self.log.completed_stages() == 1)

    def stop_in_commit(self, piece: int) -> None:
        """Produce a piece, and return while the commits of one of its batches wait for S3.

        A commit takes as long as a look at `/status`, so the piece is produced in slices until one
        is met; if none is, every batch of the piece is over.
        """
        end, size = (piece + 1) * PIECE, PIECE // 10
        for first in range(piece * PIECE, end, size):
            done = first + size
            self.ledger.produce(self.broker, first, done)
            self.daemon.wait_until(lambda: self.commits() or self.watched.reached() >= done)  # noqa: B023
            pause([self.s3.pid])
            time.sleep(0.3)  # the batch ends meanwhile if its commits were done
            if self.commits():
                self.ledger.produce(self.broker, done, end)
                return
            resume([self.s3.pid])

    def commits(self) -> bool:
        """Whether a batch has finished its stages, and is not over."""
        return "stages" in (self.status()["batch"]["phases"] or ())

    def snapshots(self) -> set[str]:
        """The snapshot files of all tables."""
        return {str(path) for path in self.s3.folder.rglob("snapshot-*")}


@dataclass(frozen=True)
class Host:
    """The processes of a worker with its executor: JVMs, and Python with the daemon first."""

    worker: int
    jvms: tuple[int, ...]
    pythons: tuple[int, ...]

    @staticmethod
    def of(worker: int) -> "Host":
        """The processes that run now."""
        family = sorted(session_of(worker).items())
        return Host(
            worker,
            tuple(pid for pid, line in family if "CoarseGrainedExecutorBackend" in line),
            tuple(pid for pid, line in family if line.startswith("ingestd-worker:")),
        )

    @property
    def every(self) -> tuple[int, ...]:
        """All processes of the host."""
        return (self.worker, *self.jvms, *self.pythons)

    def kill(self) -> None:
        """End the executor as the kernel does without memory; Python ends by the closed pipe."""
        for pid in self.jvms:
            os.kill(pid, signal.SIGKILL)


def pause(pids: Iterable[int]) -> None:
    """Stop processes, as on a host that is frozen."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def resume(pids: Iterable[int]) -> None:
    """Let processes continue that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


class EventLog:
    """Spark's event log in a folder; every look reads what was written since the last one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._completed: int | None = None

    def completed_stages(self) -> int | None:
        """The completed stages of the job that runs; None between jobs."""
        for file in sorted(path for path in self._folder.rglob("*") if path.is_file()):
            with file.open("rb") as log:
                log.seek(self._read.get(file, 0))
                lines, _, unfinished = log.read().rpartition(b"\n")
                self._read[file] = log.tell() - len(unfinished)
            for line in lines.splitlines():
                if line.startswith(b'{"Event":"SparkListenerJobStart"'):
                    self._completed = 0
                elif line.startswith(b'{"Event":"SparkListenerJobEnd"'):
                    self._completed = None
                elif (
                    line.startswith(b'{"Event":"SparkListenerStageCompleted"')
                    and self._completed is not None
                ):
                    self._completed += 1
        return self._completed


@contextmanager
def scene(
    tmp_path: Path,
    broker: DevBroker,
    cluster: SparkCluster,
    s3: S3Server,
    *,
    pieces: int,
    spark: Mapping[str, str] | None = None,
) -> Iterator[Scene]:
    """Yield a scene whose first piece is in the tables; the store's keys are in files only."""
    (tmp_path / "id").write_text(s3.options["s3.access-key"])
    (tmp_path / "key").write_text(s3.options["s3.secret-key"])
    (tmp_path / "kafka").write_text(KAFKA_SECRET)
    events = tmp_path / "events"
    events.mkdir()
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", pieces * PIECE)
    options = {**s3.options, "s3.secret-key": "${file:key}", "s3.access-key": "${file:id}"}
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        spark={
            **LOOPBACK,
            **EXECUTORS,
            **SETTINGS,
            "spark.eventLog.dir": events.as_uri(),
            "spark.master": cluster.url,
            **(spark or {}),
        },
        processing={"small-batch-records": 1},
        compaction={"mode": "off"},  # every snapshot is of a batch
        warehouse={
            "path": f"s3://{s3.bucket}/{ledger.prefix}",
            "database": DATABASE,
            "options": options,
        },
    )
    config["sources"]["shop"]["kafka"]["ssl.key.password"] = "${file:kafka}"
    ledger.produce(broker, 0, PIECE)
    with run_daemon(config, tmp_path) as daemon:
        running = Scene(daemon, broker, ledger, cluster, s3, events, EventLog(events))
        running.await_pieces(1)
        yield running


def test_executors_with_another_disk_write_nothing(
    tmp_path: Path, broker: DevBroker, cluster: SparkCluster, folder: Path
) -> None:
    """One path that is another folder for each process, as a disk of its own is."""
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 200)
    ledger.produce(broker)
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        spark={**LOOPBACK, **EXECUTORS, "spark.master": cluster.url, "spark.cores.max": "1"},
        warehouse={"path": "/proc/self/cwd/warehouse", "database": DATABASE, "shared": True},
    )
    with run_daemon(config, tmp_path, until_latest=True) as daemon:
        assert daemon.wait() == 4, daemon.tail(80)
    assert "is not in the warehouse of the executor" in daemon.log.read_text()
    snapshots = (tmp_path / "warehouse" / f"{DATABASE}.db").glob("*/snapshot/snapshot-*")
    assert [
        snapshot for snapshot in snapshots if json.loads(snapshot.read_bytes())["totalRecordCount"]
    ] == []
    assert list(folder.glob("work-*/app-*")), "no executor ran"
    assert [path.name for path in folder.rglob("*.parquet")] == []


@pytest.mark.chaos
def test_a_stream_goes_on_after_the_loss_of_executors_in_every_phase(
    tmp_path: Path,
    broker: DevBroker,
    oracle: Oracle,
    cluster: SparkCluster,
    folder: Path,
    s3: S3Server,
) -> None:
    """Executors share only a store with the driver, and look up its keys themselves."""
    planted = Planted()
    planted.by_place |= {"s3": s3.options["s3.secret-key"], "kafka": KAFKA_SECRET}
    with scene(tmp_path, broker, cluster, s3, pieces=5) as one:
        one.stop_in_decode(1)
        decoding = one.hosts()
        decoding[0].kill()
        resume(pid for host in decoding for pid in host.pythons)
        one.await_pieces(2)

        one.stop_in_commit(2)
        one.hosts()[1].kill()
        resume([s3.pid])
        one.await_pieces(3)

        one.await_executors(2)
        leaders = (one.daemon.process.pid, *cluster.worker_pids)
        secrets = planted.search(processes(pid for leader in leaders for pid in session_of(leader)))

        one.stop_in_write(3)
        late = one.hosts()[0]
        with frozen((*late.jvms, *late.pythons)):
            os.kill(late.worker, signal.SIGKILL)  # so that the cluster gives the executor up
            resume([s3.pid])
            one.await_pieces(4)
            one.await_executors(1)
            committed = one.snapshots()
            assert set(late.pythons) <= session_of(late.worker).keys()
            resume(late.pythons[1:])  # an attempt that wakes up after its batch was committed
            time.sleep(1)
        one.daemon.wait_until(lambda: not session_of(late.worker))
        assert one.snapshots() == committed
        one.produce(4)
        one.await_pieces(5)
        one.daemon.terminate()
        assert one.daemon.wait() == 0, one.daemon.tail(80)
    assert "Lost executor" in one.daemon.log.read_text()
    check(one, oracle)
    check_traffic(one.events, one.ledger.events, executors=3)
    left = planted.search([*files_below(one.events), *files_below(folder)])
    assert (secrets, left) == ({}, {})


@long_form
def test_a_host_without_network_for_a_minute_comes_back_late_and_changes_nothing(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, own_cluster: SparkCluster, s3: S3Server
) -> None:
    """First a slow host, for a shorter time than Spark waits; then one that Spark gives up."""
    spark = {
        "spark.network.timeout": "20s",
        "spark.network.timeoutInterval": "5s",
        "spark.executor.heartbeatInterval": "4s",
    }
    with scene(tmp_path, broker, own_cluster, s3, pieces=4, spark=spark) as one:
        one.stop_in_write(1)
        with frozen(one.hosts()[0].every):
            resume([s3.pid])
            time.sleep(8)
            assert one.status()["executors"] == 2
        one.await_pieces(2)

        one.stop_in_write(2)
        begun = time.monotonic()
        late = one.hosts()[0]
        with frozen(late.every):
            resume([s3.pid])
            one.await_pieces(3)
            time.sleep(max(0.0, 60 - (time.monotonic() - begun)))
            committed = one.snapshots()
        one.daemon.wait_until(lambda: not set(late.jvms) & session_of(late.worker).keys())
        assert one.snapshots() == committed
        one.produce(3)
        one.await_pieces(4)
        one.daemon.terminate()
        assert one.daemon.wait() == 0
    assert "Lost executor" in one.daemon.log.read_text()
    check(one, oracle)


@long_form
def test_a_minute_without_executors_is_stated_and_ends_when_a_worker_comes(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, own_cluster: SparkCluster, s3: S3Server
) -> None:
    with scene(tmp_path, broker, own_cluster, s3, pieces=2) as one:
        for number in (0, 1):
            own_cluster.kill_worker(number)
        one.produce(1)
        one.daemon.wait_until(lambda: one.daemon.get("/readyz")[0] == 503)
        assert "no-executors" in one.daemon.get("/readyz")[1]
        assert (one.status()["executors"], one.status()["not_ready"]) == (0, "no-executors")
        assert one.daemon.get("/livez")[0] == 200
        assert one.daemon.logged("executors_missing")["seconds"] == MISSING_SECONDS
        own_cluster.add_worker()
        one.daemon.logged("executors_returned")
        one.daemon.wait_until_ready()
        one.await_pieces(2)
        one.daemon.terminate()
        assert one.daemon.wait() == 0
    check(one, oracle)


@long_form
def test_an_executor_whose_host_has_no_memory_left_is_replaced(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, own_cluster: SparkCluster, s3: S3Server
) -> None:
    """Its processes get 2 MB more, in a control group; beyond these the kernel kills one."""
    with scene(tmp_path, broker, own_cluster, s3, pieces=3) as one, memory_group(2 << 20) as group:
        one.stop_in_decode(1)
        host = one.hosts()[0]
        for pid in (*host.jvms, *host.pythons):
            (group / "cgroup.procs").write_text(str(pid))
        resume(pid for each in one.hosts() for pid in each.pythons)
        one.await_pieces(2)
        one.produce(2)
        one.await_pieces(3)
        assert int((group / "memory.oom_control").read_text().split()[-1]), "nothing was killed"
        one.daemon.terminate()
        assert one.daemon.wait() == 0
    check(one, oracle)


@long_form
@pytest.mark.skipif(not FAKE_CLOCK.exists(), reason="needs Debian's package libfaketime")
def test_an_executor_whose_clock_is_an_hour_off_changes_nothing(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, own_cluster: SparkCluster
) -> None:
    own_cluster.kill_worker(0)
    own_cluster.add_worker({"LD_PRELOAD": str(FAKE_CLOCK), **SKEWED})
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 2 * PIECE)
    ledger.produce(broker)
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        batch_rows=PIECE,
        spark={**LOOPBACK, **EXECUTORS, "spark.master": own_cluster.url},
        warehouse={"path": str(tmp_path / "warehouse"), "database": DATABASE, "shared": True},
    )
    catch_up(config, tmp_path)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
    (log,) = (tmp_path / "cluster" / "work-2").rglob("stderr")
    assert "Running task" in log.read_text(), "the executor with the wrong clock had no task"


@long_form
def test_executors_write_to_hdfs(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, own_cluster: SparkCluster
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 2 * PIECE)
    ledger.produce(broker)
    (tmp_path / "hdfs").mkdir()
    with running_hdfs(tmp_path / "hdfs") as server:
        warehouse = f"{server.root}/{ledger.prefix}"
        config = pipeline(
            tmp_path,
            broker.bootstrap,
            ledger.pattern,
            batch_rows=PIECE,
            spark={**LOOPBACK, **EXECUTORS, "spark.master": own_cluster.url},
            warehouse={"path": warehouse, "database": DATABASE},
        )
        catch_up(config, tmp_path)
        accounts = oracle.read(warehouse, DATABASE, "account")
        entries = oracle.read(warehouse, DATABASE, "entry")
        assert oracle.fsck(warehouse, DATABASE, "account") == []
    assert {row["account"]: row["number"] for row in accounts} == ledger.final_accounts()
    assert sorted(row["number"] for row in entries) == sorted(ledger.entries())


@long_form
@pytest.mark.parametrize(
    ("spark", "error"),
    [
        ({"spark.master": "spark://127.0.0.1:1"}, "SparkMasterError"),
        ({"spark.executor.memory": "many"}, "SparkSettingError"),
    ],
)
def test_a_master_that_does_not_respond_and_a_refused_setting_are_errors_by_name(
    tmp_path: Path,
    broker: DevBroker,
    cluster: SparkCluster,
    spark: Mapping[str, str],
    error: str,
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 200)
    ledger.produce(broker)
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        spark={**LOOPBACK, **EXECUTORS, "spark.master": cluster.url, **spark},
        warehouse={"path": str(tmp_path / "w"), "database": DATABASE, "shared": True},
    )
    with run_daemon(config, tmp_path) as daemon:
        assert daemon.wait() == 2
        assert f'"error_type":"{error}"' in daemon.log.read_text()
    assert "pipeline_broke" not in daemon.log.read_text()


@contextmanager
def frozen(pids: Collection[int]) -> Iterator[None]:
    """Stop processes of a host during the block: their connections stay open, and silent."""
    pause(pids)
    try:
        yield
    finally:
        resume(pids)


@contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """A control group (version 1) whose processes have this much memory together."""
    group = Path("/sys/fs/cgroup/memory") / f"ingestd-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit))
    except OSError as error:
        pytest.skip(f"no control group of memory can be made here: {error}")
    try:
        yield group
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()


def check(one: Scene, oracle: Oracle) -> None:
    """Every event is in the tables once, by Java's reading and by ours."""
    lake = one.s3.folder / one.ledger.prefix
    assert judge(one.ledger, lake, oracle) == []
    account = load_catalog("filesystem", str(lake)).get_table(Identifier(DATABASE, "account"))
    assert verify(account) == []


def check_traffic(events: Path, records: int, executors: int) -> None:
    """Rows go from task to task in files: Spark moves references, the driver gets statistics."""
    traffic = driver_traffic(events)
    assert traffic.executors >= executors
    assert 0 < traffic.shuffled < records * 8
    assert traffic.results < records * RECORD_BYTES / 20
    assert traffic.closures / traffic.tasks < 64 << 10
