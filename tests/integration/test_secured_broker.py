"""Brokers that want to know who asks: each mechanism reads, and a refusal says what to mend."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from confluent_kafka import TopicPartition

from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError, IngestdError, SourceError
from ingestd.kafka.consumer_group import ConsumerGroup
from ingestd.kafka.consumer_pool import borrow_consumer, close_consumers
from ingestd.kafka.fetch import fetch_all
from ingestd.kafka.log_checks import divergences
from ingestd.kafka.native_reader import NativeKafkaReader
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.producer import Outgoing
from ingestd.kafka.producer import produce as send
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.python_reader import PythonReader
from tests.support.certificates import HAS_OPENSSL, Authority
from tests.support.kafka_broker import produce
from tests.support.secured_broker import (
    AWS_KEY,
    PASSWORD,
    USER,
    Secured,
    secured_broker,
)
from tests.support.token_endpoint import CLIENT, CLIENT_SECRET, TokenEndpoint, unsigned_token

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not HAS_OPENSSL, reason="makes certificates with openssl"),
]
TOPIC = "guarded"
RECORDS = 20
Properties = Mapping[str, str]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        running.broker.create_topic(TOPIC)
        produce(running.broker, TOPIC, [(None, str(index).encode()) for index in range(RECORDS)])
        yield running
    close_consumers()


@pytest.fixture(scope="module")
def tokens() -> Iterator[TokenEndpoint]:
    with TokenEndpoint() as running:
        yield running


def source(
    secured: Secured,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    listener: str,
    properties: Properties,
) -> KafkaSource:
    """The source as the daemon has it: from a file that only refers to its secrets."""
    monkeypatch.setenv("SECURED_USER", USER)
    (folder / "password").write_text(PASSWORD + "\n")
    (folder / "oauth").write_text(CLIENT_SECRET)
    kafka = {"bootstrap.servers": secured.broker.address(listener), **properties}
    document: dict[str, Any] = {
        "warehouse": {"path": str(folder / "warehouse")},
        "sources": {"shop": {"kafka": kafka, "topics": [TOPIC], "format": "raw"}},
    }
    (folder / "pipeline.yaml").write_text(yaml.safe_dump(document))
    return pipeline_settings(load_config(folder / "pipeline.yaml")).sources["shop"].kafka


def sasl(mechanism: str, password: str = "${file:password}") -> dict[str, str]:
    user = {"sasl.username": "${env:SECURED_USER}", "sasl.password": password}
    return {"sasl.mechanism": mechanism, **user}


def oidc(url: str, secret: str = "${file:oauth}") -> dict[str, str]:
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": CLIENT,
        "sasl.oauthbearer.client.secret": secret,
        "sasl.oauthbearer.token.endpoint.url": url,
    }


UNSIGNED = {
    "sasl.mechanism": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": "true",
    "sasl.oauthbearer.config": f"principal={USER} lifeSeconds=60",
}


def read(source: KafkaSource, *, headers: bool) -> list[bytes | None]:
    wanted = OffsetRange(source.name, TOPIC, 0, 0, RECORDS)
    chunks = fetch_all(source, [wanted], max_records=100, max_bytes=1 << 20, headers=headers)
    return [value for chunk in chunks for value in chunk.values]


@pytest.mark.parametrize(
    ("listener", "way"),
    [
        ("SASL", sasl("PLAIN")),
        ("SASL", sasl("SCRAM-SHA-256")),
        ("SASL", sasl("SCRAM-SHA-512")),
        ("SASL", UNSIGNED),
        ("SASLS", sasl("PLAIN")),
        ("SASLS", sasl("SCRAM-SHA-256")),
        ("SASLS", sasl("SCRAM-SHA-512")),
        ("SASLS", {"sasl.mechanism": "OAUTHBEARER"}),
        ("TLS", {}),
        ("MTLS", {"ssl.key.password": "${file:password}"}),
    ],
    ids=lambda one: one if isinstance(one, str) else one.get("sasl.mechanism", "certificate"),
)
def test_records_are_read_by_every_mechanism(
    secured: Secured,
    tokens: TokenEndpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    listener: str,
    way: dict[str, str],
) -> None:
    if way == {"sasl.mechanism": "OAUTHBEARER"}:
        way = oidc(tokens.url)
    if listener == "MTLS":
        way = {**way, "ssl.certificate.location": str(secured.client.certificate)}
        way["ssl.key.location"] = str(secured.client.key)
    one = source(secured, tmp_path, monkeypatch, listener, {**protocol(secured, listener), **way})
    assert OffsetClient(one).end_offsets({TOPIC: (0,)}) == {TOPIC: {0: RECORDS}}
    wanted = [str(number).encode() for number in range(RECORDS)]
    for headers in (False, True):  # by the native reader, and by the Python client
        assert read(one, headers=headers) == wanted


def msk(**more: str) -> dict[str, str]:
    config = {"sasl.oauthbearer.config": "region=eu-west-1"}
    return {"sasl.mechanism": "AWS_MSK_IAM", **config, **more}


def test_amazon_msk_is_read_and_written_with_the_credentials_of_the_process(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in AWS_KEY.items():
        monkeypatch.setenv(name, value)
    way = {**protocol(secured, "MSK"), **msk()}
    one = source(secured, tmp_path, monkeypatch, "MSK", way)
    assert OffsetClient(one).end_offsets({TOPIC: (0,)}) == {TOPIC: {0: RECORDS}}
    for headers in (False, True):
        assert read(one, headers=headers) == [str(number).encode() for number in range(RECORDS)]
    assert divergences(one, {(TOPIC, 0): (RECORDS, 0)}, 30.0) == {}
    group = ConsumerGroup(one, "msk", 30.0)
    group.commit([TopicPartition(TOPIC, 0, 7)])
    assert group.committed([TopicPartition(TOPIC, 0)])[0].offset == 7
    group.close()
    secured.broker.create_topic("msk-letters")
    assert send(one, "msk-letters", [Outgoing(None, b"letter")]) == 1


def signed_in_by_python(
    secured: Secured, folder: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], object]
) -> KafkaSource:
    """A source whose client asks `ask` for tokens, in place of a service of AWS."""
    asked = SimpleNamespace(create_handler=lambda *_: ask)
    monkeypatch.setitem(sys.modules, "confluent_kafka._oauthbearer.aws.aws_autowire", asked)
    way = {**UNSIGNED, **protocol(secured, "SASL"), "sasl.oauthbearer.method": "oidc"}
    del way["enable.sasl.oauthbearer.unsecure.jwt"]
    way["sasl.oauthbearer.metadata.authentication.type"] = "aws_iam"
    return source(secured, folder, monkeypatch, "SASL", way)


def test_tokens_computed_in_python_reach_both_readers_and_are_renewed_while_idle(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: SimpleQueue[str] = SimpleQueue()

    def ask(config: str) -> tuple[str, float, str, dict[str, str]]:
        asked.put(config)
        return unsigned_token(60.0, USER), time.time() + 2, USER, {"trace": "7"}

    one = signed_in_by_python(secured, tmp_path, monkeypatch, ask)
    assert OffsetClient(one).end_offsets({TOPIC: (0,)}) == {TOPIC: {0: RECORDS}}
    for headers, reader in ((False, NativeKafkaReader), (True, PythonReader)):
        with borrow_consumer(one, headers=headers) as pooled:
            assert isinstance(pooled.reader, reader)
        assert read(one, headers=headers) == [str(number).encode() for number in range(RECORDS)]
        close_consumers()
    with borrow_consumer(one):
        pass
    while not asked.empty():
        asked.get()
    assert asked.get(timeout=120) == UNSIGNED["sasl.oauthbearer.config"]
    close_consumers()


def test_why_there_is_no_token_is_in_the_error_and_in_the_log(
    secured: Secured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def ask(_: str) -> tuple[str, float, str, dict[str, str]]:
        raise RuntimeError("the role may not ask")

    one = signed_in_by_python(secured, tmp_path, monkeypatch, ask)
    with pytest.raises(SourceError, match="the role may not ask") as caught:
        read(one, headers=False)
    assert "the AWS role of this process" in caught.value.message
    [record, *_] = [record for record in caplog.records if record.message == "kafka_token_failed"]
    assert "the role may not ask" in vars(record)["ctx"]["error"]


def protocol(secured: Secured, listener: str) -> dict[str, str]:
    if listener == "SASL":
        return {"security.protocol": "SASL_PLAINTEXT"}
    name = "SASL_SSL" if listener in {"SASLS", "MSK"} else "SSL"
    return {"security.protocol": name, "ssl.ca.location": str(secured.authority.path)}


REFUSALS: list[tuple[str, str, dict[str, str], list[str]]] = [
    ("password", "SASL", sasl("PLAIN", "wrong-7"), ["SASL_PLAINTEXT PLAIN", "sasl.password"]),
    (
        "scram",
        "SASLS",
        sasl("SCRAM-SHA-512", "wrong-7"),
        ["SASL_SSL SCRAM-SHA-512", "invalid credentials", "sasl.password"],
    ),
    (
        "oauth-secret",
        "SASLS",
        {"secret": "wrong-7"},
        ["SASL_SSL OAUTHBEARER", "invalid_client", "token.endpoint.url"],
    ),
    ("authority", "TLS", {"ssl.ca.location": "OTHER"}, ["issuer certificate", "ssl.ca.location"]),
    ("expired", "EXPIRED", {}, ["certificate has expired", "install a valid certificate"]),
    ("name", "OTHER", {}, ["mismatch", "bootstrap.servers"]),
    ("no-certificate", "MTLS", {}, ["mTLS", "ssl.certificate.location", "ssl.key.location"]),
]


@dataclass(frozen=True)
class Refused:
    """A source that is not let in, and what asking, reading in both ways and writing said of it."""

    source: KafkaSource
    told: list["Future[BaseException | None]"]


@pytest.fixture(scope="module")
def refused(
    secured: Secured, tokens: TokenEndpoint, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Refused]]:
    """All cases at a time: each of them waits for its broker, and costs next to nothing."""
    found = {}
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4 * len(REFUSALS)) as pool:
        for name, listener, way, _ in REFUSALS:
            folder = tmp_path_factory.mktemp(name)
            properties = {**protocol(secured, listener), **way}
            if "secret" in way:
                properties |= oidc(tokens.url, properties.pop("secret"))
            if way.get("ssl.ca.location"):
                properties["ssl.ca.location"] = str(Authority(folder / "other").path)
            one = source(secured, folder, patch, listener, properties)
            asks: list[Callable[[], object]] = [
                OffsetClient(one).list_topic_partitions,
                partial(read, one, headers=False),
                partial(read, one, headers=True),
                partial(send, one, TOPIC, [Outgoing(None, b"letter")]),
            ]
            found[name] = Refused(one, [pool.submit(_error_of, ask) for ask in asks])
        yield found


def _error_of(ask: Callable[[], object]) -> BaseException | None:
    try:
        ask()
    except IngestdError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("name", "words"),
    [(refusal[0], refusal[3]) for refusal in REFUSALS],
    ids=[refusal[0] for refusal in REFUSALS],
)
def test_a_refusal_names_broker_mechanism_and_way_out_and_no_secret(
    refused: Mapping[str, Refused], name: str, words: list[str]
) -> None:
    one = refused[name]
    for waiting in one.told:
        told = waiting.result()
        assert isinstance(told, SourceError)
        for word in (*words, one.source.bootstrap, "shop"):
            assert word in told.message, told.message
        for secret in ("wrong-7", PASSWORD, CLIENT_SECRET):
            assert secret not in told.message


@pytest.mark.parametrize(
    ("way", "word"),
    [
        ({"sasl.mechanism": "OAUTHBEARER"}, "token.endpoint.url"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.username and sasl.password"),
        ({**sasl("PLAIN"), "ssl.ca.location": "/absent"}, "ssl.ca.location"),
    ],
)
def test_what_can_never_work_is_an_error_of_the_configuration(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Properties, word: str
) -> None:
    properties = {**protocol(secured, "SASLS"), **way}

    def made() -> KafkaSource:
        return source(secured, tmp_path, monkeypatch, "SASLS", properties)

    for ask in (lambda: OffsetClient(made()), lambda: read(made(), headers=False)):
        with pytest.raises(ConfigError, match=word):
            ask()
