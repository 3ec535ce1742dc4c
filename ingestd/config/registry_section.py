"""The section `schema-registry` of a source, and the client settings built from it."""

from pathlib import Path as FilePath
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ingestd.cdc.base import FormatSettings
from ingestd.cdc.schema_lookup import Framing
from ingestd.config.section import Section
from ingestd.config.values import Duration, Names
from ingestd.errors import ConfigError
from ingestd.kafka.registry_settings import RegistrySettings
from ingestd.kafka.registry_tokens import TokenClient
from ingestd.kafka.schema_registry import SchemaRegistry


def _number(value: object) -> object:
    """Convert a text of digits to a number: values of environment variables are texts."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


class SchemaRegistrySection(Section):
    """The schema registry that stores the schemas of messages."""

    url: Names = Field(
        default=(),
        description="Address of the registry, or several that are tried in turn. For messages of "
        "Apicurio's own serializers and converters it ends in `/apis/registry/v2` or "
        "`/apis/registry/v3`, for those of Confluent's in `/apis/ccompat/v7`. Formats in Avro and "
        "Protobuf need it; with it, JSON formats remove the schema id that precedes a message.",
    )
    basic_auth_user_info: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="`user:password`; write `${env:NAME}` or `${file:PATH}`.",
    )
    bearer_auth_token: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="Bearer token; write `${env:NAME}` or `${file:PATH}`.",
    )
    bearer_auth_file: str | None = Field(
        default=None, min_length=1, description="File with the bearer token, read for each request."
    )
    bearer_auth_credentials_source: Literal["STATIC_TOKEN", "OAUTHBEARER"] | None = Field(
        default=None,
        description="Origin of the bearer token, as for Confluent's clients: `STATIC_TOKEN`, which "
        "is `bearer-auth-token` or `bearer-auth-file`, or `OAUTHBEARER`, a token endpoint that is "
        "asked with the client credentials grant. Such a token is renewed after 80 % of its "
        "lifetime, and once if the registry answers 401.",
    )
    bearer_auth_issuer_endpoint_url: str | None = Field(
        default=None, min_length=1, description="Address of the token endpoint (`OAUTHBEARER`)."
    )
    bearer_auth_client_id: str | None = Field(
        default=None, min_length=1, description="Client id (`OAUTHBEARER`)."
    )
    bearer_auth_client_secret: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="Client secret (`OAUTHBEARER`); write `${env:NAME}` or `${file:PATH}`.",
    )
    bearer_auth_scope: str | None = Field(
        default=None, min_length=1, description="Scope of the token (`OAUTHBEARER`)."
    )
    bearer_auth_logical_cluster: str | None = Field(
        default=None,
        min_length=1,
        description="Logical cluster of the registry in Confluent Cloud, such as `lsrc-abc12`, "
        "sent with the token.",
    )
    bearer_auth_identity_pool_id: str | None = Field(
        default=None,
        min_length=1,
        description="Identity pool in Confluent Cloud, such as `pool-abc`, sent with the token.",
    )
    ssl_ca_location: str | None = Field(
        default=None,
        min_length=1,
        description="File with trusted CA certificates; by default those of the system.",
    )
    ssl_certificate_location: str | None = Field(
        default=None,
        min_length=1,
        description="File with the client certificate (mTLS).",
    )
    ssl_key_location: str | None = Field(
        default=None,
        min_length=1,
        description="File with the private key of the client certificate, if it is a separate "
        "file.",
    )
    ssl_key_password: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="Password of the private key; write `${env:NAME}` or `${file:PATH}`.",
    )
    timeout: Duration = Field(
        default=10.0, gt=0, description="Maximum duration of one request, including its response."
    )
    retry_timeout: Duration = Field(
        default=60.0,
        ge=0,
        description="How long a task retries during an outage before the batch fails and is run "
        "again. No record is rejected because the registry is unavailable. A schema "
        "with all its references must be read within this time, or within `timeout` "
        "if that is longer.",
    )
    cache_capacity: int = Field(
        default=10_000, ge=1, description="Maximum number of schemas that a process caches."
    )
    id_location: Literal["prefix", "header", "auto"] = Field(
        default="prefix",
        description="Location of the schema id in messages: `prefix`, before the body; "
        "`header`, in the headers `__key_schema_id` and `__value_schema_id`, or those of Apicurio "
        "(`apicurio.value.contentId` and the like); `auto`, in the headers if present. Headers "
        "make reading slower.",
    )
    id_bytes: Annotated[Literal[4, 8], BeforeValidator(_number)] = Field(
        default=4,
        description="Size of the schema id before the body: 4 bytes, or 8 as serializers of "
        "Apicurio 2 write by default.",
    )
    use_id: Literal["contentId", "globalId"] | None = Field(
        default=None,
        description="Kind of the schema ids before the body of Apicurio's messages, as "
        "`apicurio.registry.use-id` of the producers; by default `globalId` for a `url` with "
        "`/apis/registry/v2`, `contentId` for `/apis/registry/v3`. Headers state it.",
    )


def registry_settings(section: SchemaRegistrySection, folder: FilePath) -> RegistrySettings:
    """Return the settings of the registry client; relative paths are resolved against `folder`.

    Raises ConfigError if keys for the bearer token are missing or contradict each other.
    """

    def located(path: str | None) -> str | None:
        return None if path is None else str(folder / path)

    return RegistrySettings(
        urls=section.url,
        user_info=section.basic_auth_user_info,
        bearer=section.bearer_auth_token,
        bearer_file=located(section.bearer_auth_file),
        token_client=_token_client(section, located(section.ssl_ca_location)),
        logical_cluster=section.bearer_auth_logical_cluster,
        identity_pool=section.bearer_auth_identity_pool_id,
        ca_location=located(section.ssl_ca_location),
        certificate_location=located(section.ssl_certificate_location),
        key_location=located(section.ssl_key_location),
        key_password=section.ssl_key_password,
        timeout_seconds=section.timeout,
        retry_seconds=section.retry_timeout,
        cache_capacity=section.cache_capacity,
        used_id=section.use_id,
    )


def _token_client(section: SchemaRegistrySection, ca_location: str | None) -> TokenClient | None:
    """Return the client of the token endpoint, or None if the token does not come from one.

    Raises ConfigError if keys are missing, or are for another source of the token.
    """
    source = section.bearer_auth_credentials_source
    url, client_id = section.bearer_auth_issuer_endpoint_url, section.bearer_auth_client_id
    secret = section.bearer_auth_client_secret
    if source == "OAUTHBEARER":
        if url is None or client_id is None or secret is None:
            raise ConfigError(
                "schema-registry: 'bearer-auth-credentials-source: OAUTHBEARER' requires "
                "'bearer-auth-issuer-endpoint-url', 'bearer-auth-client-id' and "
                "'bearer-auth-client-secret'"
            )
        return TokenClient(url, client_id, secret, section.bearer_auth_scope, ca_location)
    if any((url, client_id, secret, section.bearer_auth_scope)):
        raise ConfigError(
            "schema-registry: credentials of an OAuth client require "
            "'bearer-auth-credentials-source: OAUTHBEARER'"
        )
    if source == "STATIC_TOKEN" and not (section.bearer_auth_token or section.bearer_auth_file):
        raise ConfigError(
            "schema-registry: 'bearer-auth-credentials-source: STATIC_TOKEN' requires "
            "'bearer-auth-token' or 'bearer-auth-file'"
        )
    return None


def registered_formats(section: SchemaRegistrySection, folder: FilePath) -> FormatSettings:
    """Return the settings to look up the schemas of messages; without a URL they are empty.

    Relative paths are resolved against `folder`. Raises ConfigError if keys for the bearer token
    are missing or contradict each other.
    """
    if not section.url:
        return FormatSettings()
    settings = registry_settings(section, folder)
    is_apicurio = settings.apicurio_api is not None
    framing = Framing(section.id_location, section.id_bytes, is_apicurio)
    return FormatSettings(schemas=SchemaRegistry(settings), framing=framing)
