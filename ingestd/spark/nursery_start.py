"""Opens the nursery's door, says what the JVM must know to use it, and gets the nursery going.

The driver imports what the nursery needs, so a driver that is about to start becomes the nursery by
a fork, before it has threads, secrets or a pipeline. Where that moment has passed, a process of its
own imports everything again.
"""

import importlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from ingestd.spark.python_daemon import prepare_imports
from ingestd.spark.settings import worker_path
from ingestd.spark.worker_shim import PYTHON, SOCKET

_COMMAND = Path(__file__).with_name("worker.sh")
_DOOR = "door"
_MODULE = "ingestd.spark.nursery"


class Nursery:
    """A nursery that ends with this process or with `close`; visitors wait until it is there."""

    def __init__(self, door: socket.socket, folder: Path) -> None:
        self._door: socket.socket | None = door
        self._folder = folder
        self._end = -1  # ours of the pipe that is its standard input
        self._wait: Callable[[], object] | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of a JVM whose Python processes come from here."""
        command = str(_COMMAND)
        return {
            "PYSPARK_PYTHON": command,
            "PYSPARK_DRIVER_PYTHON": command,
            SOCKET: str(self._folder / _DOOR),
            PYTHON: sys.executable,
        }

    def fork(self, others: Sequence[int] = ()) -> None:
        """Make it a fork of this process, without its files `others`; not twice.

        Only for a process without threads.
        """
        if self._door is None:
            return
        begin, self._end = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become(self._door, begin, [*others, self._end])
        os.close(begin)
        self._wait = lambda: os.waitpid(pid, 0)
        self._leave_door()

    def spawn(self) -> None:
        """Make it a process of its own, without waiting for it, unless it is there."""
        if self._door is None:
            return
        process = subprocess.Popen(  # noqa: S603  (nothing of it comes from outside)
            [sys.executable, "-m", _MODULE, str(self._door.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[self._door.fileno()],
            env={
                **os.environ,
                "PYTHONHASHSEED": "0",  # as Spark starts its workers
                "PYTHONUNBUFFERED": "YES",
                "PYTHONPATH": worker_path(),
            },
        )
        if process.stdin is not None:
            self._end = os.dup(process.stdin.fileno())
            process.stdin.close()
        self._wait = process.wait
        self._leave_door()

    def close(self) -> None:
        """End it; what was forked from it belongs to the JVM."""
        if self._end >= 0:
            os.close(self._end)
            self._end = -1
        if self._wait is not None:
            self._wait()
            self._wait = None
        self._leave_door()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _leave_door(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None


def open_nursery() -> Nursery | None:
    """Open the door of one; None where its command cannot be executed.

    What is imported from here on does so without threads, for the sake of `fork`.
    """
    if not os.access(_COMMAND, os.X_OK):
        return None
    prepare_imports()
    folder = Path(tempfile.mkdtemp(prefix="ingestd-nursery-"))
    door = socket.socket(socket.AF_UNIX)
    try:
        door.bind(str(folder / _DOOR))
        door.listen()
    except OSError:
        door.close()
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Nursery(door, folder)


def _become(door: socket.socket, begin: int, others: Sequence[int]) -> NoReturn:
    """Be the nursery, and nothing else ever again."""
    code = 1
    try:
        for one in others:
            os.close(one)
        os.dup2(begin, 0)
        os.close(begin)
        importlib.import_module(_MODULE).serve(door)
        code = 0
    finally:
        os._exit(code)
