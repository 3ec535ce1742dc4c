"""Survey the topics of a cluster for `ingestd init`: sample messages and guess data formats."""

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ingestd.cdc.base import DEFAULT_FORMAT, RecordChunk
from ingestd.cdc.format_guess import Guess, guess_format
from ingestd.cdc.schema_lookup import GLUE_WAY_OUT, SchemaLookup, is_glue
from ingestd.cli.proposal import Proposal, SourceProposal, proposed_pattern
from ingestd.cli.sampled_dry_run import TopicLogs, dry_run_pipeline, take_sample, topic_logs
from ingestd.config.document import parse_document
from ingestd.config.load import load_document
from ingestd.config.runtime import pipeline_settings
from ingestd.config.secret_resolution import resolve_references
from ingestd.errors import ConfigError, UnsupportedError
from ingestd.ingest.dry_run.table_preview import TablePreview, table_previews
from ingestd.kafka.fetch import fetch
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource

_NAME = "init"
_SAMPLED = 50
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class BrokerSurvey:
    """Sampled topics of a cluster: their log offsets, and the likely data format of each."""

    logs: TopicLogs
    guesses: Mapping[str, Guess]


def resolved_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Resolve `${env:NAME}` and `${file:PATH}` in properties and register the values as secrets.

    A relative path starts from the working directory. Raises ConfigError for a reference that
    cannot be resolved.
    """
    document = parse_document("{}", "--kafka")
    document.tree = dict(properties)
    tree, issues = resolve_references(document, os.environ, Path.cwd())
    if issues or not isinstance(tree, dict):
        raise ConfigError("--kafka: " + "; ".join(issue.message for issue in issues))
    return {name: str(value) for name, value in tree.items()}


def list_topics(properties: Mapping[str, str]) -> list[str]:
    """Return the sorted names of a cluster's topics.

    Raises SourceError if the cluster does not respond, ConfigError for invalid properties.
    """
    source = KafkaSource(_NAME, (), topic_pattern=".*", properties=properties)
    return sorted(topic_logs(source).end)


def sample_topics(
    properties: Mapping[str, str], topics: Sequence[str], schemas: SchemaLookup | None
) -> BrokerSurvey:
    """Sample the oldest and newest messages of topics, and guess the data format of each topic.

    `properties` are those of the Kafka client, and `schemas` looks up the schemas of binary
    messages (None: no registry). Raises SourceError if the cluster or the schema registry does not
    respond or a topic does not exist; ConfigError for invalid properties, or if the registry
    rejects the credentials; and UnsupportedError if messages use the AWS Glue Schema Registry.
    """
    source = KafkaSource(_NAME, tuple(topics), properties=properties)
    logs = topic_logs(source)

    def read(offset_range: OffsetRange) -> list[RecordChunk]:
        return list(fetch(source, offset_range, max_records=_SAMPLED, max_bytes=_MOST_BYTES))

    sample = take_sample({_NAME: logs}, _SAMPLED, read)
    values: dict[str, list[bytes | None]] = defaultdict(list)
    for offset_range, chunks in sample.items():
        for chunk in chunks:
            values[offset_range.topic] += chunk.values
    for topic, messages in values.items():
        _refuse_glue(topic, messages)
    return BrokerSurvey(logs, {topic: guess_format(values[topic], schemas) for topic in logs.end})


def _refuse_glue(topic: str, messages: Sequence[bytes | None]) -> None:
    if any(map(is_glue, messages)):
        raise UnsupportedError(
            f"topic {topic}: messages have the framing of the AWS Glue Schema Registry, which "
            f"is not supported; {GLUE_WAY_OUT}, or leave out the topic"
        )


def proposed_sources(
    name: str, survey: BrokerSurvey, data_format: str | None, pattern: str | None
) -> list[SourceProposal]:
    """Return a source for each data format in `survey`; topics of unknown format join the largest.

    Sources are named `name-FORMAT`, or `name` if there is only one. `data_format` overrides the
    guesses of all topics. A single source selects its topics by `pattern`, or else by a proposed
    pattern, if there is one; otherwise sources list their topics.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    unknown: list[str] = []
    for topic, guess in survey.guesses.items():
        chosen_format = data_format or guess.data_format
        (groups[chosen_format] if chosen_format else unknown).append(topic)
    largest = max(
        groups, key=lambda name_of_format: len(groups[name_of_format]), default=DEFAULT_FORMAT
    )
    groups[largest] += unknown
    many = len(groups) > 1
    return [
        SourceProposal(
            f"{name}-{chosen_format}" if many else name,
            tuple(sorted(topics)),
            None if many else pattern or proposed_pattern(sorted(topics)),
            _together(chosen_format, [survey.guesses[topic] for topic in topics]),
            chosen_format,
        )
        for chosen_format, topics in sorted(groups.items())
    ]


def with_tables(proposal: Proposal, text: str, folder: Path, records: int) -> Proposal:
    """Return the proposal with previews of its tables, from a dry run of its YAML `text`.

    At most `records` records of each topic are read; paths are relative to `folder`. Raises
    ConfigError for an invalid configuration, SourceError if a topic does not exist or brokers do
    not respond, and the errors of opening tables.
    """
    tables = dry_run_of(text, folder, records)
    return replace(proposal, tables=tuple(tables))


def dry_run_of(text: str, folder: Path, records: int) -> list[TablePreview]:
    """Return previews of the tables that a configuration (YAML) would write, from a dry run.

    At most `records` records of each topic are read; paths are relative to `folder`. Raises
    ConfigError for an invalid configuration, SourceError if a topic does not exist or brokers do
    not respond, and the errors of opening tables.
    """
    loaded = load_document(parse_document(text, "the proposal"), folder, os.environ)
    return table_previews(dry_run_pipeline(pipeline_settings(loaded), records).result)


def _together(data_format: str, guesses: Sequence[Guess]) -> Guess:
    agreeing = sum(guess.agreeing for guess in guesses if guess.data_format == data_format)
    recognisable = sum(guess.telling for guess in guesses)
    return Guess(
        data_format, agreeing, recognisable, any(guess.needs_registry for guess in guesses)
    )
