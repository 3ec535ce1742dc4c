"""Request a fork from the prefork server instead of starting Python, and wait for its exit.

Spark starts this program through `worker.sh` as the Python of its workers. It imports only modules
of the standard library, and none of `ingestd`.
"""

import json
import os
import signal
import socket
import sys

SOCKET = "INGESTD_PREFORK"
PYTHON = "INGESTD_PYTHON"
ACKNOWLEDGED = b"+"


def main() -> None:
    """Request a fork and wait for its exit; if the request fails, run Python instead."""
    with socket.socket(socket.AF_UNIX) as server:
        if not send_request(server, sys.argv[1:]):
            os.execv(os.environ[PYTHON], [os.environ[PYTHON], *sys.argv[1:]])  # noqa: S606
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the forked process decides when to end
        devnull = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(devnull, stream)  # so that only the forked process holds Spark's streams
        while server.recv(1):
            pass


def send_request(server: socket.socket, arguments: list[str]) -> bool:
    """Connect to the server and request a fork; return whether the fork acknowledged it.

    `server` is a Unix socket that is not connected yet, and `arguments` are those of the Python
    process to fork. Returns False if the server does not respond.
    """
    try:
        server.connect(os.environ[SOCKET])
        send_streams(server, arguments)
        return server.recv(1) == ACKNOWLEDGED
    except (OSError, KeyError):
        return False


def send_streams(server: socket.socket, arguments: list[str]) -> None:
    """Send a request with this process's standard streams, arguments and environment.

    The length (4 bytes, big-endian) and the streams are sent first, then a JSON document.
    """
    document = {"arguments": arguments, "environment": dict(os.environ)}
    body = json.dumps(document).encode()
    socket.send_fds(server, [len(body).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(body)


if __name__ == "__main__":
    main()
