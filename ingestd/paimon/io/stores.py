"""Open object stores by the scheme of a path, configured by Paimon's option names.

Settings without an option come from the environment, as in the cloud's own tools:
AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY, web identity,
instance metadata.
"""

import functools
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.http_request import shown
from ingestd.paimon.io.store_options import AZURE, GCS, S3, SCHEMES, Family, client_name

_RETRIES: Any = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}
_PLAIN: Any = {"allow_http": True}
_MOST_SAID = 1000
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
_AZURE_ENDPOINT = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")


@functools.lru_cache(maxsize=64)
def open_store(scheme: str, bucket: str, options: frozenset[tuple[str, str]]) -> ObjectStore:
    """Return the process's client of a bucket.

    `bucket` is the part of the path between its scheme and the first slash: with Azure
    `container@account.host`. Raises UnsupportedError for a scheme that is not in `SCHEMES`,
    ConfigError for options that the store's client refuses.
    """
    family = SCHEMES.get(scheme)
    if family is None:
        raise UnsupportedError(f"{scheme}://{bucket}: there is no store for this scheme")
    try:
        return _MAKERS[family.title](bucket, _config(family, options))
    except BaseError as error:
        message = f"{scheme}://{bucket}: {failure_text(error)}; check the options of the store"
        raise ConfigError(message) from error


def failure_text(error: BaseException) -> str:
    """Return the message of the library, shortened and without its dump of the request.

    The message repeats the server's answer, which may be of any size.
    """
    return shown(str(error).partition("\n\nDebug source")[0].strip(), _MOST_SAID)


def _config(family: Family, options: frozenset[tuple[str, str]]) -> dict[str, str]:
    named = ((client_name(family, name), value) for name, value in options)
    return {name: value for name, value in named if name is not None}


def _s3(bucket: str, config: dict[str, str]) -> ObjectStore:
    style = "virtual_hosted_style_request"
    if style in config:
        config[style] = "false" if config[style].lower() == "true" else "true"
    if not any(os.environ.get(name) for name in _REGION):
        config.setdefault("region", "us-east-1")
    given: Any = config
    plain = _plain(config.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", ""))
    return S3Store(bucket, config=given, client_options=plain, retry_config=_RETRIES)


def _gcs(bucket: str, config: dict[str, str]) -> ObjectStore:
    """Open a GCS bucket; plain HTTP is allowed, as a key file may name an emulator."""
    given: Any = config
    return GCSStore(bucket, config=given, client_options=_PLAIN, retry_config=_RETRIES)


def _azure(address: str, config: dict[str, str]) -> ObjectStore:
    container, _, host = address.partition("@")
    if host:
        config["account_name"] = host.partition(".")[0]
    endpoint = next((os.environ[name] for name in _AZURE_ENDPOINT if os.environ.get(name)), "")
    if endpoint:
        config["endpoint"] = endpoint
    given: Any = config
    plain = _plain(endpoint)
    return AzureStore(container, config=given, client_options=plain, retry_config=_RETRIES)


def _plain(endpoint: str) -> Any:  # noqa: ANN401  (a type of the library's stubs alone)
    return _PLAIN if endpoint.startswith("http://") else None


_MAKERS: Mapping[str, Callable[[str, dict[str, str]], ObjectStore]] = {
    S3.title: _s3,
    GCS.title: _gcs,
    AZURE.title: _azure,
}
