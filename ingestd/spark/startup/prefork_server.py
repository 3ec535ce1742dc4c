"""The server process from which all Python processes of Spark are forked, on a local master.

Spark starts one Python process to create the source, one to plan batches, one to plan reads and one
for tasks. Each would import the same packages again while the first batch waits. Instead their
command (`worker.sh`) passes its streams and arguments to this process, which imports all packages
while the JVM starts, and a fork of it runs the requested module.
"""

import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from ingestd.spark.startup import python_daemon
from ingestd.spark.startup.prefork_client import ACKNOWLEDGED

NAME = "ingestd-prefork"
_PLANNING = (
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "ingestd.spark.offset_source",
)
_DAEMONS = ("pyspark.daemon", "ingestd.spark.startup.python_daemon")
_SERVED = ("pyspark.", "ingestd.")
_STREAMS = 3
_PIECE = 1 << 16


def main() -> None:
    """Serve the listening socket whose file descriptor is the only command-line argument."""
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        serve(listener)


def serve(listener: socket.socket) -> None:
    """Import all packages, then fork a process for each request until standard input is closed.

    At the end, the folder of the socket is removed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # sent to the process group: the driver ends first
    python_daemon.name_process(NAME)
    python_daemon.forget_archives()
    python_daemon.preload(_PLANNING)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while _wait_for_client(listener):
        _serve(listener)
    shutil.rmtree(
        Path(listener.getsockname()).parent, ignore_errors=True
    )  # created for this socket only


def _wait_for_client(listener: socket.socket) -> bool:
    """Wait for a client and return True; return False when standard input is closed.

    The driver closes it when it stops the server or exits.
    """
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(0, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        if 0 in ready:
            return False
        if ready:
            return True


def _serve(listener: socket.socket) -> None:
    client, _ = listener.accept()
    with client:
        try:
            request, streams = receive(client)
        except (OSError, ValueError):
            return  # the client disconnected
        if os.fork() == 0:
            listener.close()
            client.send(ACKNOWLEDGED)
            client.set_inheritable(True)  # stays open until the process exits, after exec as well
            _run_request(request, streams)
        for stream in streams:
            os.close(stream)


def receive(client: socket.socket) -> tuple[Mapping[str, object], Sequence[int]]:
    """Receive a request and the file descriptors of its three standard streams from a client.

    Raises ValueError if the request is truncated or is not JSON, and OSError if the connection
    fails.
    """
    head, streams, _, _ = socket.recv_fds(client, 4, _STREAMS)
    size = int.from_bytes(head, "big")
    body = b""
    while len(body) < size:
        piece = client.recv(min(_PIECE, size - len(body)))
        if not piece:
            break
        body += piece
    if len(streams) != _STREAMS or len(head) != 4 or len(body) != size:
        for stream in streams:
            os.close(stream)
        raise ValueError("a request was truncated")
    return json.loads(body), streams


def _run_request(request: Mapping[str, object], streams: Sequence[int]) -> NoReturn:
    """Run the Python program that Spark requested in this process, and exit.

    The client waits until this process has exited.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    arguments = [str(argument) for argument in request["arguments"]]  # type: ignore[attr-defined]  # a list
    environment = dict(request["environment"])  # type: ignore[call-overload]  # of strings
    if arguments[:1] != ["-m"] or not arguments[1].startswith(_SERVED):
        os.execve(sys.executable, [sys.executable, *arguments], environment)  # noqa: S606
    os.environ.clear()
    os.environ.update(environment)
    extend_path(environment.get("PYTHONPATH", ""))
    sys.argv[:] = arguments[1:]
    code = 1
    try:
        code = _run(arguments[1])
        sys.stderr.flush()
    finally:
        os._exit(code)


def _run(module: str) -> int:
    """Run a module as `__main__`; return the exit code."""
    try:
        if module in _DAEMONS:
            python_daemon.main()
        else:
            sys.modules.pop(module, None)  # so that it exists only as `__main__`
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (BrokenPipeError, ConnectionResetError):
        return 1  # Spark closes its end at each stop: no process waits for a result
    except BaseException:  # noqa: BLE001  (no caller is left to report it)
        traceback.print_exc()
        return 1
    return 0


def extend_path(path: str) -> None:
    """Append the existing folders of a PYTHONPATH to the search path of modules."""
    for entry in path.split(os.pathsep):
        if entry and entry not in sys.path and Path(entry).is_dir():
            sys.path.append(entry)


if __name__ == "__main__":
    main()
