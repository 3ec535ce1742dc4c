"""The section `sources.NAME`: topics, data format, and where reading starts and ends."""

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ingestd.cdc.base import DATA_FORMATS
from ingestd.config.registry_section import SchemaRegistrySection
from ingestd.config.section import Section
from ingestd.config.values import Names, Texts
from ingestd.errors import ConfigError
from ingestd.kafka.offset_ranges import TopicOffsets
from ingestd.kafka.offset_text import offsets_text, parse_offsets
from ingestd.kafka.properties import BoundedMode, KafkaSource, StartupMode

_FORMATS = ", ".join(f"`{name}`" for name in sorted(DATA_FORMATS))
_NEEDED = {"timestamp": "timestamp-millis", "specific-offsets": "specific-offsets"}
"""Ending of the key that a mode requires."""


def _positions(value: object) -> object:
    """Convert a map `{topic: {partition: offset}}` to text; return other values unchanged.

    Raises ValueError for a map whose values are not maps.
    """
    if not isinstance(value, dict):
        return value
    if not all(isinstance(partitions, dict) for partitions in value.values()):
        raise ValueError("a map of maps is needed: topic, then partition: offset")
    return offsets_text(value)


Positions = Annotated[str | None, BeforeValidator(_positions)]


class SourceSection(Section):
    """A source: topics of one Kafka cluster whose messages have the same data format."""

    kafka: Texts = Field(
        repr=False,
        description="Properties of the Kafka client (librdkafka), verbatim; `bootstrap.servers` "
        "is required. One value is not librdkafka's: `sasl.mechanism: AWS_MSK_IAM`, for Amazon MSK "
        "with IAM.",
    )
    format: str = Field(description=f"Data format of the messages: {_FORMATS}.")
    type_mapping: Names = Field(
        default=(),
        description="Options that change the types of columns, under the names of Paimon's CDC: "
        "`tinyint1-not-bool`, `char-to-string`, `longtext-to-bytes`, `bigint-unsigned-to-bigint` "
        "(formats whose messages name types of MySQL), `to-string`, `decimal-no-change` (JSON "
        "formats); `to-nullable` and `allow-non-string-to-string` are accepted without effect, "
        "because ingestd always behaves so.",
    )
    topics: Names = Field(default=(), description="Names of the topics.")
    topic_pattern: str | None = Field(
        default=None,
        min_length=1,
        description="Regular expression that matches whole topic names, instead of `topics`; new "
        "topics that match are read from the next batch on.",
    )
    topic_exclude: Names = Field(
        default=(), description="Names of topics to leave out of `topic-pattern`."
    )
    schema_registry: SchemaRegistrySection = Field(
        default_factory=SchemaRegistrySection,
        description="Where schemas of messages are registered, for formats that need them.",
    )
    startup_mode: StartupMode = Field(
        default="earliest-offset",
        description="Where reading starts if no table has progress of the pipeline: "
        "`earliest-offset`, `latest-offset`, `group-offsets` (of `kafka.group.id`), "
        "`timestamp` or `specific-offsets`. Topics and partitions that appear later "
        "are read from their beginning.",
    )
    startup_timestamp_millis: int | None = Field(
        default=None,
        ge=0,
        description="With `timestamp`: the first record that is not older is the first one read, "
        "in milliseconds since 1970.",
    )
    startup_specific_offsets: Positions = Field(
        default=None,
        description="With `specific-offsets`: `TOPIC:PARTITION:OFFSET;...`, or a map of maps. "
        "Partitions that are not listed start at their first offset.",
    )
    bounded_mode: BoundedMode = Field(
        default="unbounded",
        description="Where reading ends: `unbounded`, `latest-offset` (at the start of the run), "
        "`timestamp` or `specific-offsets`. When all sources have reached their end "
        "the pipeline stops with exit code 0.",
    )
    bounded_timestamp_millis: int | None = Field(
        default=None,
        ge=0,
        description="With `timestamp`: the first record that is not older is the first one not "
        "read, in milliseconds since 1970.",
    )
    bounded_specific_offsets: Positions = Field(
        default=None,
        description="With `specific-offsets`: the first offsets that are not read, as "
        "`TOPIC:PARTITION:OFFSET;...` or a map of maps. The pipeline waits for offsets "
        "beyond the end of the log. Partitions that are not listed end where their log ends "
        "at the start of the run.",
    )
    on_offset_out_of_range: Literal["fail", "earliest", "latest"] = Field(
        default="fail",
        description="What happens when the log no longer has the next offsets: `fail`, or "
        "continue at the `earliest` or `latest` offset, which loses records. A loss "
        "is reported in the log, as a metric and as a dead letter.",
    )
    max_offsets_per_trigger: int = Field(
        default=500_000,
        ge=1,
        description="Maximum number of offsets of this source in one micro-batch.",
    )

    @model_validator(mode="after")
    def _topics_in_one_way(self) -> Self:
        if bool(self.topics) == bool(self.topic_pattern):
            raise ValueError("give either 'topics' or 'topic-pattern'")
        if self.topic_exclude and self.topic_pattern is None:
            raise ValueError("'topic-exclude' needs 'topic-pattern'")
        try:
            re.compile(self.topic_pattern or "")
        except re.error as error:
            raise ValueError(
                f"'topic-pattern' is not a valid regular expression: {error}"
            ) from error
        for topic in self.topic_exclude:
            if not re.fullmatch(self.topic_pattern or "", topic):
                raise ValueError(
                    f"'topic-exclude' leaves nothing out by '{topic}', which 'topic-pattern' does "
                    "not match: write the whole name of a topic, or exclude several in the pattern"
                )
        return self

    @model_validator(mode="after")
    def _modes_with_what_they_need(self) -> Self:
        for key in ("startup", "bounded"):
            mode = getattr(self, f"{key}_mode")
            for name, ending in _NEEDED.items():
                is_set = getattr(self, f"{key}_{ending.replace('-', '_')}") is not None
                if is_set != (mode == name):
                    option, required = f"'{key}-{ending}'", f"'{key}-mode: {name}'"
                    raise ValueError(
                        f"{option} needs {required}" if is_set else f"{required} needs {option}"
                    )
        return self


def positions_of(section: SourceSection, text: str | None) -> TopicOffsets:
    """Parse `TOPIC:PARTITION:OFFSET;...` to offsets by topic and partition; {} if `text` is None.

    If the section lists a single topic, `partition:PARTITION,offset:OFFSET;...` is accepted, too.
    Raises ConfigError if the text is malformed or contains no offset.
    """
    return {} if text is None else parse_offsets(text, section.topics)


def check_positions(section: SourceSection, key: str) -> None:
    """Raise ConfigError if configured offsets are malformed, or of a topic that is not read.

    `key` is the key with the offsets, `startup-specific-offsets` or `bounded-specific-offsets`.
    """
    texts = {
        "startup-specific-offsets": section.startup_specific_offsets,
        "bounded-specific-offsets": section.bounded_specific_offsets,
    }
    source = KafkaSource("", section.topics, section.topic_pattern, section.topic_exclude)
    for topic in positions_of(section, texts[key]):
        if not source.selects(topic):
            raise ConfigError(f"topic {topic} is not read by the source")
