"""Requests to a REST catalog: JSON over HTTP, with retries where they are safe.

Specification: https://paimon.apache.org/docs/1.4/concepts/rest/rest-api/

Each request has its own connection: a catalog receives only a few requests per minute, and an idle
connection could break after a request was sent, which would leave the outcome unknown. Redirects
are not followed, because they would send the token to another server.
"""

import json
import logging
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Literal

from ingestd.errors import ConfigError, IngestdError, StorageError, UnsupportedError
from ingestd.http_request import json_of, one_line, send
from ingestd.paimon.catalog.rest_auth import Authenticator, AuthRequest

_LOG = logging.getLogger(__name__)
_BUSY = (429, 503)
_TAKEN_IN = (404, 409)
_UNAUTHORIZED = 401
_LONGEST_WAIT = 60.0
_MOST_BYTES = 64 << 20
_MOST_PAGES = 10_000

Method = Literal["GET", "POST", "DELETE"]


@dataclass(frozen=True, slots=True)
class RestResponse:
    """A response of a REST catalog that the caller interprets: success, 404 or 409.

    `document` is the JSON object in its body; {} if it has none.
    """

    status: int
    document: Mapping[str, Any]

    @property
    def missing_resource(self) -> str | None:
        """The kind of the missing resource, such as `TABLE`; "" if unknown.

        Returns None if the status is not 404.
        """
        return str(self.document.get("resourceType") or "") if self.status == 404 else None

    @property
    def exists(self) -> bool:
        """Whether the resource to create exists already: the status is 409."""
        return self.status == 409

    @property
    def message(self) -> str:
        """The error message of the server; "" if there is none."""
        return one_line(self.document.get("message") or "")

    def members(self, name: str) -> Mapping[str, Any]:
        """Return the JSON object `name` in the document, or {} if it is missing.

        Raises StorageError if the member is not an object.
        """
        section = self.document.get(name) or {}
        if not isinstance(section, dict):
            raise StorageError(f"{name} is not a JSON object in the catalog's response")
        return section


