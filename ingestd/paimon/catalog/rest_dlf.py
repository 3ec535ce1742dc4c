"""Requests to a REST catalog that are signed with an access key, for Alibaba Cloud's DLF.

Both signatures of Java Paimon are here: `default`, a chain of HMAC-SHA256 as in other clouds, and
`openapi`, the signature of Alibaba Cloud's OpenAPI, with HMAC-SHA1. The key is an option, a file
that is renewed, or the one of the role of a virtual machine.

Specification: https://paimon.apache.org/docs/1.4/concepts/rest/dlf/#dlf-token
"""

import base64
import hashlib
import hmac
import json
import re
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import reduce
from http.client import HTTPException
from pathlib import Path

from ingestd.errors import ConfigError, IngestdError, StorageError, UnsupportedError
from ingestd.http_request import failure_reason, send
from ingestd.paimon.catalog.rest_auth import AuthRequest

KEY_ID, KEY_SECRET = "dlf.access-key-id", "dlf.access-key-secret"
SESSION_TOKEN = "dlf.security-token"  # noqa: S105  (the name of an option)
TOKEN_PATH, TOKEN_LOADER = "dlf.token-path", "dlf.token-loader"
ECS_URL, ECS_ROLE = "dlf.token-ecs-metadata-url", "dlf.token-ecs-role-name"
REGION, SIGNATURE = "dlf.region", "dlf.signing-algorithm"
DLF_OPTIONS = frozenset(
    {KEY_ID, KEY_SECRET, SESSION_TOKEN, TOKEN_PATH, TOKEN_LOADER}
    | {ECS_URL, ECS_ROLE, REGION, SIGNATURE}
)
_ECS_URL = "http://100.100.100.200/latest/meta-data/Ram/security-credentials/"
_ECS_SECONDS = 10.0
_ECS_BYTES = 64 << 10
_REGION_IN_URI = re.compile(r"(?:pre-)?([a-z]+-[a-z]+(?:-\d+)?)")
_SAFE_SECONDS = 3600.0
"""Keys that expire are read again this long before, as Java does."""
_JSON = "application/json"
_VERSION_4 = ("DLF4-HMAC-SHA256", "DlfNext", "aliyun_v4_request")


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An access key of DLF; `expires_at` is in seconds since 1970 (None: the key does not expire).

    `session_token` belongs to a temporary key (None: the key is not temporary).
    """

    key_id: str
    secret: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None


Signature = Callable[[AuthRequest, AccessKey, datetime], dict[str, str]]
"""Return all headers that a signature adds to a request at this time."""


@dataclass(slots=True)
class DlfSigner:
    """Signs the requests to one catalog with the access key that `load` returns.

    `sign` returns the headers of a signature. A key that expires within an hour is loaded again
    before a request. `now` returns the time in seconds since 1970.
    """

    sign: Signature
    load: Callable[[], AccessKey]
    now: Callable[[], float] = time.time
    _key: AccessKey | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def headers(self, request: AuthRequest, /) -> dict[str, str]:
        """Return the headers with the signature of a request that is sent at once.

        Raises the errors of `load`.
        """
        now = self.now()
        with self._lock:
            expires_at = None if self._key is None else self._key.expires_at
            if self._key is None or (expires_at is not None and expires_at - now < _SAFE_SECONDS):
                self._key = self.load()
            key = self._key
        return self.sign(request, key, datetime.fromtimestamp(int(now), UTC))

    def renew(self) -> bool:
        """Load the key again after a rejection; return whether it has changed.

        Raises the errors of `load`.
        """
        with self._lock:
            before, self._key = self._key, self.load()
            return self._key != before


def dlf_signer(options: Mapping[str, str], uri: str) -> DlfSigner:
    """Return the signer that the options of a catalog at the address `uri` specify.

    If the options lack the signature or the region, it is taken from `uri`. Raises ConfigError if
    the key or the region is missing, UnsupportedError for an unknown signature or loader.
    """
    chosen = options.get(SIGNATURE) or ("openapi" if "dlfnext" in uri.lower() else "default")
    if chosen == "openapi":
        host = urllib.parse.urlsplit(uri).netloc
        return DlfSigner(
            lambda request, key, now: openapi_headers(request, key, now, host, uuid.uuid4().hex),
            _loader(options),
        )
    if chosen != "default":
        raise UnsupportedError(
            f"catalog option '{SIGNATURE}' = '{chosen}' is not supported; use 'default' or "
            "'openapi'"
        )
    region = options.get(REGION) or _region_of(uri)
    return DlfSigner(
        lambda request, key, now: default_headers(request, key, now, region), _loader(options)
    )


def default_headers(
    request: AuthRequest, key: AccessKey, now: datetime, region: str
) -> dict[str, str]:
    """Return the headers of the signature `default`, for the API in a virtual private cloud.

    `now` is the time of the request in UTC, `region` the region of the catalog.
    """
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "x-dlf-date": moment,
        "x-dlf-content-sha256": "UNSIGNED-PAYLOAD",
        "x-dlf-version": "v1",
        **_content_headers(request.body),
    }
    if key.session_token is not None:
        headers["x-dlf-security-token"] = key.session_token
    path, parameters = _parts(request.target)
    canonical = "\n".join(
        (
            request.method,
            path,
            "&".join(f"{name}={_java_encoded(value)}" if value else name
                     for name, value in parameters),
            *(f"{name.lower()}:{headers[name].strip()}" for name in sorted(headers, key=str.lower)),
            headers["x-dlf-content-sha256"],
        )
    )  # fmt: skip
    algorithm, product, kind = _VERSION_4
    scope = (moment[:8], region, product, kind)
    text = "\n".join((algorithm, moment, "/".join(scope), _sha256(canonical)))
    signing_key = reduce(_hmac_sha256, scope, f"aliyun_v4{key.secret}".encode())
    signature = _hmac_sha256(signing_key, text).hex()
    credential = "/".join((key.key_id, *scope))
    proof = f"{algorithm} Credential={credential},Signature={signature}"
    return {**headers, "Authorization": proof}


def openapi_headers(
    request: AuthRequest, key: AccessKey, now: datetime, host: str, nonce: str
) -> dict[str, str]:
    """Return the headers of the signature `openapi`, for the API at the host `host`.

    `now` is the time of the request in UTC. No two requests may have the same `nonce`.
    """
    headers = {
        "Date": format_datetime(now, usegmt=True),
        "Accept": _JSON,
        **_content_headers(request.body),
        "Host": host,
        "x-acs-signature-method": "HMAC-SHA1",
        "x-acs-signature-nonce": nonce,
        "x-acs-signature-version": "1.0",
        "x-acs-version": "2026-01-18",
    }
    if key.session_token is not None:
        headers["x-acs-security-token"] = key.session_token
    path, parameters = _parts(request.target)
    resource = urllib.parse.unquote_plus(path)
    if parameters:
        query = "&".join(f"{name}={value}" if value else name for name, value in parameters)
        resource = f"{resource}?{query}"
    own = sorted(name for name in headers if name.startswith("x-acs-"))
    text = "\n".join(
        (
            request.method,
            *(headers.get(name, "") for name in ("Accept", "Content-MD5", "Content-Type", "Date")),
            *(f"{name}:{headers[name].strip()}" for name in own),
            resource,
        )
    )
    signature = hmac.digest(key.secret.encode(), text.encode(), "sha1")
    return {**headers, "Authorization": f"acs {key.key_id}:{_base64(signature)}"}


def _content_headers(body: bytes | None) -> dict[str, str]:
    if not body:
        return {}
    digest = hashlib.md5(body, usedforsecurity=False).digest()
    return {"Content-Type": _JSON, "Content-MD5": _base64(digest)}


def _parts(target: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the encoded path of a request, and its decoded parameters, sorted by name."""
    path, _, query = target.partition("?")
    return path, sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))


