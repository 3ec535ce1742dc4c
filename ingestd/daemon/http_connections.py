"""Limits of connections at a time, under which a new connection always finds a place."""

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class ConnectionLimit:
    """At most `most` connections at a time; thread-safe.

    A connection beyond the limit takes the place of another one: of the address with the most
    connections the oldest is shut down. An address with few connections, as of a probe, keeps them
    however many another address opens.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._addresses: dict[socket.socket, str] = {}  # oldest connection first

    @contextmanager
    def place(self, connection: socket.socket, address: str) -> Iterator[None]:
        """Count a connection in the block, or until `leave`; it may be shut down meanwhile."""
        self._enter(connection, address)
        try:
            yield
        finally:
            self.leave(connection)

    def leave(self, connection: socket.socket) -> None:
        """Count a connection no more."""
        with self._lock:
            self._addresses.pop(connection, None)

    def _enter(self, connection: socket.socket, address: str) -> None:
        with self._lock:
            self._addresses[connection] = address
            if len(self._addresses) <= self._most:
                return
            counts = Counter(self._addresses.values())
            largest = max(counts.values())
            oldest = next(one for one, of in self._addresses.items() if counts[of] == largest)
            del self._addresses[oldest]
            with suppress(OSError):
                # Not the TLS connection's own: that would change it under the thread that reads.
                socket.socket.shutdown(oldest, socket.SHUT_RDWR)
