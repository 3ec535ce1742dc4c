"""Open the socket of the prefork server and start the server.

The driver imports the same packages as the server, so the server is forked from the driver, as long
as the driver has no threads, secrets or pipeline. Later, the server has to be started as a new
process, which imports the packages again.
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
    """The prefork server of a JVM; clients wait until it is started by `fork` or `spawn`.

    It ends when this process ends or `close` is called.
    """

    def __init__(self, listener: socket.socket, folder: Path) -> None:
        self._listener: socket.socket | None = listener
        self._folder = folder
        self._end = -1  # our end of the pipe that is its standard input
        self._wait: Callable[[], object] | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables of a JVM that uses this server."""
        command = str(_COMMAND)
        return {
            "PYSPARK_PYTHON": command,
            "PYSPARK_DRIVER_PYTHON": command,
            SOCKET: str(self._folder / _SOCKET_NAME),
            PYTHON: sys.executable,
        }

    def fork(self, others: Sequence[int] = ()) -> None:
        """Fork the server from this process, unless it was started already.

        This process must not have threads. `others` are file descriptors that the fork closes.
        """
        if self._listener is None:
            return
        begin, self._end = os.pipe()
        pid = os.fork()
        if pid == 0:
            _run_server(self._listener, begin, [*others, self._end])
        os.close(begin)
        self._wait = lambda: os.waitpid(pid, 0)
        self._close_listener()

    def spawn(self) -> None:
        """Start the server as a new process, unless it was started already; do not wait for it."""
        if self._listener is None:
            return
        process = subprocess.Popen(  # noqa: S603  (no external input)
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
        self._close_listener()

    def close(self) -> None:
        """Stop the server and wait for its exit; processes that it forked for the JVM continue."""
        if self._end >= 0:
            os.close(self._end)
            self._end = -1
        if self._wait is not None:
            self._wait()
            self._wait = None
        self._close_listener()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None


def open_prefork_server() -> PreforkServer | None:
    """Return a prefork server whose socket is open, but which is not started yet.

    Returns None if `worker.sh` is not executable or the socket cannot be opened. Sets environment
    variables so that packages imported after this call start no threads, as `fork` requires.
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


def _run_server(listener: socket.socket, begin: int, others: Sequence[int]) -> NoReturn:
    """Run the prefork server in this forked process, and exit.

    `begin` becomes its standard input; `others` are file descriptors to close.
    """
    code = 1
    try:
        for other in others:
            os.close(other)
        os.dup2(begin, 0)
        os.close(begin)
        importlib.import_module(_MODULE).serve(listener)
        code = 0
    finally:
        os._exit(code)
