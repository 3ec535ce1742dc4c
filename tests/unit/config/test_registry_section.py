from pathlib import Path

import pytest

from ingestd import log
from ingestd.cdc.schema_lookup import Framing
from ingestd.config.effective import effective_settings, plain_secret_settings
from ingestd.config.load import LoadedConfig, load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError
from ingestd.kafka.registry_tokens import TokenClient
from ingestd.kafka.schema_registry import SchemaRegistry

FILE = """
warehouse: {path: lake}
sources:
  shop:
    kafka: {bootstrap.servers: localhost:9092}
    topics: [orders]
    format: FORMAT
    schema-registry: REGISTRY
"""
FULL = """{url: "https://a:1, https://b:2", basic-auth-user-info: "${env:INFO}",
      ssl-ca-location: ca.pem, ssl-certificate-location: /own.pem, ssl-key-password: hunter23,
      timeout: 3s, retry-timeout: 2min, cache-capacity: 9, id-location: auto, id-bytes: 8}"""

OAUTH = """{url: 'https://a', bearer-auth-credentials-source: OAUTHBEARER,
      bearer-auth-issuer-endpoint-url: 'https://issuer/token', bearer-auth-client-id: me,
      bearer-auth-client-secret: "${env:SECRET}", bearer-auth-scope: s, ssl-ca-location: ca.pem,
      bearer-auth-logical-cluster: lsrc-1, bearer-auth-identity-pool-id: pool-1}"""


def loaded(
    folder: Path, registry: str, data_format: str = "debezium-avro", **more: str
) -> LoadedConfig:
    path = folder / "f.yaml"
    path.write_text(FILE.replace("REGISTRY", registry).replace("FORMAT", data_format))
    return load_config(path, {"INFO": "me:hunter22", **more})


def test_the_client_gets_all_that_the_file_says(tmp_path: Path) -> None:
    source = pipeline_settings(loaded(tmp_path, FULL)).sources["shop"]
    assert source.format_settings.framing == Framing("auto", 8)
    assert source.format_settings.framing.needs_headers
    registry = source.format_settings.schemas
    assert isinstance(registry, SchemaRegistry)
    found = registry.settings
    assert found.urls == ("https://a:1", "https://b:2")
    assert (found.user_info, found.key_password) == ("me:hunter22", "hunter23")
    assert found.ca_location == str(tmp_path / "ca.pem")
    assert found.certificate_location == "/own.pem"
    assert (found.timeout_seconds, found.retry_seconds, found.cache_capacity) == (3.0, 120.0, 9)
    assert "hunter" not in repr(source)


def test_the_client_of_a_token_endpoint_gets_all_that_the_file_says(tmp_path: Path) -> None:
    config = loaded(tmp_path, OAUTH, SECRET="hunter25")
    registry = pipeline_settings(config).sources["shop"].format_settings.schemas
    assert isinstance(registry, SchemaRegistry)
    settings = registry.settings
    ca_location = str(tmp_path / "ca.pem")
    client = TokenClient("https://issuer/token", "me", "hunter25", "s", ca_location)
    assert settings.token_client == client
    assert (settings.logical_cluster, settings.identity_pool) == ("lsrc-1", "pool-1")
    shown = {setting.key: setting.value for setting in effective_settings(config)}
    prefix = "sources.shop.schema-registry.bearer-auth-"
    assert shown[prefix + "client-secret"] == "${env:SECRET}"
    assert shown[prefix + "credentials-source"] == "OAUTHBEARER"
    assert "hunter" not in repr(settings)
    static = "{url: 'http://a', bearer-auth-credentials-source: STATIC_TOKEN, bearer-auth-token: t}"
    assert loaded(tmp_path, static)


