from typing import Any

import pytest

from ingestd.config.import_notes import Note, assemble
from ingestd.config.paimon_cdc_kafka import import_kafka_conf

BASE = {
    "properties.bootstrap.servers": "b:9092",
    "topic": "t",
    "value.format": "canal-json",
    "properties.group.id": "g",
    "scan.startup.mode": "earliest-offset",
}
JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="me" password="hunter2";'
)


def carried(*, keep_secrets: bool = False, **conf: str) -> tuple[dict[str, Any], list[Note]]:
    """The source and the notes of the base and these; `_` stands for a dot, None for nothing."""
    whole = {**BASE, **{name.replace("_", "."): value for name, value in conf.items()}}
    given = {name: value for name, value in whole.items() if value != "-"}
    found = import_kafka_conf(given, ("s",), keep_secrets=keep_secrets)
    tree, notes = assemble(found, lambda _: None)
    return tree["s"], notes


def test_the_usual_becomes_a_source() -> None:
    source, notes = carried()
    assert source == {
        "kafka": {"bootstrap.servers": "b:9092", "group.id": "g"},
        "format": "canal-json",
        "topics": ["t"],
        "startup-mode": "earliest-offset",
    }
    assert notes == []


def test_topics_are_parted_by_semicolons() -> None:
    assert carried(topic="a;b ; c;")[0]["topics"] == ["a", "b", "c"]


def test_a_pattern_of_topics_stays_as_it_is() -> None:
    found = import_kafka_conf(
        {**{n: v for n, v in BASE.items() if n != "topic"}, "topic-pattern": r"a\.b.*"},
        ("s",),
        keep_secrets=False,
    )
    source = assemble(found, lambda _: None)[0]["s"]
    assert source["topic-pattern"] == r"a\.b.*"
    assert "topics" not in source


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("properties.bootstrap.servers", "--kafka_conf properties.bootstrap.servers"),
        ("value.format", "--kafka_conf value.format"),
        ("topic", "--kafka_conf topic"),
    ],
)
def test_what_is_missing_is_essential_and_has_a_stand_in(name: str, key: str) -> None:
    conf = {one: value for one, value in BASE.items() if one != name}
    found = import_kafka_conf(conf, ("s",), keep_secrets=False)
    assert [note.argument for note in found.notes if note.essential] == [key]
    source = assemble(found, lambda _: None)[0]["s"]
    assert {"kafka", "format", "topics"} <= source.keys()


def test_offsets_come_with_their_mode() -> None:
    found = import_kafka_conf(
        {
            **BASE,
            "scan.startup.mode": "timestamp",
            "scan.startup.timestamp-millis": "17",
            "scan.bounded.mode": "latest-offset",
        },
        ("s",),
        keep_secrets=False,
    )
    entries = [piece.entries for piece in found.pieces if "startup" in piece.argument]
    assert entries == [
        {("s", "startup-mode"): "timestamp", ("s", "startup-timestamp-millis"): "17"}
    ]
    assert assemble(found, lambda _: None)[0]["s"]["bounded-mode"] == "latest-offset"


def test_without_a_mode_reading_goes_on_from_the_group() -> None:
    conf = {name: value for name, value in BASE.items() if name != "scan.startup.mode"}
    found = import_kafka_conf(conf, ("s",), keep_secrets=False)
    assert assemble(found, lambda _: None)[0]["s"]["startup-mode"] == "group-offsets"
    assert [note.argument for note in found.notes] == ["--kafka_conf scan.startup.mode"]


def test_a_login_becomes_user_and_reference() -> None:
    source, notes = carried(properties_sasl_jaas_config=JAAS, properties_sasl_mechanism="PLAIN")
    assert source["kafka"]["sasl.username"] == "me"
    assert source["kafka"]["sasl.password"] == "${env:KAFKA_PASSWORD}"
    assert source["kafka"]["sasl.mechanism"] == "PLAIN"
    assert "KAFKA_PASSWORD" in notes[0].text
    assert not any("hunter2" in str(note) for note in notes)


def test_a_password_is_repeated_if_that_is_wanted() -> None:
    source, notes = carried(keep_secrets=True, properties_sasl_jaas_config=JAAS)
    assert source["kafka"]["sasl.password"] == "hunter2"
    assert notes == []


def test_a_login_of_another_kind_is_essential() -> None:
    source, notes = carried(properties_sasl_jaas_config="x.Krb5LoginModule required;")
    assert "sasl.username" not in source["kafka"]
    assert notes[0].essential


def test_names_of_the_java_client_are_translated_or_noted() -> None:
    source, notes = carried(
        properties_fetch_max_wait_ms="5",
        properties_max_poll_records="9",
        properties_isolation_level="read_uncommitted",
        properties_ssl_keystore_location="/k.jks",
    )
    assert source["kafka"]["fetch.wait.max.ms"] == "5"
    assert {note.argument.rpartition("properties.")[2]: note.essential for note in notes} == {
        "max.poll.records": False,
        "isolation.level": False,
        "ssl.keystore.location": True,
    }


def test_certificates_in_pem_are_taken() -> None:
    source, notes = carried(
        properties_ssl_truststore_type="PEM", properties_ssl_truststore_location="/ca.pem"
    )
    assert source["kafka"]["ssl.ca.location"] == "/ca.pem"
    assert notes == []


def test_settings_of_the_connector_are_noted() -> None:
    found = import_kafka_conf(
        {**BASE, "scan.topic-partition-discovery.interval": "10s", "x": "y"},
        ("s",),
        keep_secrets=False,
    )
    assert [(note.argument, note.essential) for note in found.notes] == [
        ("--kafka_conf scan.topic-partition-discovery.interval", False),
        ("--kafka_conf x", False),
    ]


def test_a_format_that_is_not_known_is_essential_and_replaced() -> None:
    source, notes = carried(value_format="made-up-json")
    assert source["format"] == "debezium-json"
    assert [(note.argument, note.essential) for note in notes] == [
        ("--kafka_conf value.format=made-up-json", True)
    ]


def test_a_format_with_registered_schemas_brings_its_registry() -> None:
    source, notes = carried(value_format="debezium-avro", schema_registry_url="http://r:8081")
    assert source["schema-registry"] == {"url": "http://r:8081"}
    assert notes == []
    source, notes = carried(value_format="debezium-avro")
    assert source["schema-registry"]["url"].startswith("http://")
    assert [note.essential for note in notes] == [True]


def test_a_pattern_that_is_none_here_is_essential() -> None:
    source, notes = carried(topic="-", **{"topic-pattern": r"\p{Lu}+"})
    assert source["topics"] == ["CHANGE-ME"]
    assert [note.essential for note in notes] == [True]
