"""An HTTP server in this process, for the time of a block."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.certificates import Certificate
from tests.support.closing import Closing

_POLL_SECONDS = 0.02


class HttpServing(Closing):
    """What `handler` answers on a free port of this machine while the block of `with` runs.

    With a certificate it speaks HTTPS.
    """

    def __init__(
        self, handler: type[BaseHTTPRequestHandler], certificate: Certificate | None = None
    ) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._scheme = "http"
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate.both)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,))

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
