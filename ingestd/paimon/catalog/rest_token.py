"""Credentials of a table's store, which a REST catalog hands out for a limited time.

Specification: https://paimon.apache.org/docs/1.4/concepts/rest/rest-api/
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol, cast

from ingestd.errors import IngestdError
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.catalog.rest_messages import StorageToken
from ingestd.paimon.io.store_options import MOST_CREDENTIALS, storage_options, with_credentials

_LOG = logging.getLogger(__name__)
_LONGEST_MARGIN = 3600.0
_RETRIES = 5
_RETRY_SECONDS = 10.0
_LEAST_SECONDS = 1.0

Fetch = Callable[[int], StorageToken]
"""Ask the catalog for a token; the argument is how often a busy server is asked again."""


class TokenSource(Protocol):
    """A catalog that hands out credentials of a table's store."""

    def storage_token(self, identifier: Identifier, *, retries: int) -> StorageToken:
        """Return credentials of a table's store; ask a busy server again up to `retries` times.

        Raises TableNotFoundError if the table does not exist, ConfigError if the server refuses,
        and StorageError if it does not respond.
        """
        ...


@dataclass(frozen=True, slots=True)
class TableCredentials:
    """The options of a table's store, with credentials that its catalog hands out.

    `warehouse` and `catalog` are the arguments of `open_catalog`, by which each process opens the
    catalog and asks for credentials itself; credentials are not part of the pickled object. In
    Spark's tasks, `catalog` has references instead of secrets. `scheme` is that of the table's
    path.
    """

    warehouse: str
    catalog: frozenset[tuple[str, str]] = field(repr=False)
    table: Identifier
    scheme: str

    def current(self) -> frozenset[tuple[str, str]]:
        """Return the options with credentials that are valid now.

        Raises UnsupportedError if the catalog hands out no credentials for this kind of store,
        StorageError if it does not respond, and ConfigError if it refuses.
        """
        return _renewed(self).current()

    def discard(self) -> None:
        """Forget the token, which the store has refused: the next request asks for another."""
        _renewed(self).discard()


class RenewedToken:
    """The newest credentials of one table's store in this process, renewed before they expire.

    `fetch` requests credentials; its argument is how often a busy server is asked again. `now`
    returns the time in seconds since 1970.
    """

    def __init__(self, fetch: Fetch, now: Callable[[], float] = time.time) -> None:
        self._fetch = fetch
        self._now = now
        self._lock = threading.Lock()
        self._token: StorageToken | None = None
        self._renew_at = 0.0

    def current(self) -> frozenset[tuple[str, str]]:
        """Return the options of a token that has not expired.

        The next token is requested an hour before the current one expires, or after half of its
        lifetime if that is later. If the request fails, the current token is used until it expires.
        Without a valid token, the errors of `fetch` are raised.
        """
        token, now = self._token, self._now()
        if token is not None:
            if now < self._renew_at:
                return token.options
            if now < token.expires_at:
                return self._renewed_beside(token, now).options
        with self._lock:
            newest = self._token
            if newest is None or newest is token:
                newest = self._take(self._fetch(_RETRIES), now)
            return newest.options

    def discard(self) -> None:
        """Forget the token before it expires; the next call of `current` requests another."""
        self._token = None

    def _renewed_beside(self, token: StorageToken, now: float) -> StorageToken:
        """Return the next token, or the given valid one if there is no other yet."""
        if not self._lock.acquire(blocking=False):
            return token
        try:
            return self._take(self._fetch(0), now)
        except IngestdError as error:
            _LOG.warning("storage_token_not_renewed", extra={"ctx": {"error": error.message}})
            self._renew_at = min(now + _RETRY_SECONDS, token.expires_at)
            return token
        finally:
            self._lock.release()

    def _take(self, token: StorageToken, now: float) -> StorageToken:
        margin = min((token.expires_at - now) / 2, _LONGEST_MARGIN)
        self._token, self._renew_at = token, max(token.expires_at - margin, now + _LEAST_SECONDS)
        return token


@lru_cache(maxsize=MOST_CREDENTIALS)
def _renewed(credentials: TableCredentials) -> RenewedToken:
    store = storage_options(dict(credentials.catalog))

    def fetch(retries: int) -> StorageToken:
        catalog = _catalog(credentials.warehouse, credentials.catalog)
        token = catalog.storage_token(credentials.table, retries=retries)
        options = with_credentials(credentials.scheme, store, dict(token.options))
        return replace(token, options=frozenset(options.items()))

    return RenewedToken(fetch)


@lru_cache(maxsize=16)
def _catalog(warehouse: str, options: frozenset[tuple[str, str]]) -> TokenSource:
    return cast("TokenSource", load_catalog("rest", warehouse, dict(options)))