@pytest.mark.parametrize(
    ("registry", "id_kind"),
    [
        ("{url: 'http://a/apis/registry/v2'}", "globalIds"),
        ("{url: 'http://a/apis/registry/v3/'}", "contentIds"),
        ("{url: 'http://a/proxied/apis/registry/v3', use-id: globalId}", "globalIds"),
    ],
)
def test_an_address_of_apicurio_selects_its_protocol(
    tmp_path: Path, registry: str, id_kind: str
) -> None:
    source = pipeline_settings(loaded(tmp_path, registry)).sources["shop"]
    assert source.format_settings.framing == Framing("prefix", 4, is_apicurio=True)
    registered = source.format_settings.schemas
    assert isinstance(registered, SchemaRegistry)
    assert registered.settings.apicurio_api and registered.settings.id_kind == id_kind


def test_secrets_are_shown_as_references_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "_secrets", {})
    config = loaded(tmp_path, FULL.replace("${env:INFO}", "me:hunter24"))
    shown = {
        effective_setting.key: effective_setting.value
        for effective_setting in effective_settings(config)
    }
    prefix = "sources.shop.schema-registry."
    assert shown[prefix + "url"] == '["https://a:1", "https://b:2"]'
    assert shown[prefix + "basic-auth-user-info"] == log.MASK
    assert shown[prefix + "ssl-key-password"] == log.MASK
    assert "hunter" not in str(shown)
    assert len(plain_secret_settings(config)) == 2
    referred = {
        effective_setting.key: effective_setting.value
        for effective_setting in effective_settings(loaded(tmp_path, FULL))
    }
    assert referred[prefix + "basic-auth-user-info"] == "${env:INFO}"


def test_the_environment_can_give_every_value(tmp_path: Path) -> None:
    more = {
        "INGESTD__SOURCES__SHOP__SCHEMA_REGISTRY__ID_BYTES": "8",
        "INGESTD__SOURCES__SHOP__SCHEMA_REGISTRY__RETRY_TIMEOUT": "5s",
    }
    config = loaded(tmp_path, "{url: 'http://a:1'}", **more)
    section = config.config.sources["shop"].schema_registry
    assert (section.id_bytes, section.retry_timeout) == (8, 5.0)


@pytest.mark.parametrize(
    ("registry", "said"),
    [
        ("{}", "needed"),
        ("{timeout: 3s}", "needed"),
        ("{url: nowhere}", "not an address"),
        ("{url: 'http://a', bearer-auth-token: x, basic-auth-user-info: 'a:b'}", "set only one of"),
        ("{url: 'http://a', bearer-auth-credentials-source: OAUTHBEARER}", "requires"),
        ("{url: 'http://a', bearer-auth-credentials-source: STATIC_TOKEN}", "requires"),
        ("{url: 'http://a', bearer-auth-client-id: me}", "require"),
        ("{url: 'http://a', bearer-auth-logical-cluster: lsrc-1}", "require a bearer token"),
        ("{url: 'http://a', bearer-auth-credentials-source: CUSTOM}", "STATIC_TOKEN"),
        (OAUTH.replace("https://issuer/token", "issuer"), "issuer-endpoint-url' is not an address"),
        (OAUTH.replace("scope: s", "token: t"), "set only one of"),
        ("{url: 'https://glue.eu-west-1.amazonaws.com'}", "AWS Glue .* not supported; let the"),
        ("{url: 'arn:aws:glue:eu-west-1:1:registry/r'}", "AWS Glue .* not supported"),
        ("{url: 'http://a', use-id: globalId}", "requires a 'url' of Apicurio's API"),
        ("{url: 'http://a, http://a/apis/registry/v3'}", "must have the same API"),
        ("{url: 'http://a', id-bytes: 5}", "id-bytes"),
        ("{url: 'http://a', urll: 'http://b'}", "urll"),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(
    tmp_path: Path, registry: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        loaded(tmp_path, registry)


def test_a_registry_for_bytes_as_they_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not used by the data format 'raw'"):
        loaded(tmp_path, "{url: 'http://a'}", "raw")


def test_settings_without_an_address_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        loaded(tmp_path, "{timeout: 3s}", "debezium-json")


def test_other_formats_need_no_registry(tmp_path: Path) -> None:
    config = loaded(tmp_path, "{}", "debezium-json")
    assert pipeline_settings(config).sources["shop"].format_settings.schemas is None