def _java_encoded(text: str) -> str:
    """Encode a value as Java's URLEncoder does, which both ends of the signature use."""
    return urllib.parse.quote_plus(text, safe="*").replace("~", "%7E")


def _hmac_sha256(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _region_of(uri: str) -> str:
    found = _REGION_IN_URI.search(uri)
    if found is None:
        raise ConfigError(f"catalog option '{REGION}' is missing, and 'uri' contains no region")
    return found[1]


def _loader(options: Mapping[str, str]) -> Callable[[], AccessKey]:
    """Return the function that loads the key: that of a loader, of a file, or of the options."""
    loader = options.get(TOKEN_LOADER)
    if loader == "ecs":
        url, role = options.get(ECS_URL) or _ECS_URL, options.get(ECS_ROLE)
        return lambda: _of_machine(url, role)
    if loader not in (None, "local_file"):
        raise UnsupportedError(
            f"catalog option '{TOKEN_LOADER}' = '{loader}' is not supported; use 'local_file' or "
            "'ecs'"
        )
    if path := options.get(TOKEN_PATH):
        return lambda: _of_file(Path(path))
    if loader is not None:
        raise ConfigError(f"catalog option '{TOKEN_LOADER}' = '{loader}' needs '{TOKEN_PATH}'")
    key_id, secret = options.get(KEY_ID), options.get(KEY_SECRET)
    if not key_id or not secret:
        raise ConfigError(
            f"the token provider 'dlf' needs '{KEY_ID}' and '{KEY_SECRET}', '{TOKEN_PATH}', or "
            f"'{TOKEN_LOADER}' = 'ecs'"
        )
    key = AccessKey(key_id, secret, options.get(SESSION_TOKEN))
    return lambda: key


def _of_file(path: Path) -> AccessKey:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"token file {path} cannot be read: {error.strerror}") from error
    return _key(text, f"token file {path}", ConfigError)


def _of_machine(url: str, role: str | None) -> AccessKey:
    """Return the key of the role of this virtual machine, from its metadata service."""
    name = role or _metadata(url).decode("utf-8", "replace").strip()
    return _key(_metadata(url + name), f"metadata service {url}", StorageError)


def _metadata(url: str) -> bytes:
    try:
        request = urllib.request.Request(url)  # noqa: S310  (an option of the operator)
        response = send(request, _ECS_SECONDS, _ECS_BYTES)
    except (OSError, HTTPException, ValueError) as error:
        reason = failure_reason(error)
        raise StorageError(f"metadata service {url} does not respond: {reason}") from error
    if response.status != 200:
        raise StorageError(f"metadata service {url} responds with {response.status}")
    return response.body


def _key(text: bytes, source: str, kind: type[IngestdError]) -> AccessKey:
    try:
        document = json.loads(text)
        expiration = document.get("Expiration")
        expires_at = None if expiration is None else datetime.fromisoformat(expiration).timestamp()
        key_id, secret = document["AccessKeyId"], document["AccessKeySecret"]
        session_token = document.get("SecurityToken")
    except (ValueError, KeyError, TypeError, AttributeError):
        # The cause is left out, as its text may contain the secret.
        raise kind(f"{source} is not a JSON object with AccessKeyId and AccessKeySecret") from None
    if not all(isinstance(text, str) and text for text in (key_id, secret, session_token or "-")):
        raise kind(f"{source} has values that are no texts")
    return AccessKey(key_id, secret, session_token, expires_at)
