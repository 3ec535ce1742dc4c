"""Sources and the client properties made of them."""

import json
from importlib.util import find_spec

import pytest

from ingestd.errors import ConfigError
from ingestd.kafka import properties
from ingestd.kafka.properties import (
    KafkaSource,
    admin_properties,
    check_properties,
    consumer_properties,
    msk_region,
    producer_properties,
)

SERVERS = {"bootstrap.servers": "a:9092"}


def test_explicit_topics_are_taken_by_name_and_patterns_match_whole_names() -> None:
    names = ["shop.orders", "shop.orders_old", "shop.items", "x.shop.items"]
    explicit = KafkaSource("s", ("shop.items", "later"), properties=SERVERS)
    assert explicit.selected(names) == ["shop.items"]
    pattern = KafkaSource("s", (), r"shop\..*", ("shop.orders_old",), SERVERS)
    assert pattern.selected(names) == ["shop.items", "shop.orders"]


def test_a_source_survives_a_json_document() -> None:
    source = KafkaSource("s", ("a", "b"), None, ("c",), SERVERS, "latest-offset", "earliest")
    assert KafkaSource.from_document(json.loads(json.dumps(source.to_document()))) == source


def test_user_properties_win_where_they_may() -> None:
    source = KafkaSource(
        "shop", ("t",), properties={**SERVERS, "fetch.wait.max.ms": "77", "group.id": "mine"}
    )
    properties = consumer_properties(source)
    assert properties["fetch.wait.max.ms"] == "77"
    assert properties["group.id"] == "mine"
    assert properties["isolation.level"] == "read_committed"
    assert properties["enable.auto.commit"] == "false"


def test_the_group_is_named_after_the_source_by_default() -> None:
    source = KafkaSource("shop", ("t",), properties=SERVERS)
    assert consumer_properties(source)["group.id"] == "ingestd-shop"


@pytest.mark.parametrize("name", ["isolation.level", "enable.auto.commit", "auto.offset.reset"])
def test_properties_that_would_break_exactness_are_refused(name: str) -> None:
    source = KafkaSource("shop", ("t",), properties={**SERVERS, name: "x"})
    with pytest.raises(ConfigError, match=rf"sources\.shop\.kafka: {name} cannot be set"):
        consumer_properties(source)


def test_missing_servers_are_named() -> None:
    with pytest.raises(ConfigError, match=r"sources\.shop\.kafka: bootstrap\.servers is missing"):
        admin_properties(KafkaSource("shop", ("t",)))


def test_an_admin_client_gets_no_consumer_properties() -> None:
    given = {**SERVERS, "fetch.max.bytes": "1", "security.protocol": "SSL", "group.id": "g"}
    properties = admin_properties(KafkaSource("s", ("t",), properties=given))
    assert properties["security.protocol"] == "SSL"
    assert not {"fetch.max.bytes", "group.id"} & properties.keys()


def test_a_source_with_places_survives_its_document() -> None:
    one = KafkaSource(
        "s",
        ("t",),
        properties={"bootstrap.servers": "a:1"},
        startup_mode="specific-offsets",
        startup_offsets={"t": {0: 4, 11: 5}},
        bounded_mode="timestamp",
        bounded_timestamp=9,
    )
    assert KafkaSource.from_document(json.loads(json.dumps(one.to_document()))) == one
    assert one.is_bounded
    assert one.group == "ingestd-s"


def test_a_producer_is_idempotent_whatever_the_properties_say() -> None:
    given = {"bootstrap.servers": "a:1", "group.id": "g", "acks": "0", "client.id": "me"}
    found = producer_properties(KafkaSource("s", ("t",), properties=given))
    assert (found["acks"], found["enable.idempotence"], found["client.id"]) == ("all", "true", "me")
    assert "group.id" not in found


@pytest.mark.parametrize(
    "way", [{"sasl.oauthbearer.method": "OIDC"}, {"enable.sasl.oauthbearer.unsecure.jwt": "true"}]
)
def test_oauth_needs_a_way_to_its_tokens(way: dict[str, str]) -> None:
    told = {"bootstrap.servers": "a:1", "security.protocol": "sasl_ssl"}
    told["sasl.mechanisms"] = "OAUTHBEARER"
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.token\.endpoint\.url"):
        check_properties(KafkaSource("shop", ("t",), properties=told))
    check_properties(KafkaSource("shop", ("t",), properties={**told, **way}))


AWS = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.metadata.authentication.type": "aws_iam",
    "sasl.oauthbearer.config": "region=eu-west-1,audience=https://example.org",
}


def test_a_sign_in_whose_extra_is_not_installed_is_an_error_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = KafkaSource("shop", ("t",), properties={**SERVERS, **AWS})
    monkeypatch.setattr(properties, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"package boto3: pip install 'ingestd\[aws\]'"):
        check_properties(source)
    monkeypatch.setattr(properties, "find_spec", lambda _: find_spec("json"))
    check_properties(source)


MSK = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}
BROKER = "b-1.shop.c2.kafka.eu-central-1.amazonaws.com:9098"


@pytest.mark.parametrize(
    ("given", "region"),
    [
        ({"bootstrap.servers": BROKER}, "eu-central-1"),
        (
            {"bootstrap.servers": "boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098"},
            "us-east-1",
        ),
        ({"bootstrap.servers": BROKER, "sasl.oauthbearer.config": "region=eu-west-1"}, "eu-west-1"),
    ],
)
def test_the_region_of_a_cluster_is_stated_or_part_of_its_name(
    given: dict[str, str], region: str
) -> None:
    source = KafkaSource("shop", ("t",), properties={**MSK, **given})
    check_properties(source)
    assert msk_region(source) == region
    for made in (consumer_properties, admin_properties, producer_properties):
        assert made(source)["sasl.mechanism"] == "OAUTHBEARER"
        assert "sasl.oauthbearer.config" not in made(source)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bootstrap.servers": "broker.example.org:9098"}, "region=eu-central-1"),
        ({"sasl.oauthbearer.config": "region=eu-west-1,audience=x"}, "region=eu-central-1"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "security.protocol: SASL_SSL"),
        ({"sasl.oauthbearer.method": "oidc"}, "remove sasl.oauthbearer.method"),
    ],
)
def test_amazon_msk_without_what_it_needs_is_refused(given: dict[str, str], words: str) -> None:
    source = KafkaSource("shop", ("t",), properties={"bootstrap.servers": BROKER, **MSK, **given})
    with pytest.raises(ConfigError, match=words):
        check_properties(source)


@pytest.mark.parametrize("name", ["oauth_cb", "error_cb", "on_commit", "stats_cb", "logger"])
def test_functions_of_python_are_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} is a Python function"):
        check_properties(KafkaSource("shop", ("t",), properties={**SERVERS, name: "module.f"}))
