"""Create and remove the folder in which the tasks of one batch exchange files on one machine.

Each batch has its own folder, which is removed after the batch. Folders of killed drivers are
removed as well: a running driver holds a lock on its folder.
"""

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

from ingestd.spark.exchange.temporary_files import exchange_error

_PREFIX = "ingestd-blobs-"
_MIN_AGE_SECONDS = 60.0
_remover = ThreadPoolExecutor(1, "remove-blobs")  # starts its thread on first use


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    lock: int

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


@contextmanager
def shared_folder(parent: str | None) -> Iterator[str | None]:
    """Create a folder below `parent` for one batch, yield its path, and remove it after the block.

    Also removes abandoned folders of other drivers. If `parent` is None, yields None. Raises
    StorageError if the folder cannot be created.
    """
    if parent is None:
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
    try:
        yield folder.path
    finally:
        _remove_in_background(folder)


def _remove_in_background(folder: _Folder) -> None:
    """Remove a folder in another thread, since freeing the pages of large files takes long."""
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
