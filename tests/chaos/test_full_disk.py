"""A disk that is full, or turns read-only, under a living table: named, and healed by space."""

import json
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ingestd.crash_points import CrashPoint
from ingestd.dev.broker import DevBroker
from tests.support.crash_runs import dies, finish, lives, wrong
from tests.support.crash_scene import Scene
from tests.support.daemon import Daemon, run_daemon
from tests.support.daemon_progress import Watched
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import pipeline

pytestmark = pytest.mark.chaos
RETRIED = ("DiskFullError: ", "StorageError: ", "CommitUnknownError: ", "RetryableError: ")
"""What a daemon waits out and tries again."""
FIRST, SECOND, EVENTS = 400, 8000, 12_000
"""Events before the scratch folder is full, before the warehouse is, and of the whole ledger."""


class Disk:
    """A small disk in memory, mounted for a test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mount(self, *options: str) -> bool:
        """Mount it, or mount it again with other options; whether that is allowed here."""
        wanted = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(self.path)]
        return subprocess.run(wanted, capture_output=True, check=False).returncode == 0

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.path)], capture_output=True, check=False)


@contextmanager
def mounted(path: Path) -> Iterator[Disk]:
    """A disk of 64 MiB in a new folder."""
    found = Disk(path)
    path.mkdir()
    if not found.mount("size=64m"):
        pytest.skip("mounting is not allowed here; test_lying_storage has the same without a disk")
    try:
        yield found
    finally:
        found.unmount()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "disk") as found:
        yield found


@pytest.mark.parametrize("kind", ["append", "vectors"])
def test_a_full_disk_is_named_and_work_goes_on_when_there_is_room(disk: Disk, kind: str) -> None:
    told = []
    for kilobytes in (40, 100):
        assert disk.mount("remount", f"size={kilobytes}k")
        scene = Scene(disk.path / str(kilobytes), kind)
        told += [error for _ in range(2) if (error := lives(scene)) is not None]
        assert disk.mount("remount", "size=64m")
        finish(scene)
        assert wrong(scene) == []
        shutil.rmtree(scene.root)
    assert told
    for error in told:
        assert error.startswith(RETRIED)
        assert "No space left on device" in error
        assert str(disk.path) in error


@pytest.mark.integration
@pytest.mark.slow
def test_a_full_disk_uses_up_no_restarts(tmp_path: Path, broker: DevBroker, oracle: Oracle) -> None:
    """One restart is allowed; as long as there is no room there are more."""
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    with mounted(tmp_path / "scratch") as scratch, mounted(tmp_path / "warehouse") as warehouse:
        config = pipeline(
            tmp_path,
            broker.bootstrap,
            ledger.pattern,
            spark={"spark.local.dir": str(scratch.path)},
            processing={"small-batch-records": 100},
            restart={"max-attempts": 1, "initial-backoff": "100ms", "max-backoff": "1s"},
        )
        # A restart gives back what the first batch took of the scratch folder, which must not be
        # enough for the next one.
        ledger.produce(broker, until=FIRST)
        with run_daemon(config, tmp_path) as daemon:
            daemon.wait_until(lambda: seen(daemon)["batch"]["finished"] is not None)
            survives_without_room(daemon, scratch, lambda: ledger.append(broker, FIRST, SECOND))
            Watched(daemon, "shop").await_offsets(SECOND)
            survives_without_room(daemon, warehouse, lambda: ledger.append(broker, SECOND))
            Watched(daemon, "shop").await_offsets(EVENTS)
            daemon.terminate()
            assert daemon.wait() == 0, daemon.tail(80)
        assert judge(ledger, warehouse.path, oracle) == []


def survives_without_room(daemon: Daemon, disk: Disk, produce: Callable[[], None]) -> None:
    """Fill a disk, wait for three restarts for that reason, and make room again."""
    filler, restarts = disk.path / "filler", seen(daemon)["restarts"]

    def fails_for_that() -> bool:
        now = seen(daemon)
        return now["restarts"] >= restarts + 3 and now["last_error"]["type"] == "DiskFullError"

    fill(filler)
    produce()
    daemon.wait_until(fails_for_that)
    filler.unlink()
    daemon.wait_until(lambda: seen(daemon)["state"] == "running")


def seen(daemon: Daemon) -> dict[str, Any]:
    """What the daemon says of itself; it may be about to start."""
    code, page = daemon.get("/status")
    found: dict[str, Any] = json.loads(page) if code == 200 else {}
    return {"batch": {"finished": None}, "restarts": 0, "state": "", **found}


def fill(path: Path) -> None:
    """Leave no room on a disk."""
    with path.open("wb", 0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("point", [CrashPoint.DELTA_WRITTEN, CrashPoint.BATCH_DONE])
def test_a_read_only_disk_is_named_and_work_goes_on_when_it_is_not(
    disk: Disk, point: CrashPoint
) -> None:
    scene = Scene(disk.path / "scene", "keyed")
    assert dies(scene, point)
    assert disk.mount("remount", "ro")
    error = lives(scene)
    assert error is not None
    assert error.startswith(RETRIED)
    assert "Read-only file system" in error
    assert str(disk.path) in error
    assert disk.mount("remount", "rw")
    finish(scene)
    assert wrong(scene) == []
