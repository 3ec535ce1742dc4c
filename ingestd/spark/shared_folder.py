"""The folder in which the tasks of a batch leave files for each other, on one machine.

It lives as long as the batch. When that has succeeded the folder is kept as the spare one of the
next batch, whose tasks write over its files; what they do not take goes. What drivers left there
that were killed goes too: a living one holds a lock on its folder.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ingestd.errors import StorageError, storage_error
from ingestd.spark.blob_files import SPARE, SUFFIX

_PREFIX = "ingestd-blobs-"
_NEW_SECONDS = 60.0
SPARE_BYTES = 256 << 20
"""How much of files is kept for the next batch."""

_remover = ThreadPoolExecutor(1, "remove-blobs")  # no thread until it is needed


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    lock: int

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


_kept: list[_Folder] = []
"""The folder of the last batch, if it is kept."""


@contextmanager
def shared_folder(parent: str | None) -> Iterator[str | None]:
    """A folder below `parent` for the files of one batch, kept for the next if all goes well.

    None without a parent, and nothing is kept any longer. StorageError if it cannot be made.
    """
    if parent is None:
        give_up_spare()
        yield None
        return
    try:
        _sweep(Path(parent))
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        folder = _Folder(path, os.open(path, os.O_RDONLY))
    except OSError as error:
        raise unusable(parent, error) from error
    with suppress(OSError):  # where nobody can lock, nobody sweeps either
        fcntl.flock(folder.lock, fcntl.LOCK_SH)
    _hand_on_spare(folder)
    try:
        yield folder.path
    except BaseException:
        _later_remove(folder)
        raise
    _kept.append(folder)


def give_up_spare() -> None:
    """Remove what was kept for a next batch."""
    while _kept:
        _later_remove(_kept.pop())


def unusable(path: str, error: OSError) -> StorageError:
    """The error for a folder or file that tasks cannot hand over through."""
    return storage_error(
        f"{path}: the stages of a batch cannot hand over through files here ({error}); is "
        "spark.local.dir full or was it cleaned? Another folder can be set there",
        error,
    )


def _hand_on_spare(folder: _Folder) -> None:
    """Put the kept folder into the new one."""
    while _kept:
        last = _kept.pop()
        spare = Path(folder.path, SPARE)
        try:
            Path(last.path).rename(spare)
        except OSError:
            _later_remove(last)
            continue
        os.close(last.lock)
        # To free what lies in a hundred megabytes of files takes longer than a commit.
        with suppress(RuntimeError):  # the interpreter is about to end, and the folder with it
            _remover.submit(_tidy, spare)


def _tidy(spare: Path) -> None:
    """Remove what the next batch has no use for: files of other kinds, and those beyond a bound."""
    room = SPARE_BYTES
    with suppress(OSError):
        for entry in list(os.scandir(spare)):
            if entry.is_dir():
                shutil.rmtree(entry.path, ignore_errors=True)
                continue
            with suppress(FileNotFoundError):  # a task has taken it
                room -= entry.stat().st_size
                if room < 0 or not entry.name.endswith(SUFFIX):
                    Path(entry.path).unlink()


def _later_remove(folder: _Folder) -> None:
    try:
        _remover.submit(folder.remove)
    except RuntimeError:  # the interpreter is about to end
        folder.remove()


def _sweep(parent: Path) -> None:
    """Remove folders that nobody has locked, but for new ones, whose lock may be about to come."""
    newest = time.time() - _NEW_SECONDS
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_mtime > newest:
                continue
            lock = os.open(folder, os.O_RDONLY)
        except OSError:
            continue  # its owner was quicker, or it is another user's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use
        finally:
            os.close(lock)


atexit.register(give_up_spare)
