"""Who may see the daemon's pages, and how little a client may cost: TLS, a token, time, bytes."""

import hmac
import io
import logging
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from ingestd.errors import ConfigError

_LOG = logging.getLogger(__name__)
_BEARER = "Bearer "
_MOST_TOKEN_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """Files that guard the pages; without them they are plain and open.

    `certificate` and `key` are PEM files, given together, `auth_file` holds the bearer token that
    all pages but the probes ask for. All of them can be replaced while pages are served.
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

    def tls(self) -> "Tls | None":
        """What connections are wrapped in; ConfigError if the files are no certificate and key."""
        if self.certificate is None or self.key is None:
            return None
        return Tls(Path(self.certificate), Path(self.key))

    def allows(self, authorization: str | None) -> bool:
        """Whether a client that sends this header may see more than the probes."""
        if self.auth_file is None:
            return True
        wanted, given = _token(self.auth_file), authorization or ""
        if not wanted or not given.startswith(_BEARER):
            return False
        sent = given.removeprefix(_BEARER).strip().encode("utf-8", "surrogateescape")
        return hmac.compare_digest(sent, wanted)


class Tls:
    """The certificate as it is in its files now, for each connection.

    Files that were replaced count from the next connection on. As long as they do not fit together,
    as between the replacement of one and of the other, what there was before is shown.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self._lock = threading.Lock()
        self._seen = self._state()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """The context for a connection that begins now."""
        with self._lock:
            state = self._state()
            if state != self._seen:
                self._seen = state
                try:
                    self._context = self._load()
                except ConfigError as error:
                    _LOG.warning("http_certificate_kept", extra={"ctx": {"error": error.message}})
                else:
                    _LOG.info("http_certificate_read", extra={"ctx": {"file": str(self._files[0])}})
            return self._context

    def _state(self) -> tuple[tuple[int, ...], ...]:
        """What differs when a file was replaced or written."""
        return tuple(_stamp(file) for file in self._files)

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate, key = self._files
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"http.tls-certificate: {certificate} and {key} are not a certificate "
                f"and its key in PEM: {error.strerror or error}"
            ) from error
        return context


class BoundedRequest(io.RawIOBase):
    """What a client sends, up to `most_bytes` and `seconds` in all, however slowly it sends them.

    The first byte has to come within `first_seconds`. Reading beyond a limit raises TimeoutError,
    upon which the connection is closed.
    """

    def __init__(
        self, connection: socket.socket, most_bytes: int, first_seconds: float, seconds: float
    ) -> None:
        self._connection = connection
        self._left = most_bytes
        now = time.monotonic()
        self._first_end: float | None = now + first_seconds
        self._end = now + seconds

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]  # what io gives
        """Bytes that have come, as many as are left of what may come."""
        end = self._end if self._first_end is None else self._first_end
        seconds = end - time.monotonic()
        if seconds <= 0 or self._left <= 0:
            raise TimeoutError("the request is too long, or takes too long")
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= count
        self._first_end = None
        return count


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _token(path: str) -> bytes:
    """The token of a file without blanks around it; nothing if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_TOKEN_BYTES).strip()
    except OSError:
        return b""
