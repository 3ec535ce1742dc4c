"""An HTTP server in this process, for the time of a block."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.closing import Closing

_POLL_SECONDS = 0.02


class HttpServing(Closing):
    """What `handler` answers on a free port of this machine while the block of `with` runs."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,))

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
