"""A disk that is full, or turns read-only, under a living table: named, and healed by space."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.crash_points import Point
from tests.support.crash_runs import dies, finish, lives, wrong
from tests.support.crash_scene import Scene

pytestmark = pytest.mark.chaos
RETRIED = ("StorageError: ", "CommitUnknownError: ", "RetryableError: ")
"""What a daemon waits out and tries again."""


class Disk:
    """A small disk in memory, mounted for a test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mount(self, *options: str) -> bool:
        """Mount it, or mount it anew with other options; whether that is allowed here."""
        wanted = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(self.path)]
        return subprocess.run(wanted, capture_output=True, check=False).returncode == 0

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.path)], capture_output=True, check=False)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    found = Disk(tmp_path / "disk")
    found.path.mkdir()
    if not found.mount("size=64m"):
        pytest.skip("mounting is not allowed here; test_lying_storage has the same without a disk")
    yield found
    found.unmount()


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


@pytest.mark.parametrize("point", [Point.DELTA_WRITTEN, Point.BATCH_DONE])
def test_a_read_only_disk_is_named_and_work_goes_on_when_it_is_not(
    disk: Disk, point: Point
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
