"""`ingestd parse`: read messages from a file or a topic, decode them and print their rows."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ingestd.cdc.base import (
    DATA_FORMATS,
    Decoded,
    FormatSettings,
    RecordChunk,
    describe_format,
    load_data_format,
)
from ingestd.cdc.columns.type_mapping import read_type_mapping
from ingestd.cdc.message_lines import lines_chunk, whole_chunk
from ingestd.cli.output import AsJson, print_json, print_table, say
from ingestd.config.load import load_config
from ingestd.config.registry_section import SchemaRegistrySection, registered_formats
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError
from ingestd.ingest.rows.decoded_rows import (
    DecodedRow,
    DecodedTable,
    decoded_tables,
    rejected_documents,
)
from ingestd.ingest.settings.context import SourceSettings
from ingestd.kafka.consumer_pool import close_consumers
from ingestd.kafka.fetch import fetch
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.log import printable
from ingestd.wording import counted

_FINDINGS = 1
_OFFSET, _ROWKIND, _POSITION = "@offset", "@rowkind", "@position"
"""Titles that no column is likely to have."""
_FORMATS = ", ".join(sorted(DATA_FORMATS))

_File: TypeAlias = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="Messages, one per line; - is standard input.")
]
_Format: TypeAlias = Annotated[
    str | None, typer.Option("--format", metavar="FORMAT", help=f"Data format: {_FORMATS}.")
]
_Whole: TypeAlias = Annotated[bool, typer.Option("--whole", help="FILE is one message.")]
_Separator: TypeAlias = Annotated[
    str | None,
    typer.Option("--key-separator", metavar="TEXT", help="Separator of key and value in a line."),
]
_Topic: TypeAlias = Annotated[
    str | None, typer.Option("--topic", help="Topic to read from; with FILE its name only.")
]
_Bootstrap: TypeAlias = Annotated[
    str | None, typer.Option("--bootstrap", metavar="HOST:PORT,...", help="The brokers.")
]
_Partition: TypeAlias = Annotated[
    int, typer.Option("--partition", min=0, help="Partition of --topic.")
]
_Offset: TypeAlias = Annotated[
    int | None,
    typer.Option("--offset", help="First offset, -1 for the newest record; default the oldest."),
]
_Records: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--records", min=1, help="Number of records; default 1 of a topic, all of a file."
    ),
]
_Registry: TypeAlias = Annotated[
    str | None, typer.Option("--schema-registry", metavar="URL", help="URL of a schema registry.")
]
_TypeMapping: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--type-mapping", metavar="NAME", help="As `type-mapping` of a source; repeatable."
    ),
]
_Kafka: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--kafka", metavar="NAME=VALUE", help="Kafka client property; repeatable."),
]
_Config: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Use the source of this file that reads the topic."),
]
_NAME = "parse"
_NO_TOPIC = "messages"
_STDIN = "-"
_ASK_SECONDS = 10.0
_MAX_BYTES = 64 << 20


def parse(
    file: _File = None,
    data_format: _Format = None,
    whole: _Whole = False,
    key_separator: _Separator = None,
    topic: _Topic = None,
    bootstrap: _Bootstrap = None,
    partition: _Partition = 0,
    offset: _Offset = None,
    records: _Records = None,
    registry: _Registry = None,
    type_mapping: _TypeMapping = None,
    kafka: _Kafka = None,
    config: _Config = None,
    as_json: AsJson = False,
) -> None:
    """Decode messages and show their rows, row kinds, types and errors.

    Uses the daemon's decoder, without the schemas of target tables. A rejected record is shown with
    the stage and reason that its dead letter would have; the exit code is then 1.

    **Examples**

    ingestd parse --format debezium-json messages.jsonl

    kcat -C -b broker:9092 -t items -K '|' | ingestd parse --format json --key-separator '|' -

    ingestd parse --format json --topic items --bootstrap broker:9092 --partition 3 --offset 17

    ingestd parse -c shop.yaml --topic shop.public.orders --offset -1 --json
    """
    selection = MessageSelection(file, whole, key_separator, topic, partition, offset, records)
    kafka, mapping = kafka or [], type_mapping or []
    options = MessageOptions(config, data_format, bootstrap, kafka, registry, mapping)
    source = source_settings(options, topic)
    chunks = read_messages(selection, source)
    decode = load_data_format(source.data_format, source.format_settings).decode
    decoded = [decode(chunk, {}, {}) for chunk in chunks]
    _show(decoded, sum(len(chunk.offsets) for chunk in chunks), as_json=as_json)
    raise typer.Exit(_FINDINGS if any(batch.rejected for batch in decoded) else 0)


def _show(decoded: Sequence[Decoded], records: int, *, as_json: bool) -> None:
    tables = [table for batch in decoded for table in decoded_tables(batch)]
    rejected = [row for batch in decoded for row in rejected_documents(batch)]
    truncates = [
        {
            "table": ".".join(filter(None, truncate.source)),
            "offset": truncate.offset,
            "position": truncate.position,
        }
        for batch in decoded
        for truncate in batch.truncates
    ]
    control = sum(batch.control for batch in decoded)
    if as_json:
        print_json(
            {
                "records": records,
                "control": control,
                "tables": [_document(table) for table in tables],
                "truncates": truncates,
                "rejected": rejected,
            }
        )
        return
    for table in tables:
        _print(table)
    for truncate in truncates:
        say(f"\noffset {truncate['offset']}: table {printable(str(truncate['table']))} is emptied")
    if rejected:
        say("\ncannot be used:")
        print_table(rejected, ("offset", "stage", "reason", "message"), none="")
    rows = sum(len(table.rows) for table in tables)
    say(
        f"\n{counted(records, 'record')}: {counted(rows, 'row')}, "
        f"{counted(len(truncates), 'truncate')}, {control} without rows, "
        f"{len(rejected)} rejected"
    )


def _document(table: DecodedTable) -> dict[str, object]:
    """Return a decoded table as a JSON document, with the source's name as separate parts."""
    return {**asdict(table), "source": table.source._asdict()}


