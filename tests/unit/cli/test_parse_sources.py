from pathlib import Path

import pytest

from ingestd.cli.parse import MessageOptions, source_settings
from ingestd.errors import ConfigError

FILE = """
warehouse: {path: lake}
sources:
  a:
    kafka: {bootstrap.servers: "a:1", client.id: x}
    topics: [one, two]
    format: canal-json
    type-mapping: [to-string]
  b:
    kafka: {bootstrap.servers: "b:1"}
    topic-pattern: other.*
    format: debezium-json
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "f.yaml"
    path.write_text(FILE)
    return path


def test_a_configuration_shows_how_its_source_is_read(config: Path) -> None:
    found = source_settings(MessageOptions(config), "two")
    assert found.data_format == "canal-json"
    assert found.kafka.name == "a"
    assert found.kafka.topics == ("two",)
    assert found.kafka.properties == {"bootstrap.servers": "a:1", "client.id": "x"}
    assert found.format_settings.type_mapping == {"to-string"}


def test_a_pattern_finds_its_topics(config: Path) -> None:
    assert source_settings(MessageOptions(config), "other.x").kafka.bootstrap == "b:1"


def test_options_win_over_the_configuration(config: Path) -> None:
    reading = MessageOptions(config, "json", "c:1", ("client.id=y", "sasl.password=a=b"))
    found = source_settings(reading, "one")
    assert found.data_format == "json"
    assert found.kafka.properties == {
        "bootstrap.servers": "c:1",
        "client.id": "y",
        "sasl.password": "a=b",
    }


@pytest.mark.parametrize(("topic", "count"), [
    ("nobody", "no source reads topic nobody; correct it, or use --format and --bootstrap"),
    (None, "2 sources would read the messages; specify --topic"),
])  # fmt: skip
def test_a_topic_of_no_source_or_of_several_is_refused(
    config: Path, topic: str | None, count: str
) -> None:
    with pytest.raises(ConfigError, match=count):
        source_settings(MessageOptions(config), topic)
    assert source_settings(MessageOptions(config), "one").kafka.name == "a"
    assert source_settings(MessageOptions(None, "json", "a:1"), "nobody").data_format == "json"


def test_a_source_without_a_registry_gets_one_as_the_refusal_says(config: Path) -> None:
    with pytest.raises(ConfigError, match="or 'schema-registry' in the source of --config"):
        source_settings(MessageOptions(config, "debezium-avro"), "one")
    registry = "    schema-registry: {url: 'http://r:1'}\n  b:"
    config.write_text(FILE.replace("  b:", registry, 1))
    found = source_settings(MessageOptions(config, "debezium-avro"), "one")
    assert found.format_settings.schemas is not None


def test_a_secret_without_a_name_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as refused:
        source_settings(MessageOptions(None, "json", "a:1", ("=hunter2",)), "t")
    assert "hunter2" not in refused.value.message
