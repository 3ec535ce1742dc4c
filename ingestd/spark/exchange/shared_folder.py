"""The folder in which the tasks of one batch exchange files on one machine.

Each batch has its own folder. After a successful batch, the folder becomes the `recycled` folder
inside the folder of the next batch, whose tasks overwrite its files; files that they do not need
are removed. Folders of killed drivers are removed as well: a running driver holds a lock on its
folder.
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

from ingestd.spark.exchange.local_exchange import RECYCLED, SUFFIX, exchange_error

_PREFIX = "ingestd-blobs-"
_MIN_AGE_SECONDS = 60.0
RECYCLED_BYTES = 256 << 20
"""The maximum total size of the files that are kept for the next batch."""

_remover = ThreadPoolExecutor(1, "remove-blobs")  # starts its thread on first use


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    lock: int

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


_kept: list[_Folder] = []
"""The folder of the last batch, if it was kept."""


@contextmanager
def shared_folder(parent: str | None) -> Iterator[str | None]:
    """Create a folder below `parent` for one batch, and yield its path.

    If the block succeeds, the folder is kept for the next batch, otherwise it is removed. Without a
    parent, yields None and removes a kept folder. Raises StorageError if the folder cannot be
    created.
    """
    if parent is None:
        remove_kept_folder()
        yield None
        return
    try:
        _remove_abandoned(Path(parent))
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        folder = _Folder(path, os.open(path, os.O_RDONLY))
    except OSError as error:
        raise exchange_error(parent, error) from error
    with suppress(OSError):  # without locks, no folder counts as abandoned either
        fcntl.flock(folder.lock, fcntl.LOCK_SH)
    _recycle_kept_folder(folder)
    try:
        yield folder.path
    except BaseException:
        _remove_in_background(folder)
        raise
    _kept.append(folder)


def remove_kept_folder() -> None:
    """Remove the folder that was kept for the next batch."""
    while _kept:
        _remove_in_background(_kept.pop())


def _recycle_kept_folder(folder: _Folder) -> None:
    """Move the kept folder, if there is one, into a new folder, and trim it in the background."""
    while _kept:
        last = _kept.pop()
        recycled = Path(folder.path, RECYCLED)
        try:
            Path(last.path).rename(recycled)
        except OSError:
            _remove_in_background(last)
            continue
        os.close(last.lock)
        # Freeing the pages of a hundred megabytes of files takes longer than a commit.
        with suppress(RuntimeError):  # the interpreter is exiting, which removes the folder
            _remover.submit(_trim, recycled)


def _trim(recycled: Path) -> None:
    """Remove files that cannot be recycled, and those beyond `RECYCLED_BYTES`."""
    room = RECYCLED_BYTES
    with suppress(OSError):
        for entry in list(os.scandir(recycled)):
            if entry.is_dir():
                shutil.rmtree(entry.path, ignore_errors=True)
                continue
            with suppress(FileNotFoundError):  # a task took it meanwhile
                room -= entry.stat().st_size
                if room < 0 or not entry.name.endswith(SUFFIX):
                    Path(entry.path).unlink()


def _remove_in_background(folder: _Folder) -> None:
    try:
        _remover.submit(folder.remove)
    except RuntimeError:  # the interpreter is exiting
        folder.remove()


def _remove_abandoned(parent: Path) -> None:
    """Remove unlocked folders of drivers below `parent`.

    Folders younger than a minute stay, because their drivers may not hold the lock yet.
    """
    newest = time.time() - _MIN_AGE_SECONDS
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_mtime > newest:
                continue
            lock = os.open(folder, os.O_RDONLY)
        except OSError:
            continue  # removed by its owner, or owned by another user
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use
        finally:
            os.close(lock)


atexit.register(remove_kept_folder)
