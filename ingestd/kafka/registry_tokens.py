"""Bearer tokens for a schema registry, from the token endpoint of an OAuth server.

They are requested with client credentials (RFC 6749, section 4.4). A process keeps one token for
each client, and renews it before it expires. Tokens are never pickled: each process requests its
own.
"""

import base64
import logging
import re
import ssl
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from urllib.parse import quote_plus, urlencode

from ingestd.errors import ConfigError, SourceError, SourceSilentError
from ingestd.http_request import ClientResponse, failure_reason, json_of, one_line, send
from ingestd.log import add_secrets

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 1 << 20
_RENEWED_AFTER = 0.8
"""The fraction of its lifetime after which a token is renewed, as in Confluent's clients."""
_TOKEN = re.compile(r"[\x21-\x7e]+")
_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class TokenClient:
    """The credentials of a client at an OAuth token endpoint.

    `ca_location` is a file with CA certificates that are trusted in addition to the certificates of
    the system.
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    ca_location: str | None = None


@dataclass(slots=True)
class _Held:
    """The token of a client, or None; times are of the monotonic clock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    token: str | None = None
    renewed_at: float = 0.0
    expires_at: float = 0.0


_held: dict[TokenClient, _Held] = {}


def bearer_token(client: TokenClient, seconds: float) -> str:
    """Return a token that has not expired; a request for a new token takes at most `seconds`.

    If the endpoint does not respond, the previous token is used until it expires. Raises
    ConfigError if the endpoint rejects the client or the file with CA certificates cannot be used,
    SourceError if the endpoint returns no token.
    """
    held = _held.setdefault(client, _Held())
    with held.lock:
        now = time.monotonic()
        if held.token is not None and now < held.renewed_at:
            return held.token
        try:
            token, lifetime = _request(client, seconds)
        except SourceSilentError as error:
            if held.token is None or now >= held.expires_at:
                raise
            _LOG.warning("schema_registry_token_retry", extra={"ctx": {"why": error.message}})
            return held.token
        held.token = token
        held.renewed_at = now + lifetime * _RENEWED_AFTER
        held.expires_at = now + lifetime
        return token


def discard_token(client: TokenClient, token: str) -> None:
    """Discard a token that the registry rejected, unless a newer token has replaced it."""
    held = _held.setdefault(client, _Held())
    with held.lock:
        if held.token == token:
            held.token = None


def forget_tokens() -> None:
    """Discard the tokens of all clients."""
    _held.clear()


def _request(client: TokenClient, seconds: float) -> tuple[str, float]:
    """Request a new token; return it and its lifetime in seconds, infinite if not stated.

    Raises the errors of `bearer_token`.
    """
    # RFC 6749, section 2.3.1: id and secret are encoded as in a form.
    pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    basic = base64.b64encode(pair.encode()).decode()
    add_secrets([basic, client.client_secret])
    form = {"grant_type": "client_credentials"}
    if client.scope is not None:
        form["scope"] = client.scope
    headers = {"Authorization": f"Basic {basic}", "Content-Type": _FORM}
    request = urllib.request.Request(  # noqa: S310  (checked: http, https)
        client.url,
        urlencode(form).encode(),
        {**headers, "Accept": "application/json"},
    )
    context = _tls(client) if client.url.startswith("https:") else None
    endpoint = f"token endpoint {one_line(client.url)}"
    try:
        response = send(request, seconds, _MOST_BYTES, context)
    except (OSError, HTTPException) as error:
        raise SourceSilentError(f"{endpoint}: no response ({failure_reason(error)})") from error
    return _token_of(response, endpoint)


def _token_of(response: ClientResponse, endpoint: str) -> tuple[str, float]:
    try:
        document = json_of(response.body)
    except ValueError:
        document = None
    stated = document if isinstance(document, dict) else {}
    if response.status != 200:
        _raise_status(response.status, stated, endpoint)
    token = stated.get("access_token")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise SourceError(f"{endpoint}: the response contains no access_token")
    add_secrets([token])
    try:
        lifetime = float(stated.get("expires_in", "inf"))
    except (TypeError, ValueError) as error:
        raise SourceError(f"{endpoint}: 'expires_in' is not a number of seconds") from error
    return token, lifetime


def _raise_status(status: int, stated: dict[str, object], endpoint: str) -> None:
    """Raise ConfigError if the endpoint rejects the client, or else SourceError."""
    reason = one_line(stated.get("error_description") or stated.get("error") or "no reason given")
    message = f"{endpoint} responds with {status}: {reason}"
    if status in (400, 401, 403) and "error" in stated:
        raise ConfigError(
            f"{message}; check 'bearer-auth-client-id', 'bearer-auth-client-secret' and "
            "'bearer-auth-scope' of schema-registry"
        )
    if status == 429 or status >= 500:
        raise SourceSilentError(message)
    raise SourceError(f"{message}; is 'bearer-auth-issuer-endpoint-url' a token endpoint?")


def _tls(client: TokenClient) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context()
        if client.ca_location:
            context.load_verify_locations(client.ca_location)
    except OSError as error:
        raise ConfigError(f"schema-registry: the files for TLS cannot be used: {error}") from error
    return context
