"""The folder of a batch: kept for the next batch, and removed with the process that made it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.errors import StorageError
from ingestd.spark.exchange import shared_folder as module
from ingestd.spark.exchange.local_exchange import RECYCLED, SUFFIX
from ingestd.spark.exchange.shared_folder import remove_kept_folder, shared_folder


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    remove_kept_folder()
    yield
    remove_kept_folder()
    wait_for_removal()


def wait_for_removal() -> None:
    module._remover.submit(int).result(60)


def batch(parent: Path, *names: str) -> list[str]:
    """A batch that leaves such files; returns the files that it could recycle."""
    with shared_folder(str(parent)) as folder:
        assert folder is not None
        wait_for_removal()
        recycled = Path(folder, RECYCLED)
        found = sorted(path.name for path in recycled.iterdir()) if recycled.exists() else []
        for name in names:
            Path(folder, name).write_bytes(b"x" * 100)
    return found


def test_the_next_batch_recycles_the_files_of_the_last_one(tmp_path: Path) -> None:
    assert batch(tmp_path, f"a{SUFFIX}", f"b{SUFFIX}", "kept rows") == []
    assert batch(tmp_path, f"c{SUFFIX}") == [f"a{SUFFIX}", f"b{SUFFIX}"]
    assert batch(tmp_path) == [f"c{SUFFIX}"]  # what no one took is gone
    assert len(list(tmp_path.iterdir())) == 1


def test_no_more_bytes_are_kept_than_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECYCLED_BYTES", 250)
    batch(tmp_path, *(f"{n}{SUFFIX}" for n in range(5)))
    assert len(batch(tmp_path)) == 2


def test_a_batch_that_fails_keeps_nothing(tmp_path: Path) -> None:
    batch(tmp_path, f"a{SUFFIX}")
    with pytest.raises(KeyError), shared_folder(str(tmp_path)) as folder:
        Path(str(folder), f"b{SUFFIX}").touch()
        raise KeyError
    wait_for_removal()
    assert list(tmp_path.iterdir()) == []


def test_a_batch_without_a_folder_gives_up_what_was_kept(tmp_path: Path) -> None:
    batch(tmp_path, f"a{SUFFIX}")
    with shared_folder(None) as folder:
        assert folder is None
    wait_for_removal()
    assert list(tmp_path.iterdir()) == []


def test_what_is_kept_goes_with_the_process(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from ingestd.spark.exchange.shared_folder import shared_folder\n"
        "for _ in range(2):\n"
        "    with shared_folder(sys.argv[1]): pass\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_driver_left_goes_and_what_is_in_use_stays(tmp_path: Path) -> None:
    left, new = tmp_path / "ingestd-blobs-left", tmp_path / "ingestd-blobs-new"
    for folder in (left, new):
        folder.mkdir()
        (folder / "blob").touch()
    with shared_folder(str(tmp_path)) as busy:
        assert busy is not None
        for old in (left, Path(busy)):
            os.utime(old, (0, 0))
        with shared_folder(str(tmp_path)):
            assert Path(busy).is_dir()
            assert new.is_dir()
            assert not left.exists()


def test_what_is_kept_is_in_use(tmp_path: Path) -> None:
    batch(tmp_path, f"a{SUFFIX}")
    (kept,) = tmp_path.iterdir()
    os.utime(kept, (0, 0))
    module._remove_abandoned(tmp_path)
    assert kept.is_dir()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    with pytest.raises(StorageError, match=r"gone.*spark\.local\.dir"), shared_folder(gone):
        pass
