"""Who may see the daemon's pages, and how little a client may cost: TLS, a token, time, bytes."""

import hmac
import io
import socket
import ssl
import time
from dataclasses import dataclass
from pathlib import Path

from ingestd.errors import ConfigError

_BEARER = "Bearer "
_MOST_TOKEN_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """Files that guard the pages; without them they are plain and open.

    `certificate` and `key` are PEM files, given together. `auth_file` holds the bearer token that
    all pages but the probes ask for; it is read for each request, so that it can be replaced.
    """

    certificate: str | None = None
    key: str | None = None
    auth_file: str | None = None

    def check(self) -> None:
        """ConfigError for a token that is not there, as it is when the daemon starts."""
        if self.auth_file is not None and not _token(self.auth_file):
            raise ConfigError(
                f"http.auth-file: {self.auth_file} cannot be read or is empty; it has to hold "
                "the token that clients send"
            )

    def tls(self) -> ssl.SSLContext | None:
        """What connections are wrapped in; ConfigError if the files are no certificate and key."""
        if self.certificate is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"http.tls-certificate: {self.certificate} and {self.key} are not a certificate "
                f"and its key in PEM: {error.strerror or error}"
            ) from error
        return context

    def allows(self, authorization: str | None) -> bool:
        """Whether a client that sends this header may see more than the probes."""
        if self.auth_file is None:
            return True
        wanted, given = _token(self.auth_file), authorization or ""
        if not wanted or not given.startswith(_BEARER):
            return False
        sent = given.removeprefix(_BEARER).strip().encode("utf-8", "surrogateescape")
        return hmac.compare_digest(sent, wanted)


class BoundedRequest(io.RawIOBase):
    """What a client sends, up to so many bytes and seconds in all, however slowly it sends them.

    Reading beyond either raises TimeoutError, upon which the connection is closed.
    """

    def __init__(self, connection: socket.socket, most_bytes: int, seconds: float) -> None:
        self._connection = connection
        self._left = most_bytes
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]  # what io gives
        """Bytes that have come, as many as are left of what may come."""
        seconds = self._end - time.monotonic()
        if seconds <= 0 or self._left <= 0:
            raise TimeoutError("the request is too long, or takes too long")
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= count
        return count


def _token(path: str) -> bytes:
    """The token of a file without blanks around it; nothing if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_TOKEN_BYTES).strip()
    except OSError:
        return b""
