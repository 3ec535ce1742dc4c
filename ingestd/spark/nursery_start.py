"""Starts the nursery, and says what the JVM must know to use it."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ingestd.spark.settings import worker_path
from ingestd.spark.worker_shim import PYTHON, SOCKET

_COMMAND = Path(__file__).with_name("worker.sh")
_DOOR = "door"
_MODULE = "ingestd.spark.nursery"


class Nursery:
    """A running nursery; it ends with this process or with `close`."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder

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

    def close(self) -> None:
        """End it; what was forked from it belongs to the JVM."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def start_nursery() -> Nursery | None:
    """Start one, without waiting for it; None where its command cannot be executed.

    Who comes early waits at the door, which is open before anything is imported.
    """
    if not os.access(_COMMAND, os.X_OK):
        return None
    folder = Path(tempfile.mkdtemp(prefix="ingestd-nursery-"))
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(folder / _DOOR))
            door.listen()
            process = subprocess.Popen(  # noqa: S603  (nothing of it comes from outside)
                [sys.executable, "-m", _MODULE, str(door.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=[door.fileno()],
                env={
                    **os.environ,
                    "PYTHONHASHSEED": "0",  # as Spark starts its workers
                    "PYTHONUNBUFFERED": "YES",
                    "PYTHONPATH": worker_path(),
                },
            )
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Nursery(process, folder)
