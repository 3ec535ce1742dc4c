"""Requests to a schema registry: JSON over HTTP, retried at every address until a timeout.

Requests only read, so each may be repeated. Redirects are not followed, because they would send the
credentials to another host.
"""

import base64
import logging
import random
import ssl
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ingestd.errors import ConfigError, SourceError, SourceSilentError
from ingestd.http_request import ClientResponse, failure_reason, json_of, one_line, send
from ingestd.kafka.registry_settings import RegistrySettings
from ingestd.kafka.registry_tokens import bearer_token, discard_token
from ingestd.log import add_secrets

_LOG = logging.getLogger(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 10.0
_MOST_BYTES = 4 << 20
"""The maximum size of a response in bytes. Parsed, it takes up to thirty times as much memory."""
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json, */*;q=0.1"
_BEARER = "Bearer "
_NOT_THERE = "404"
"""Prefix of a registry's error codes for an unknown subject, version or schema."""
_APICURIO_NOT_THERE = "NotFoundException"
"""Suffix of Apicurio's error names, such as ContentNotFoundException; alone for an unknown path."""
REQUESTS, FAILURES, HITS, OUTAGE_MS = "requests", "failures", "hits", "outage_ms"
"""Counters: requests sent, requests without a usable response, look-ups served from the cache, and
milliseconds from a first failure to the response that ended it, or to the timeout.
"""

_Content = TypeVar("_Content")
_Read: TypeAlias = Callable[[bytes, str], _Content]
"""Reads the body of a response; the second argument is the URL for messages of errors."""

_lock = threading.Lock()
_figures: Counter[str] = Counter()


@dataclass(slots=True)
class RegistryHttp:
    """The HTTP requests of one schema look-up, whose timeout starts when the object is created.

    `sleep` and `clock` are replaced in tests.
    """

    settings: RegistrySettings
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def get(self, path: str) -> Mapping[str, Any] | None:
        """Return the JSON object at a path; None if the registry does not have it.

        Raises ConfigError if the registry rejects the credentials or redirects the request, or if a
        file with credentials cannot be read; SourceError if no address gave a usable response in
        time.
        """
        return self._get(path, _object)

    def get_list(self, path: str) -> list[Any] | None:
        """Return the JSON array at a path; None if the registry does not have it.

        Raises ConfigError if the registry rejects the credentials or redirects the request, or if a
        file with credentials cannot be read; SourceError if no address gave a usable response in
        time.
        """
        return self._get(path, _array)

    def get_text(self, path: str) -> str | None:
        """Return the text at a path; None if the registry does not have it.

        Raises ConfigError if the registry rejects the credentials or redirects the request, or if a
        file with credentials cannot be read; SourceError if no address gave a usable response in
        time.
        """
        return self._get(path, _text)

    def _get(self, path: str, read: _Read[_Content]) -> _Content | None:
        attempt = 0
        failed: float | None = None
        while True:
            note(REQUESTS)
            url = self.settings.urls[attempt % len(self.settings.urls)]
            try:
                response = self._ask(url.rstrip("/") + path, read)
                self._note_outage(failed)
                return response
            except SourceError as error:
                note(FAILURES)
                failed = self.clock() if failed is None else failed
                waited = self.clock() - self._begun
                wait = _back_off(attempt // len(self.settings.urls))
                if waited + wait > self.settings.retry_seconds:
                    self._note_outage(failed)
                    raise type(error)(
                        f"{error.message}; tried {attempt + 1} times, {waited:.0f} s since the "
                        "look-up began. No record is rejected because of this: the batch runs again"
                    ) from error
                why = {"why": error.message, "attempt": attempt + 1, "wait_s": round(wait, 2)}
                _LOG.warning("schema_registry_retry", extra={"ctx": why})
                if (attempt + 1) % len(self.settings.urls) == 0:
                    self.sleep(wait)
                attempt += 1

    def _note_outage(self, failed: float | None) -> None:
        if failed is not None:
            note(OUTAGE_MS, int((self.clock() - failed) * 1000))

    def _ask(self, url: str, read: _Read[_Content]) -> _Content | None:
        settings = self.settings
        left = self._begun + settings.lookup_seconds - self.clock()
        if left <= 0:
            raise SourceSilentError(
                f"schema registry {one_line(url)}: a schema and its references did not arrive "
                f"within {settings.lookup_seconds:g} s"
            )
        headers = _credentials(settings, min(settings.timeout_seconds, left))
        response = self._send(url, headers)
        if response.status == 401 and settings.token_client is not None:
            discard_token(settings.token_client, headers["Authorization"].removeprefix(_BEARER))
            headers = _credentials(settings, min(settings.timeout_seconds, left))
            response = self._send(url, headers)
        if not 200 <= response.status < 300:
            _check_status(response.status, response.body, one_line(url))
            return None
        if response.is_cut:
            raise SourceError(
                f"schema registry {one_line(url)}: the response has more than {_MOST_BYTES} bytes"
            )
        return read(response.body, one_line(url))

    def _send(self, url: str, headers: Mapping[str, str]) -> ClientResponse:
        settings = self.settings
        left = self._begun + settings.lookup_seconds - self.clock()
        request = urllib.request.Request(url, headers={"Accept": _ACCEPT, **headers})  # noqa: S310  (checked: http, https)
        context = _tls(settings) if url.startswith("https:") else None
        try:
            return send(request, min(settings.timeout_seconds, left), _MOST_BYTES, context)
        except (OSError, HTTPException) as error:
            raise SourceSilentError(
                f"schema registry {one_line(url)}: no response ({failure_reason(error)})"
            ) from error


def _back_off(round_number: int) -> float:
    seconds = min(_FIRST_WAIT * 2.0 ** min(round_number, 20), _LONGEST_WAIT)
    return seconds * (1 + random.uniform(0, 0.2))  # noqa: S311  (no secret)


def _check_status(status: int, data: bytes, url: str) -> None:
    """Return if the registry does not have the requested object.

    Raises ConfigError or SourceError for every other error status.
    """
    document = _error_document(data)
    reason = one_line(document.get("message") or document.get("title") or "no reason given")
    if status == 404 and _is_missing(document):
        return
    message = f"schema registry {url} responds with {status}: {reason}"
    if status in (401, 403):
        raise ConfigError(f"{message}; check the credentials of schema-registry")
    if status == 404:
        # From a proxy or for a wrong path: not the response of a registry about an id.
        raise SourceError(f"{message}; is this the address of a schema registry?")
    if 300 <= status < 400:
        raise ConfigError(f"{message}; redirects are not followed, write the final address")
    raise SourceSilentError(message) if status >= 500 else SourceError(message)


def _is_missing(document: Mapping[str, Any]) -> bool:
    """Return whether a response with status 404 is about an object, and not about a wrong path."""
    name, code = document.get("name"), document.get("error_code")
    if isinstance(name, str):
        return name.endswith(_APICURIO_NOT_THERE) and name != _APICURIO_NOT_THERE
    return isinstance(code, int | str) and str(code).startswith(_NOT_THERE)


def _credentials(settings: RegistrySettings, seconds: float) -> dict[str, str]:
    """Return the headers that authorize a request; requesting a token takes at most `seconds`.

    Raises ConfigError for a file that cannot be read, and the errors of `bearer_token`.
    """
    if settings.user_info is not None:
        encoded = base64.b64encode(settings.user_info.encode()).decode()
        add_secrets([encoded, settings.user_info.partition(":")[2]])
        return {"Authorization": f"Basic {encoded}"}
    token = settings.bearer
    if settings.bearer_file is not None:
        try:
            token = Path(settings.bearer_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(
                f"schema-registry: file {settings.bearer_file} cannot be read: {error.strerror}"
            ) from error
    if settings.token_client is not None:
        token = bearer_token(settings.token_client, seconds)
    if not token:
        return {}
    add_secrets([token])
    headers = {"Authorization": f"{_BEARER}{token}"}
    if settings.logical_cluster is not None:
        headers["target-sr-cluster"] = settings.logical_cluster
    if settings.identity_pool is not None:
        headers["Confluent-Identity-Pool-Id"] = settings.identity_pool
    return headers


def _tls(settings: RegistrySettings) -> ssl.SSLContext:
    """Return the TLS context with the trusted authorities and the client certificate.

    Raises ConfigError if a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=settings.ca_location)
        if settings.certificate_location:
            context.load_cert_chain(
                settings.certificate_location, settings.key_location, settings.key_password or ""
            )
    except (OSError, ValueError) as error:
        raise ConfigError(f"schema-registry: the files for TLS cannot be used: {error}") from error
    return context


def _json(data: bytes, url: str) -> object:
    try:
        return json_of(data)
    except ValueError as error:
        raise SourceError(f"schema registry {url}: the response is not JSON ({error})") from error


def _object(data: bytes, url: str) -> Mapping[str, Any]:
    document = _json(data, url)
    if not isinstance(document, dict):
        raise SourceError(f"schema registry {url}: the response is not a JSON object")
    return document


def _array(data: bytes, url: str) -> list[Any]:
    items = _json(data, url)
    if not isinstance(items, list):
        raise SourceError(f"schema registry {url}: the response is not a JSON array")
    return items


def _text(data: bytes, url: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SourceError(f"schema registry {url}: the response is not UTF-8") from error


def _error_document(data: bytes) -> Mapping[str, Any]:
    try:
        document = json_of(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def note(figure: str, count: int = 1) -> None:
    """Add `count` to a counter of registry requests, such as "requests" or "outage_ms"."""
    with _lock:
        _figures[figure] += count


def take_figures() -> Counter[str]:
    """Return this process's counters of registry requests since the last call, and reset them.

    The names are those that were passed to `note`.
    """
    with _lock:
        taken = Counter(_figures)
        _figures.clear()
    return taken
