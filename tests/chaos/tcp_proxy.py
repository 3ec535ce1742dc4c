"""A network between two programs on this machine that can be cut, frozen and slowed down."""

import socket
import threading
import time
from contextlib import suppress

from tests.support.closing import Closing

_PIECE = 16 << 10


class TcpProxy(Closing):
    """Listens on `address` and passes everything on to `target`, HOST:PORT, set before use."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.target = ""
        self.passed = 0
        """Bytes from the target so far."""
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._refuses = False
        self._delay = 0.0
        self._rate = 0.0

    def start(self) -> None:
        """Begin to listen."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End all connections; there are no new ones."""
        self._listener.close()
        self.cut()
        self._flows.set()

    def cut(self) -> None:
        """End all connections, and new ones at once."""
        self._refuses = True
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def freeze(self) -> None:
        """Connections stay and can be made, but nothing passes."""
        self._flows.clear()

    def slow(self, bytes_per_second: float, delay: float) -> None:
        """Limit every connection to a rate in each direction, and delay each piece."""
        self._rate, self._delay = bytes_per_second, delay

    def heal(self) -> None:
        """All is as it should be."""
        self._refuses, self._rate, self._delay = False, 0.0, 0.0
        self._flows.set()

    def _accept(self) -> None:
        self._flows.set()
        while True:
            try:
                inside, _ = self._listener.accept()
            except OSError:
                return
            if self._refuses:
                inside.close()
                continue
            threading.Thread(target=self._connect, args=(inside,), daemon=True).start()

    def _connect(self, inside: socket.socket) -> None:
        host, _, port = self.target.rpartition(":")
        self._flows.wait()
        try:
            outside = socket.create_connection((host, int(port)), 60)
        except OSError:
            inside.close()
            return
        outside.settimeout(None)
        with self._lock:
            self._open |= {inside, outside}
        back = threading.Thread(target=self._pump, args=(outside, inside, True), daemon=True)
        back.start()
        self._pump(inside, outside, False)
        back.join()
        with self._lock:
            self._open -= {inside, outside}
        inside.close()
        outside.close()

    def _pump(self, source: socket.socket, sink: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while data := source.recv(_PIECE):
                self._flows.wait()
                if self._delay or self._rate:
                    time.sleep(self._delay + (len(data) / self._rate if self._rate else 0.0))
                sink.sendall(data)
                self.passed += len(data) if counts else 0
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
