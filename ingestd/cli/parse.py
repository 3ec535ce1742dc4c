"""`ingestd parse`: decode messages and print their rows."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ingestd.cdc.base import DATA_FORMATS, Decoded, load_data_format
from ingestd.cli.message_source import MessageOptions, Wanted, read_messages, source_settings
from ingestd.cli.output import AsJson, counted, print_json, print_table, say
from ingestd.ingest.rows.decoded_rows import (
    DecodedRow,
    DecodedTable,
    decoded_tables,
    rejected_documents,
)
from ingestd.log import printable

_FINDINGS = 1
_OFFSET, _ROWKIND, _POSITION = "@offset", "@rowkind", "@position"
"""Titles that no column is likely to have."""
_FORMATS = ", ".join(sorted(DATA_FORMATS))

_File: TypeAlias = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="Messages, one a line; - is standard input.")
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
_Partition: TypeAlias = Annotated[int, typer.Option("--partition", min=0, help="Its partition.")]
_Offset: TypeAlias = Annotated[
    int | None,
    typer.Option("--offset", help="Default the oldest; -1 is the newest, -2 the one before."),
]
_Records: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--records", min=1, help="Number of records; default 1 of a topic, all of a file."
    ),
]
_Registry: TypeAlias = Annotated[
    str | None, typer.Option("--schema-registry", metavar="URL", help="Schema registry.")
]
_TypeMapping: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--type-mapping", metavar="NAME", help="As in a configuration; repeatable."),
]
_Kafka: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--kafka", metavar="NAME=VALUE", help="Property of the client; repeatable."),
]
_Config: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Use the source of this file that reads the topic."),
]


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
    """Show what a data format makes of messages: rows, their kinds, types, and what is wrong.

    The decoder is the daemon's, without what it would know of target tables. Ends with 1 if a
    record cannot be used: it is shown with the stage and reason that its dead letter would have.

    **Examples**

    ingestd parse --format debezium-json messages.jsonl

    kcat -C -b broker:9092 -t items -K '|' | ingestd parse --format json --key-separator '|' -

    ingestd parse --format json --topic items --bootstrap broker:9092 --partition 3 --offset 17

    ingestd parse -c shop.yaml --topic shop.public.orders --offset -1 --json
    """
    wanted = Wanted(file, whole, key_separator, topic, partition, offset, records)
    kafka, mapping = kafka or [], type_mapping or []
    given = MessageOptions(config, data_format, bootstrap, kafka, registry, mapping)
    source = source_settings(given, topic)
    chunks = read_messages(wanted, source)
    decode = load_data_format(source.data_format, source.format_settings).decode
    found = [decode(chunk, {}, {}) for chunk in chunks]
    _show(found, sum(len(chunk.offsets) for chunk in chunks), as_json=as_json)
    raise typer.Exit(_FINDINGS if any(one.rejected for one in found) else 0)


def _show(found: Sequence[Decoded], records: int, *, as_json: bool) -> None:
    tables = [table for one in found for table in decoded_tables(one)]
    rejected = [row for one in found for row in rejected_documents(one)]
    truncates = [
        {"table": ".".join(filter(None, it.source)), "offset": it.offset, "position": it.position}
        for one in found
        for it in one.truncates
    ]
    control = sum(one.control for one in found)
    if as_json:
        print_json(
            {
                "records": records,
                "control": control,
                "tables": [_document(one) for one in tables],
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
    """Return a table with the parts of its name, and each row as an object."""
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
