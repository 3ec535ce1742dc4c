"""A server that sends its answer a byte at a time, so that no wait for the next one is long."""

import socket
import threading
import time
from contextlib import suppress

from tests.support.closing import Closing

_PAUSE_SECONDS = 0.02


class DrippingServer(Closing):
    """Sends `at_once` and then `rest`, byte by byte, to each client."""

    def __init__(self, at_once: bytes, rest: bytes) -> None:
        self._at_once = at_once
        self._rest = rest
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._ended.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.recv(1 << 16)  # the request
                connection.sendall(self._at_once)
                for byte in self._rest:
                    if self._ended.is_set():
                        return
                    connection.sendall(bytes([byte]))
                    time.sleep(_PAUSE_SECONDS)


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


def whole_answer(body: bytes) -> bytes:
    """An answer of HTTP with this body."""
    return HEAD % len(body) + body
