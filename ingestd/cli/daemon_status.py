"""Requests the status of a running daemon over HTTP."""

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from ingestd.errors import ConfigError, IngestdError

_TIMEOUT_SECONDS = 5.0
_MOST_BYTES = 64 << 20
_PATH = "/status"

Document = Mapping[str, Any]


class DaemonSilentError(IngestdError):
    """The daemon did not respond as expected; a later request may succeed."""


@dataclass(frozen=True, slots=True)
class DaemonAddress:
    """The URL of a daemon, and credentials for it.

    `ca_file` holds CA certificates that are trusted in addition to the system's, `auth_file` the
    bearer token, which is read for each request.
    """

    url: str
    ca_file: Path | None = None
    auth_file: Path | None = None
    _parts: SplitResult = field(init=False, repr=False)

    def __post_init__(self) -> None:
        url = self.url if "://" in self.url else f"http://{self.url}"
        split_url = urlsplit(url)
        if (
            split_url.scheme not in ("http", "https")
            or not split_url.hostname
            or not _has_port(split_url)
        ):
            raise ConfigError(
                f"'{self.url}' is not the address of a daemon; write http://HOST:PORT"
            )
        object.__setattr__(self, "_parts", split_url)

    def status(self) -> Document:
        """Request /status, and return the JSON document.

        Raises DaemonSilentError if the daemon does not respond with a status, ConfigError if the
        token or the certificate is refused, or one of their files cannot be read.
        """
        connection, headers = self._connection(), self._headers()
        try:
            connection.request("GET", self._parts.path.rstrip("/") + _PATH, headers=headers)
            response = connection.getresponse()
            body = response.read(_MOST_BYTES)
        except ssl.SSLCertVerificationError as error:
            raise ConfigError(f"{self.url}: {error.verify_message}; give --ca FILE") from error
        except (OSError, http.client.HTTPException) as error:
            raise DaemonSilentError(f"{self.url} does not respond: {error}") from error
        finally:
            connection.close()
        if response.status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise ConfigError(f"{self.url} asks for its token: give --auth-file FILE")
        return self._document(response.status, body)

    def _document(self, status: int, body: bytes) -> Document:
        try:
            document = json.loads(body)
        except ValueError:
            document = None
        if status != http.HTTPStatus.OK or not isinstance(document, dict):
            raise DaemonSilentError(
                f"{self.url} is not a daemon of ingestd: {_PATH} returned {status}"
            )
        return document

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)
        trusted = None if self.ca_file is None else str(self.ca_file)
        try:
            context = ssl.create_default_context(cafile=trusted)
        except OSError as error:
            raise ConfigError(f"--ca {trusted}: {error.strerror or error}") from error
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_SECONDS, context=context)

    def _headers(self) -> dict[str, str]:
        if self.auth_file is None:
            return {}
        try:
            token = self.auth_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "no ASCII text"
            raise ConfigError(f"--auth-file {self.auth_file}: {reason}") from error
        return {"Authorization": f"Bearer {token}"}


def _has_port(split_url: SplitResult) -> bool:
    """Return whether the port of a URL is valid or absent."""
    try:
        return split_url.port != 0
    except ValueError:
        return False
