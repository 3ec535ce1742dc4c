"""Reads the messages of `ingestd parse` from a file or a topic."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ingestd.cdc.base import FormatSettings, RecordChunk, describe_format
from ingestd.cdc.columns.type_mapping import read_type_mapping
from ingestd.cdc.message_lines import lines_chunk, whole_chunk
from ingestd.config.load import load_config
from ingestd.config.registry_section import SchemaRegistrySection, registered_formats
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import SourceSettings
from ingestd.kafka.consumers import close_consumers
from ingestd.kafka.fetch import fetch
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange

_NAME = "parse"
_NO_TOPIC = "messages"
_STDIN = "-"
_ASK_SECONDS = 10.0
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """The messages to read: a file, or records of a topic partition from an offset on.

    A negative offset counts from the end. With a file, `topic` is only a name for decoders.
    `records` None reads one record of a topic, and all of a file.
    """

    file: Path | None = None
    whole: bool = False
    key_separator: str | None = None
    topic: str | None = None
    partition: int = 0
    offset: int | None = None
    records: int | None = None


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """Options that override the source of a configuration."""

    config: Path | None = None
    data_format: str | None = None
    bootstrap: str | None = None
    kafka: Sequence[str] = ()
    registry: str | None = None
    type_mapping: Sequence[str] = ()


def source_settings(reading: MessageOptions, topic: str | None) -> SourceSettings:
    """Return the source of the options and the configuration. Raises ConfigError."""
    base = _configured(reading.config, topic) if reading.config else None
    data_format = reading.data_format or (base.data_format if base else None)
    if data_format is None:
        raise ConfigError("say what the messages are: --format, or --config with a source of them")
    settings = base.format_settings if base else FormatSettings()
    if reading.registry:
        settings = registered_formats(SchemaRegistrySection(url=(reading.registry,)), Path())
    if reading.type_mapping:
        mapping = read_type_mapping(reading.type_mapping, data_format)
        settings = replace(settings, type_mapping=mapping)
    if describe_format(data_format).registry == "required" and settings.schemas is None:
        raise ConfigError(f"data format '{data_format}' needs --schema-registry URL, or --config")
    properties = dict(base.kafka.properties) if base else {}
    if reading.bootstrap:
        properties["bootstrap.servers"] = reading.bootstrap
    properties |= dict(_pair(one) for one in reading.kafka)
    name = base.kafka.name if base else _NAME
    return SourceSettings(
        KafkaSource(name, (topic or _NO_TOPIC,), properties=properties), data_format, settings
    )


def read_messages(wanted: Wanted, source: SourceSettings) -> list[RecordChunk]:
    """Read the messages. Raises ConfigError if the file or the offset cannot be read."""
    if wanted.file is not None:
        return [_read_file(wanted, wanted.file, source)]
    if wanted.topic is None or not source.kafka.bootstrap:
        raise ConfigError(
            "say where the messages are: FILE (- is standard input), or --topic with --bootstrap "
            "or --config"
        )
    try:
        return list(_read_topic(wanted, wanted.topic, source))
    finally:
        close_consumers()


def _configured(path: Path, topic: str | None) -> SourceSettings:
    """Return the source of a configuration that reads the topic, or its only source."""
    sources = pipeline_settings(load_config(path)).sources
    reading = [
        source for source in sources.values() if topic is None or source.kafka.selects(topic)
    ]
    if len(reading) != 1:
        many = f"{len(reading)} sources" if reading else "no source"
        raise ConfigError(f"{path}: {many} would read the messages; say --topic, as it is there")
    return reading[0]


def _pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise ConfigError(f"--kafka {text.partition('=')[0]!r}: write NAME=VALUE")
    return name, value


def _read_file(wanted: Wanted, file: Path, source: SourceSettings) -> RecordChunk:
    data = sys.stdin.buffer.read() if str(file) == _STDIN else file.read_bytes()
    topic = wanted.topic or _NO_TOPIC
    if wanted.whole:
        return whole_chunk(data, topic)
    if describe_format(source.data_format).registry == "required":
        raise ConfigError(
            f"messages of '{source.data_format}' are no lines of text: add --whole if the file is "
            "one message, or read them from their --topic"
        )
    separator = None if wanted.key_separator is None else wanted.key_separator.encode()
    return lines_chunk(data, topic, separator=separator, limit=wanted.records)


def _read_topic(wanted: Wanted, topic: str, source: SourceSettings) -> list[RecordChunk]:
    place = {topic: (wanted.partition,)}
    cluster = OffsetClient(source.kafka, request_seconds=_ASK_SECONDS)
    known = cluster.list_topic_partitions().get(topic, ())
    if wanted.partition not in known:
        there = f"it has {len(known)}" if known else "there is no such topic"
        bootstrap = source.kafka.bootstrap
        raise ConfigError(f"no partition {wanted.partition} of {topic} at {bootstrap}: {there}")
    first = cluster.beginning_offsets(place)[topic][wanted.partition]
    end = cluster.end_offsets(place)[topic][wanted.partition]
    at = first if wanted.offset is None else wanted.offset
    start = end + at if at < 0 else at
    if not first <= start < end:
        raise ConfigError(
            f"{topic}/{wanted.partition} has no offset {at}: its log has {first} up to {end - 1}"
            if end > first
            else f"{topic}/{wanted.partition} is empty"
        )
    until = min(end, start + (wanted.records or 1))
    ranged = OffsetRange(source.kafka.name, topic, wanted.partition, start, until)
    headers = source.format_settings.framing.needs_headers
    return list(
        fetch(
            source.kafka, ranged, max_records=until - start, max_bytes=_MAX_BYTES, headers=headers
        )
    )
