"""What the client library says, told with a broker, a mechanism and a way out."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from ingestd.errors import ConfigError, SourceError
from ingestd.kafka import auth_errors
from ingestd.kafka.auth_errors import ClientErrors, explain, refused_properties
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.records import Problem


def source(**properties: str) -> KafkaSource:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return KafkaSource("shop", ("t",), properties={"bootstrap.servers": "a:1,b:2", **named})


SCRAM = source(security_protocol="sasl_ssl", sasl_mechanism="SCRAM-SHA-512")
OAUTH = source(security_protocol="SASL_SSL", sasl_mechanisms="OAUTHBEARER")


def test_a_wrong_password_names_the_broker_that_said_so() -> None:
    text = "sasl_ssl://b:2/bootstrap: SASL authentication error: no (after 3ms in state AUTH_REQ)"
    told = explain(SCRAM, Problem(KafkaError._AUTHENTICATION, text))
    assert told.startswith("b:2 rejected authentication by SASL_SSL SCRAM-SHA-512: ")
    assert "after 3ms" not in told
    assert told.endswith("sasl.username, sasl.password and sasl.mechanism of sources.shop.kafka")


def test_what_was_given_is_not_repeated() -> None:
    text = "Invalid sasl.oauthbearer.config: unrecognized key beginning at: scope=planted-1"
    told = explain(OAUTH, Problem(KafkaError._AUTHENTICATION, text))
    assert "planted-1" not in told
    assert "a:1,b:2" in told
    assert "sasl.oauthbearer.config" in told


@pytest.mark.parametrize(
    ("issue", "way_out"),
    [
        ("certificate has expired", "install a valid"),
        ("unable to get local issuer certificate", "ssl.ca.location"),
        ("Hostname mismatch, certificate is not valid for 'a'", "bootstrap.servers"),
        (None, "ssl.ca.location"),
    ],
)
def test_a_bad_certificate_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, issue: str | None, way_out: str
) -> None:
    asked: list[str] = []

    def look(address: str, _: object) -> str | None:
        asked.append(address)
        return issue

    monkeypatch.setattr(auth_errors, "certificate_error", look)
    text = "ssl://b:2/1: SSL handshake failed: error:0A: certificate verify failed: broker"
    told = explain(source(security_protocol="SSL"), Problem(KafkaError._SSL, text))
    assert asked == ["b:2"]
    assert way_out in told
    assert (issue or "could not be verified") in told


def test_each_kind_of_trouble_has_its_way_out() -> None:
    ways = {
        "ssl://b:2/1: Receive failed: error:0A: tlsv13 alert certificate required": "mTLS",
        "b:2/1: Disconnected: verify that security.protocol is correctly": "security.protocol",
        "b:2/1: Connect to ipv4#b:2 failed: Connection refused": "Connection refused",
    }
    for text, word in ways.items():
        assert word in explain(source(), Problem(KafkaError._TRANSPORT, text))
    denied = Problem(KafkaError.TOPIC_AUTHORIZATION_FAILED, "Broker: Topic authorization failed")
    assert "rights to read" in explain(source(), denied)


def rejection_reason(client_errors: ClientErrors) -> Problem | None:
    return client_errors.rejection_reason


def test_only_what_lasts_is_a_refusal_and_the_newest_says_the_most() -> None:
    client_errors = ClientErrors(source())
    assert (rejection_reason(client_errors), client_errors.newest) == (None, None)
    client_errors.note(KafkaError(KafkaError._TRANSPORT, "refused"))
    client_errors.note(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert rejection_reason(client_errors) is None
    assert client_errors.newest == Problem(KafkaError._TRANSPORT, "refused")
    client_errors.note(KafkaError(KafkaError._SSL, "no"))
    assert rejection_reason(client_errors) == Problem(KafkaError._SSL, "no")
    client_errors.forget()
    assert rejection_reason(client_errors) is None


def test_a_token_that_died_of_idleness_has_time_to_be_replaced() -> None:
    now = [0.0]
    stale = Problem(KafkaError._AUTHENTICATION, "invalid_token")
    patient = ClientErrors(OAUTH, lambda: now[0])
    patient.extend([stale])
    assert rejection_reason(patient) is None
    now[0] = 60.0
    assert rejection_reason(patient) == stale
    strict = ClientErrors(SCRAM, lambda: now[0])
    strict.extend([stale])
    assert rejection_reason(strict) == stale


def _hidden() -> SystemError:
    """As the consumer of the client library ends when its function for tokens has failed."""
    error = SystemError("returned a result with an exception set")
    error.__cause__ = RuntimeError("the role may not ask")
    return error


@pytest.mark.parametrize(
    "raised",
    [
        _hidden(),
        SystemError("returned NULL without setting an exception"),
        KafkaException(KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED, "OAuth token not set")),
    ],
)
def test_a_client_that_got_no_token_may_be_let_in_later(raised: Exception) -> None:
    aws = "sasl.oauthbearer.metadata.authentication.type"
    one = KafkaSource("shop", ("t",), properties={**OAUTH.properties, aws: "aws_iam"})
    with pytest.raises(SourceError, match="no token") as caught, refused_properties(one):
        raise raised
    assert "sasl.oauthbearer.config of sources.shop.kafka" in caught.value.message
    assert ("may not ask" in caught.value.message) == (raised.__cause__ is not None)


@pytest.mark.parametrize("kind", [ValueError, TypeError, ImportError, RuntimeError])
def test_properties_that_the_client_library_refuses_are_errors_of_the_configuration(
    kind: type[Exception],
) -> None:
    with pytest.raises(ConfigError, match=r"sources\.shop\.kafka: no"), refused_properties(OAUTH):
        raise kind("no")
