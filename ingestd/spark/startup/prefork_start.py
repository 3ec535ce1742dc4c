"""Open the socket of the prefork server, start it, and give the JVM its address.

The driver imports what the server needs, so a driver that is about to start becomes the server by a
fork, before it has threads, secrets or a pipeline. Where that moment has passed, a process of its
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

from ingestd.spark.startup.prefork_client import PYTHON, SOCKET
from ingestd.spark.startup.python_daemon import prepare_imports
from ingestd.spark.startup.settings import worker_path

_COMMAND = Path(__file__).with_name("worker.sh")
_SOCKET_NAME = "socket"
_MODULE = "ingestd.spark.startup.prefork_server"


class PreforkServer:
    """A prefork server that ends with this process or with `close`; clients wait for its start."""

    def __init__(self, listener: socket.socket, folder: Path) -> None:
        self._listener: socket.socket | None = listener
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
            SOCKET: str(self._folder / _SOCKET_NAME),
            PYTHON: sys.executable,
        }

    def fork(self, others: Sequence[int] = ()) -> None:
        """Make it a fork of this process, without its files `others`; not twice.

        Only for a process without threads.
        """
        if self._listener is None:
            return
        begin, self._end = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become(self._listener, begin, [*others, self._end])
        os.close(begin)
        self._wait = lambda: os.waitpid(pid, 0)
        self._leave_listener()

    def spawn(self) -> None:
        """Make it a process of its own, without waiting for it, unless it is there."""
        if self._listener is None:
            return
        process = subprocess.Popen(  # noqa: S603  (nothing of it comes from outside)
            [sys.executable, "-m", _MODULE, str(self._listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[self._listener.fileno()],
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
        self._leave_listener()

    def close(self) -> None:
        """End it; what was forked from it belongs to the JVM."""
        if self._end >= 0:
            os.close(self._end)
            self._end = -1
        if self._wait is not None:
            self._wait()
            self._wait = None
        self._leave_listener()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _leave_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None


def open_prefork_server() -> PreforkServer | None:
    """Open the door of one; None where its command cannot be executed.

    What is imported from here on does so without threads, for the sake of `fork`.
    """
    if not os.access(_COMMAND, os.X_OK):
        return None
    prepare_imports()
    folder = Path(tempfile.mkdtemp(prefix="ingestd-prefork-"))
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(folder / _SOCKET_NAME))
        listener.listen()
    except OSError:
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return PreforkServer(listener, folder)


def _become(listener: socket.socket, begin: int, others: Sequence[int]) -> NoReturn:
    """Be the prefork server, and nothing else ever again."""
    code = 1
    try:
        for one in others:
            os.close(one)
        os.dup2(begin, 0)
        os.close(begin)
        importlib.import_module(_MODULE).serve(listener)
        code = 0
    finally:
        os._exit(code)
