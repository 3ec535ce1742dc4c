"""The one process that all of Spark's Python processes are forked from, on a local master.

Spark starts a Python process for each kind of work: one to make the source, one to plan batches,
one to plan reads, one for tasks. Each would import the same packages again, one after the other,
while the first batch waits. Instead their command (`worker.sh`) hands its streams and its arguments
to this process, which has imported everything while the JVM started, and a fork goes on from there.
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
from ingestd.spark.startup.prefork_client import TAKEN

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
    """Serve the listening socket whose number is the only argument."""
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        serve(listener)


def serve(listener: socket.socket) -> None:
    """Import what is missing, then serve a listening socket until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of a whole group: the driver is to end first
    python_daemon.name_process(NAME)
    python_daemon.forget_archives()
    python_daemon.preload(_PLANNING)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while _asked(listener):
        _serve(listener)
    shutil.rmtree(Path(listener.getsockname()).parent, ignore_errors=True)  # made for it alone


def _asked(listener: socket.socket) -> bool:
    """Wait for a visitor; False when the driver has gone."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(0, select.POLLIN)
    while True:
        ready = [place for place, _ in poll.poll()]
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
            return  # it went away
        if os.fork() == 0:
            listener.close()
            client.send(TAKEN)
            client.set_inheritable(True)  # open as long as the process lives, whatever it becomes
            _become(request, streams)
        for stream in streams:
            os.close(stream)


def receive(client: socket.socket) -> tuple[Mapping[str, object], Sequence[int]]:
    """A request and the three standard streams that came with it; ValueError when it is cut off."""
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
        raise ValueError("a request was cut off")
    return json.loads(body), streams


def _become(request: Mapping[str, object], streams: Sequence[int]) -> NoReturn:
    """Go on as the Python process that Spark asked for; its visitor ends when this process does."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    arguments = [str(one) for one in request["arguments"]]  # type: ignore[attr-defined]  # a list
    environment = dict(request["environment"])  # type: ignore[call-overload]  # of texts
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
    """Run a module as the main one; its exit code."""
    try:
        if module in _DAEMONS:
            python_daemon.main()
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (BrokenPipeError, ConnectionResetError):
        return 1  # Spark has closed its end, as at each stop: no process waits for an answer
    except BaseException:  # noqa: BLE001  (no caller is left to report it)
        traceback.print_exc()
        return 1
    return 0


def extend_path(path: str) -> None:
    """Find what the process that was asked for would find in folders of its own."""
    for entry in path.split(os.pathsep):
        if entry and entry not in sys.path and Path(entry).is_dir():
            sys.path.append(entry)


if __name__ == "__main__":
    main()
