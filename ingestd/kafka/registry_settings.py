"""Addresses, credentials and timeouts of a schema registry, and their checks."""

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from ingestd.cdc.schema_lookup import GLUE_WAY_OUT
from ingestd.errors import ConfigError
from ingestd.kafka.registry_tokens import TokenClient

IdKind = Literal["contentId", "globalId"]
_APICURIO = re.compile(r"/apis/registry/v([23])/?$")
_GLOBAL_BY_DEFAULT = 2
"""The version of Apicurio's API whose serializers use global ids by default."""
_GLUE = re.compile(r"^arn:aws[\w-]*:glue:|\bglue[\w.-]*\.amazonaws\.com\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Addresses, credentials and timeouts of a schema registry.

    `urls` are tried in turn. `user_info` is `user:password`; `bearer_file` is read again for each
    request. `logical_cluster` and `identity_pool` are sent with a bearer token. `timeout_seconds`
    is the timeout of one request, from its first byte to the last byte of the response. The larger
    of `timeout_seconds` and `retry_seconds` is the timeout of one look-up: all requests for a
    schema and its references. `cache_capacity` is the maximum number of cached schemas. `used_id`
    is the kind of id that Apicurio's serializers write into messages; None is their default.
    """

    urls: tuple[str, ...]
    user_info: str | None = field(default=None, repr=False)
    bearer: str | None = field(default=None, repr=False)
    bearer_file: str | None = None
    token_client: TokenClient | None = None
    logical_cluster: str | None = None
    identity_pool: str | None = None
    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: str | None = field(default=None, repr=False)
    timeout_seconds: float = 10.0
    retry_seconds: float = 60.0
    cache_capacity: int = 10_000
    used_id: IdKind | None = None

    @property
    def lookup_seconds(self) -> float:
        """The timeout of one look-up in seconds."""
        return max(self.retry_seconds, self.timeout_seconds)

    @property
    def apicurio_api(self) -> int | None:
        """The version of Apicurio's API at the first of `urls`; None if it has Confluent's API."""
        return _api_of(self.urls[0])

    @property
    def id_kind(self) -> str:
        """The kind of numeric ids, as Apicurio's API names it: `contentIds` or `globalIds`.

        If `used_id` is None, it is `globalIds` for version 2 of the API, otherwise `contentIds`.
        """
        by_default: IdKind = "globalId" if self.apicurio_api == _GLOBAL_BY_DEFAULT else "contentId"
        return f"{self.used_id or by_default}s"


def _api_of(url: str) -> int | None:
    match = _APICURIO.search(urlsplit(url).path)
    return None if match is None else int(match[1])


def check_registry(settings: RegistrySettings) -> None:
    """Raise ConfigError for invalid or contradictory settings."""
    if not settings.urls:
        raise ConfigError("schema-registry: 'url' is required")
    for url in settings.urls:
        _check_address(url, "url", "set 'basic-auth-user-info' instead")
    if len(set(map(_api_of, settings.urls))) > 1:
        raise ConfigError("schema-registry: all addresses of 'url' must have the same API")
    if settings.used_id is not None and settings.apicurio_api is None:
        raise ConfigError(
            "schema-registry: 'use-id' requires a 'url' of Apicurio's API, which ends in "
            "/apis/registry/v2 or /apis/registry/v3"
        )
    _check_credentials(settings)
    if settings.key_location and not settings.certificate_location:
        raise ConfigError("schema-registry: 'ssl-key-location' requires 'ssl-certificate-location'")


def _check_credentials(settings: RegistrySettings) -> None:
    client = settings.token_client
    if client is not None:
        key = "bearer-auth-issuer-endpoint-url"
        _check_address(client.url, key, "set 'bearer-auth-client-secret' instead")
    ways = (settings.user_info, settings.bearer, settings.bearer_file, client)
    if sum(way is not None for way in ways) > 1:
        raise ConfigError(
            "schema-registry: set only one of 'basic-auth-user-info', 'bearer-auth-token', "
            "'bearer-auth-file' and 'bearer-auth-credentials-source: OAUTHBEARER'"
        )
    if settings.user_info is not None and ":" not in settings.user_info:
        raise ConfigError("schema-registry: 'basic-auth-user-info' must be 'user:password'")
    if (settings.logical_cluster or settings.identity_pool) and all(
        way is None for way in ways[1:]
    ):
        raise ConfigError(
            "schema-registry: 'bearer-auth-logical-cluster' and 'bearer-auth-identity-pool-id' "
            "require a bearer token"
        )


def _check_address(url: str, key: str, instead: str) -> None:
    if _GLUE.search(url):
        raise ConfigError(
            "schema-registry: the AWS Glue Schema Registry is not supported; " + GLUE_WAY_OUT
        )
    split_url = urlsplit(url)
    if split_url.scheme not in ("http", "https") or not split_url.hostname:
        raise ConfigError(f"schema-registry: '{key}' is not an address; write https://host:port")
    if split_url.username or split_url.password:
        raise ConfigError(f"schema-registry: '{key}' contains credentials; {instead}")