def _print(table: DecodedTable) -> None:
    keys = ", ".join(table.primary_keys) or "unknown"
    say(f"\n{printable(f'{table.name}, key {keys}')}")
    columns = [{"column": name, "type": kind} for name, kind in table.types.items()]
    print_table(columns, ("column", "type"), none="no columns")
    cells = [
        {
            _OFFSET: str(row.offset),
            _ROWKIND: row.rowkind,
            _POSITION: "snapshot" if row.snapshot else row.position,
            **{name: _cell(row, name) for name in table.types},
        }
        for row in table.rows
    ]
    print_table(cells, (_OFFSET, _ROWKIND, _POSITION, *table.types), none="no rows", titles=False)


def _cell(row: DecodedRow, name: str) -> str:
    value = row.values[name]
    if name in row.unavailable:
        return "(not sent)"
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class MessageSelection:
    """The messages to read: a file, or records of a topic partition from an offset on.

    A negative offset counts from the end; None is the oldest record. With a file, `topic` is only a
    name for decoders. The file is one message if `whole`; otherwise each line is a message, with a
    key before `key_separator`, if that is given. If `records` is None, one record of a topic is
    read, or all of a file.
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
    """Options that override the source in `config` or, without `config`, define a source.

    `kafka` are client properties as `NAME=VALUE`, `registry` is the URL of the schema registry, and
    `type_mapping` are options such as `to-string`.
    """

    config: Path | None = None
    data_format: str | None = None
    bootstrap: str | None = None
    kafka: Sequence[str] = ()
    registry: str | None = None
    type_mapping: Sequence[str] = ()


def source_settings(reading: MessageOptions, topic: str | None) -> SourceSettings:
    """Return the source of the configuration that reads the topic, overridden by the options.

    `reading` are the options, with the path of the configuration. A `topic` of None stands for the
    only source of the configuration. Without a configuration, the options define the source. Raises
    ConfigError if the data format or a required schema registry is missing, if the configuration or
    an option is invalid, or if not exactly one source of the configuration reads the topic.
    """
    base = _configured(reading.config, topic) if reading.config else None
    data_format = reading.data_format or (base.data_format if base else None)
    if data_format is None:
        raise ConfigError(
            "specify the format of the messages: --format, or --config with their source"
        )
    settings = base.format_settings if base else FormatSettings()
    if reading.registry:
        settings = registered_formats(SchemaRegistrySection(url=(reading.registry,)), Path())
    if reading.type_mapping:
        mapping = read_type_mapping(reading.type_mapping, data_format)
        settings = replace(settings, type_mapping=mapping)
    if describe_format(data_format).registry == "required" and settings.schemas is None:
        raise ConfigError(
            f"data format '{data_format}' needs --schema-registry URL, or 'schema-registry' in the "
            "source of --config"
        )
    properties = dict(base.kafka.properties) if base else {}
    if reading.bootstrap:
        properties["bootstrap.servers"] = reading.bootstrap
    properties |= dict(_pair(pair) for pair in reading.kafka)
    name = base.kafka.name if base else _NAME
    return SourceSettings(
        KafkaSource(name, (topic or _NO_TOPIC,), properties=properties), data_format, settings
    )


def read_messages(selection: MessageSelection, source: SourceSettings) -> list[RecordChunk]:
    """Read the selected messages.

    Raises ConfigError if neither a file nor a topic with brokers is given, if the partition or the
    offset does not exist, or if the lines of a file cannot be messages of the data format; OSError
    if the file cannot be read; and SourceError if the brokers do not respond.
    """
    if selection.file is not None:
        return [_read_file(selection, selection.file, source)]
    if selection.topic is None or not source.kafka.bootstrap:
        raise ConfigError(
            "specify where to read messages: FILE (- is standard input), or --topic with "
            "--bootstrap or --config"
        )
    try:
        return list(_read_topic(selection, selection.topic, source))
    finally:
        close_consumers()


def _configured(path: Path, topic: str | None) -> SourceSettings:
    """Return the source of a configuration that reads the topic, or its only source for None.

    Raises ConfigError unless there is exactly one.
    """
    sources = pipeline_settings(load_config(path)).sources
    reading = [
        source for source in sources.values() if topic is None or source.kafka.selects(topic)
    ]
    if len(reading) != 1:
        many = counted(len(reading), "source") if reading else "no source"
        if topic is None:
            raise ConfigError(f"{path}: {many} would read the messages; specify --topic")
        raise ConfigError(
            f"{path}: {many} reads topic {topic}; correct it, or use --format and --bootstrap "
            "instead of --config"
        )
    return reading[0]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"--kafka {text.partition('=')[0]!r}: write NAME=VALUE")
    return name, value


def _read_file(selection: MessageSelection, file: Path, source: SourceSettings) -> RecordChunk:
    data = sys.stdin.buffer.read() if str(file) == _STDIN else file.read_bytes()
    topic = selection.topic or _NO_TOPIC
    if selection.whole:
        return whole_chunk(data, topic)
    if describe_format(source.data_format).registry == "required":
        raise ConfigError(
            f"messages of '{source.data_format}' are not lines of text: add --whole if the file is "
            "one message, or read them from their --topic"
        )
    separator = None if selection.key_separator is None else selection.key_separator.encode()
    return lines_chunk(data, topic, separator=separator, limit=selection.records)


def _read_topic(
    selection: MessageSelection, topic: str, source: SourceSettings
) -> list[RecordChunk]:
    partitions = {topic: (selection.partition,)}
    cluster = OffsetClient(source.kafka, request_seconds=_ASK_SECONDS)
    known = cluster.list_topic_partitions().get(topic, ())
    if selection.partition not in known:
        available = f"it has {len(known)}" if known else "the topic does not exist"
        bootstrap = source.kafka.bootstrap
        raise ConfigError(
            f"no partition {selection.partition} of {topic} at {bootstrap}: {available}"
        )
    first = cluster.beginning_offsets(partitions)[topic][selection.partition]
    end = cluster.end_offsets(partitions)[topic][selection.partition]
    at = first if selection.offset is None else selection.offset
    start = end + at if at < 0 else at
    if not first <= start < end:
        raise ConfigError(
            f"{topic}/{selection.partition} has no offset {at}: its log has {first} up to {end - 1}"
            if end > first
            else f"{topic}/{selection.partition} is empty"
        )
    until = min(end, start + (selection.records or 1))
    ranged = OffsetRange(source.kafka.name, topic, selection.partition, start, until)
    headers = source.needs_headers
    return list(
        fetch(
            source.kafka, ranged, max_records=until - start, max_bytes=_MAX_BYTES, headers=headers
        )
    )
