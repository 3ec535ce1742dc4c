"""Ask the prefork server for a fork in place of a new Python, and stay as long as that lives.

Runs without any package, not even this one: only what Python itself brings is imported.
"""

import json
import os
import signal
import socket
import sys

SOCKET = "INGESTD_PREFORK"
PYTHON = "INGESTD_PYTHON"
TAKEN = b"+"


def main() -> None:
    """Hand over streams and arguments; become an ordinary Python if nobody takes them."""
    with socket.socket(socket.AF_UNIX) as prefork_server:
        if not taken(prefork_server, sys.argv[1:]):
            os.execv(os.environ[PYTHON], [os.environ[PYTHON], *sys.argv[1:]])  # noqa: S606
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is the other's to end
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)  # so that Spark sees the other process close them
        while prefork_server.recv(1):
            pass


def taken(prefork_server: socket.socket, arguments: list[str]) -> bool:
    """Whether a fork of the prefork server has the request and the streams and says so."""
    try:
        prefork_server.connect(os.environ[SOCKET])
        hand_over(prefork_server, arguments)
        return prefork_server.recv(1) == TAKEN
    except (OSError, KeyError):
        return False


def hand_over(prefork_server: socket.socket, arguments: list[str]) -> None:
    """Send the request and, with its first bytes, the standard streams."""
    document = {"arguments": arguments, "environment": dict(os.environ)}
    body = json.dumps(document).encode()
    socket.send_fds(prefork_server, [len(body).to_bytes(4, "big")], [0, 1, 2])
    prefork_server.sendall(body)


if __name__ == "__main__":
    main()
