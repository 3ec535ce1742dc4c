"""Authentication at a REST catalog by a bearer token.

The token is given as a value, or in a file that may be renewed. Signed requests are in `rest_dlf`.

Specification: https://paimon.apache.org/docs/1.4/concepts/rest/rest-api/
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.log import add_secrets

TOKEN = "token"  # noqa: S105  (the name of an option)
TOKEN_FILE = "token-file"  # noqa: S105  (the name of an option)
TOKEN_PROVIDER = "token.provider"  # noqa: S105  (the name of an option)
DLF = "dlf"
_BEARER = "bear"


@dataclass(frozen=True, slots=True)
class AuthRequest:
    """The parts of an HTTP request from which a signature is computed.

    `method` is the HTTP method, `target` the path with its encoded query, `body` the content (None:
    no content).
    """

    method: str
    target: str
    body: bytes | None = None


class Authenticator(Protocol):
    """The authentication of the requests to a REST catalog, such as a token or a signature."""

    def headers(self, request: AuthRequest, /) -> dict[str, str]:
        """Return the headers that authenticate a request, which is sent at once.

        Raises ConfigError if there are no credentials, StorageError if they cannot be fetched.
        """
        ...

    def renew(self) -> bool:
        """Read the credentials again after a rejection; return whether they have changed.

        Raises ConfigError if there are none, StorageError if they cannot be fetched.
        """
        ...


@dataclass(slots=True)
class BearerToken:
    """The bearer token of all requests: a fixed text, or the content of the file `path`.

    A file is read again when it has changed, and when the server rejects the token. Without
    authentication, the token is empty.
    """

    path: Path | None = None
    _token: str = field(default="", repr=False)
    _read_at: int = -1

    def headers(self, _request: AuthRequest, /) -> dict[str, str]:
        """Return the headers with the token. Raises ConfigError if the file cannot be read."""
        if self.path is not None:
            self._read(self.path)
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def renew(self) -> bool:
        """Read the token file again after a rejection; return whether the token has changed.

        Without a token file, the result is False. Raises ConfigError if the file cannot be read.
        """
        if self.path is None:
            return False
        before, self._read_at = self._token, -1
        self._read(self.path)
        return self._token != before

    def _read(self, path: Path) -> None:
        try:
            changed_at = path.stat().st_mtime_ns
            if changed_at != self._read_at:
                self._token = path.read_text(encoding="utf-8").strip()
                self._read_at = changed_at
        except OSError as error:
            raise ConfigError(f"token file {path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"token file {path} is not a text in UTF-8") from error
        if not self._token:
            raise ConfigError(f"token file {path} is empty")
        add_secrets([self._token])


def bearer_token(options: Mapping[str, str]) -> BearerToken:
    """Return the token that the options of a catalog specify.

    Raises ConfigError if both a token and a file are given, or a provider without either of them;
    UnsupportedError for another provider than `bear`. The provider `dlf` is handled by
    `dlf_signer`.
    """
    provider = options.get(TOKEN_PROVIDER, _BEARER)
    if provider != _BEARER:
        raise UnsupportedError(
            f"catalog option '{TOKEN_PROVIDER}' = '{provider}' is not supported; known: "
            f"'{_BEARER}', and '{DLF}' for catalogs of Paimon"
        )
    token, path = options.get(TOKEN), options.get(TOKEN_FILE)
    if token and path:
        raise ConfigError(f"catalog options '{TOKEN}' and '{TOKEN_FILE}': give one of them")
    if TOKEN_PROVIDER in options and not (token or path):
        raise ConfigError(f"catalog option '{TOKEN_PROVIDER}' needs '{TOKEN}' or '{TOKEN_FILE}'")
    if token:
        add_secrets([token])
    return BearerToken(Path(path) if path else None, token or "")