@dataclass(frozen=True, slots=True)
class RestClient:
    """Client of one server of a REST catalog; paths of requests are relative to `uri`.

    Responses other than success, 404 and 409 are errors: ConfigError for a rejected request (400,
    401, 403) and a redirect (3xx), UnsupportedError for a missing function (405, 406, 501),
    StorageError for all other responses, and if there is no valid response within
    `timeout_seconds`. A request is repeated, at most `retries` times, if the server is busy (429,
    503), after a 401 if the credentials have changed, and if there is no valid response; in the
    last case a POST is repeated only if it did not reach the server. `token` authenticates each
    request, `headers` are sent with it; `sleep` takes seconds.
    """

    uri: str
    token: Authenticator
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    retries: int = 5
    timeout_seconds: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def get(self, path: str, query: Mapping[str, str] | None = None) -> RestResponse:
        """Send a GET request with the parameters `query`; return the response."""
        suffix = f"?{urllib.parse.urlencode(query)}" if query else ""
        return self._request("GET", path + suffix, None)

    def post(self, path: str, document: Mapping[str, Any]) -> RestResponse:
        """Send a POST request and return the response."""
        return self._request("POST", path, json.dumps(document).encode())

    def delete(self, path: str) -> RestResponse:
        """Send a DELETE request and return the response.

        If an attempt without a response was followed by the response 404, the resource counts as
        deleted.
        """
        return self._request("DELETE", path, None)

    def pages(self, path: str, member: str) -> Iterator[str]:
        """Yield all names of a listing, page by page.

        `member` is the field of a response that has the list of names. Raises NotFoundError if the
        resource does not exist, StorageError if the listing is invalid or has too many pages.
        """
        query: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            response = self.get(path, query)
            if response.missing_resource is not None:
                raise NotFoundError(f"{self.uri}{path}: {response.message or 'not found'}")
            names = response.document.get(member) or []
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise StorageError(f"{self.uri}{path}: {member} is not a list of names")
            yield from names
            token = response.document.get("nextPageToken")
            if not token or query.get("pageToken") == token:
                return
            query = {"pageToken": str(token)}
        raise StorageError(f"{self.uri}{path}: more than {_MOST_PAGES} pages")

    def _request(self, method: Method, path: str, body: bytes | None) -> RestResponse:
        unconfirmed = False
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                status, document, retry_after = self._send(method, path, body)
            except StorageError as error:
                if last or not (method != "POST" or isinstance(error, _NotSentError)):
                    raise
                unconfirmed = True
                self._wait(attempt, None, method, path, error.message)
                continue
            if status in _BUSY and not last:
                self._wait(attempt, retry_after, method, path, f"status {status}")
                continue
            if status == _UNAUTHORIZED and not last and self.token.renew():
                continue
            if status == 404 and method == "DELETE" and unconfirmed:
                return RestResponse(200, {})
            if status < 300 or status in _TAKEN_IN:
                return RestResponse(status, document)
            raise self._refusal(status, document, method, path)
        raise StorageError(f"{method} {self.uri}{path}: no response")

    def _send(
        self, method: Method, path: str, body: bytes | None
    ) -> tuple[int, Mapping[str, Any], str | None]:
        """Send the request once; return the status, the document, and `Retry-After` (or None)."""
        proof = self.token.headers(AuthRequest(method, path, body))
        headers = {"Accept": "application/json", **self.headers, **proof}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(  # noqa: S310  (checked to be http or https)
            self.uri + path, data=body, headers=headers, method=method
        )
        try:
            response = send(request, self.timeout_seconds, _MOST_BYTES)
        except (OSError, EOFError, HTTPException) as error:
            raise _no_response_error(error, f"{method} {self.uri}{path}") from error
        if response.status >= 300:
            return (
                response.status,
                _error_document(response.body),
                response.headers.get("Retry-After"),
            )
        if response.is_cut:
            raise StorageError(f"{method} {path}: the response has more than {_MOST_BYTES} bytes")
        return response.status, _document(response.body, f"{method} {path}"), None

    def _wait(
        self, attempt: int, retry_after: str | None, method: str, path: str, why: str
    ) -> None:
        seconds = float(2**attempt) * (1 + random.uniform(0, 0.1))  # noqa: S311  (no secret)
        if retry_after is not None and retry_after.strip().isdecimal():
            seconds = float(retry_after)
        _LOG.warning("catalog_retry", extra={"ctx": {"request": f"{method} {path}", "why": why}})
        self.sleep(min(seconds, _LONGEST_WAIT))

    def _refusal(
        self, status: int, document: Mapping[str, Any], method: str, path: str
    ) -> IngestdError:
        reason = one_line(document.get("message") or "it gives no reason")
        message = f"catalog {self.uri} responds with {status} to {method} {path}: {reason}"
        if status == _UNAUTHORIZED:
            return ConfigError(f"{message}; check the catalog's credentials")
        if status in (400, 403):
            return ConfigError(message)
        if status in (405, 406, 501):
            return UnsupportedError(message)
        if 300 <= status < 400:
            return ConfigError(f"{message}; redirects are not followed, write the final address")
        return StorageError(message)


class NotFoundError(ConfigError):
    """A listing was requested of a resource that the catalog does not have."""


class _NotSentError(StorageError):
    """A request that did not reach the server, so that it may be sent again."""


def base_uri(text: str) -> str:
    """Return the URL of a server without a trailing slash, with `http://` if it has no scheme.

    Raises ConfigError if it is not an address of a server, or contains a user name.
    """
    uri = text.strip()
    if "://" not in uri:
        uri = f"http://{uri}"
    try:
        parts = urllib.parse.urlsplit(uri)
        is_server = parts.hostname and not parts.username and parts.port != 0
        is_address = is_server and parts.scheme in ("http", "https")
    except ValueError:
        is_address = False
    if not is_address:
        raise ConfigError("catalog option 'uri' is not an address; write https://host:port")
    return uri.rstrip("/")


def _no_response_error(error: Exception, request: str) -> StorageError:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    # Resolving and connecting fail inside URLError; so do broken writes, which may have arrived.
    unsent = isinstance(reason, ConnectionRefusedError) or type(reason).__name__ == "gaierror"
    kind = _NotSentError if unsent else StorageError
    return kind(
        f"{request}: no response ({one_line(str(reason))}); whether it took effect is not known"
    )


def _document(data: bytes, request: str) -> Mapping[str, Any]:
    if not data.strip():
        return {}
    try:
        document = json_of(data)
    except ValueError as error:
        raise StorageError(
            f"{request}: the response is not JSON ({one_line(str(error))})"
        ) from error
    return document if isinstance(document, dict) else {}


def _error_document(data: bytes) -> Mapping[str, Any]:
    try:
        document = json_of(data)
    except ValueError:
        return {}
    known = document if isinstance(document, dict) else {}
    within = known.get("error")  # where catalogs of Iceberg have it
    return within if isinstance(within, dict) else known
