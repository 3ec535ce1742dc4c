"""Access to the daemon's pages: TLS, a bearer token, and limits of time and bytes."""

import base64
import hmac
import io
import logging
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ingestd.errors import ConfigError

_LOG = logging.getLogger(__name__)
_MOST_TOKEN_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """Files that protect the pages; without them the pages are unencrypted and public.

    `certificate` and `key` are PEM files, set together; `auth_file` contains the token that all
    pages except the probes require, as a bearer token or, for browsers, as the password. Files can
    be replaced while the daemon runs.
    """

    certificate: str | None = None
    key: str | None = None
    auth_file: str | None = None

    def check(self) -> None:
        """Raise ConfigError if `auth_file` cannot be read or contains no token."""
        if self.auth_file is not None and not _token(self.auth_file):
            raise ConfigError(
                f"http.auth-file: {self.auth_file} cannot be read or is empty; it must contain "
                "the token that clients send"
            )

    def tls(self) -> "Tls | None":
        """Return the server's certificate, or None if the pages are served without TLS.

        Raises ConfigError if a file cannot be read or is invalid.
        """
        if self.certificate is None or self.key is None:
            return None
        return Tls(Path(self.certificate), Path(self.key))

    def allows(self, authorization: str | None) -> bool:
        """Return whether a client with this Authorization header may see all pages.

        Without `auth_file` every client may; otherwise the header must contain its token. If the
        file cannot be read or is empty, no client may, and a warning is logged.
        """
        if self.auth_file is None:
            return True
        token, header = _token(self.auth_file), authorization or ""
        if not token:
            _LOG.warning("http_auth_file_unusable", extra={"ctx": {"file": self.auth_file}})
        return bool(token) and hmac.compare_digest(_sent(header), token)


class Tls:
    """The server's certificate, which is reloaded when its files change; thread-safe.

    Replaced files are used from the next connection on. While certificate and key do not match, as
    between the replacement of the first and the second file, the previous pair is used. Creating
    the object raises ConfigError if a file cannot be read or is invalid.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self._lock = threading.Lock()
        self._file_state = self._state()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """Return the TLS context for a new connection, after reloading replaced files."""
        with self._lock:
            state = self._state()
            if state != self._file_state:
                self._file_state = state
                try:
                    self._context = self._load()
                except ConfigError as error:
                    _LOG.warning("http_certificate_kept", extra={"ctx": {"error": error.message}})
                else:
                    _LOG.info("http_certificate_read", extra={"ctx": {"file": str(self._files[0])}})
            return self._context

    def _state(self) -> tuple[tuple[int, ...], ...]:
        """Return values that change when a file is replaced or written."""
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
    """The byte stream of a client's request, limited to `most_bytes` and to `seconds` in total.

    The first bytes must arrive within `first_seconds`. A read after a limit is reached raises
    TimeoutError, and the server closes the connection.
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
        """Return True."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]  # the type in use
        """Read received bytes into the buffer, and return their number; 0 at the end of the stream.

        Raises TimeoutError if a limit is reached.
        """
        end = self._end if self._first_end is None else self._first_end
        seconds = end - time.monotonic()
        if seconds <= 0 or self._left <= 0:
            raise TimeoutError("the request is too long, or takes too long")
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= count
        self._first_end = None
        return count


def _sent(header: str) -> bytes:
    """Return the token of a Bearer header, or the password of a Basic header, otherwise empty."""
    scheme, _, value = header.partition(" ")
    if scheme == "Bearer":
        return value.strip().encode("utf-8", "surrogateescape")
    if scheme == "Basic":
        with suppress(ValueError):
            return base64.b64decode(value, validate=True).partition(b":")[2]
    return b""


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        status = file.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _token(path: str) -> bytes:
    """Return the token in a file, stripped; empty if the file cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_TOKEN_BYTES).strip()
    except OSError:
        return b""
