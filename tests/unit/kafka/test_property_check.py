import pytest

from ingestd.kafka.property_check import property_names, property_problem


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("bootstrap.servers", "broker-0:9092", None),
        ("sasl.password", "secret", None),
        ("acks", "all", None),
        ("ssl.ca.location", "/on/another/machine.pem", None),
        ("bootstrap.server", "broker-0:9092", "did you mean 'bootstrap.servers'?"),
        ("secrity.protocol", "SSL", "did you mean 'security.protocol'?"),
        ("security.protocol", "SASL_SLL", 'Invalid value "SASL_SLL"'),
        ("fetch.wait.max.ms", "soon", "Invalid value"),
        ("zzzzzz", "1", "no Kafka client property has this name"),
    ],
)
def test_librdkafka_judges_names_and_values_without_a_client(
    name: str, value: str, problem: str | None
) -> None:
    judged = property_problem(name, value)
    assert (judged is None) == (problem is None)
    assert (problem or "") in (judged or "")


def test_all_names_are_known() -> None:
    names = property_names()
    assert {"bootstrap.servers", "group.id", "sasl.username", "fetch.wait.max.ms"} <= names
    assert all(property_problem(name, "x") != "no Kafka client property" for name in names)
