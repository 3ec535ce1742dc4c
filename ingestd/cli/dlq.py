"""`ingestd dlq`: list, show, replay and purge dead letters."""

from dataclasses import replace
from typing import Annotated, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from ingestd.cli.dead_letter_replay import (
    Bootstrap,
    ConfigFile,
    Replayed,
    Target,
    cluster_of,
    replay_all,
)
from ingestd.cli.dead_letters import (
    FILTER_COLUMNS,
    DeadLetterFilter,
    DeadLetterTableName,
    OfReason,
    OfSource,
    OfStage,
    OfTopic,
    OlderThan,
    millis_of,
    older_than,
    open_dead_letters,
)
from ingestd.cli.groups import DryRun, group, now_ms, print_result
from ingestd.cli.output import AsJson, print_json, print_table, time_text
from ingestd.cli.progress_line import live_count, working
from ingestd.cli.tables import Warehouse
from ingestd.errors import ConfigError
from ingestd.ingest.dead_letters.dead_letter import COLUMNS
from ingestd.ingest.dead_letters.dead_letter_topic import record_headers
from ingestd.paimon.table.rewrite.delete_rows import Deletion, delete_rows
from ingestd.wording import counted

_SENT = (
    "Records that were sent and marked are left out when the same command is run again; records "
    "of the file in progress may arrive twice."
)
_GROUP = ("topic", "stage", "reason")
_Form: TypeAlias = Annotated[
    str, typer.Option("--format", help="Bytes as text, hex or auto: text if it is UTF-8.")
]

dlq = group(
    "dlq",
    "List, show, replay and purge dead letters: records that could not be used.",
    "ingestd dlq list /lake shop",
    "ingestd dlq show /lake shop shop.public.orders 0 4711",
    "ingestd dlq replay /lake shop --config shop.yaml --reason unknown-schema",
    "ingestd dlq purge /lake shop --older-than 30d --dry-run",
)


@dlq.command("list")
def list_dead_letters(
    warehouse: Warehouse,
    dead_letters: DeadLetterTableName,
    source: OfSource = None,
    topic: OfTopic = None,
    stage: OfStage = None,
    reason: OfReason = None,
    as_json: AsJson = False,
) -> None:
    """Count dead letters by topic, stage and reason, with the times of their first and last record.

    **Examples**

    ingestd dlq list /lake shop

    ingestd dlq list /lake shop --topic shop.public.orders --json
    """
    opened = open_dead_letters(warehouse, dead_letters)
    tables = [
        rows.append_column("replayed", pa.array(opened.replays.marks(rows).astype(np.int64)))
        for rows in opened.rows(DeadLetterFilter(source, topic, stage, reason), FILTER_COLUMNS)
    ]
    groups = _counted(pa.concat_tables(tables)) if tables else []
    if as_json:
        print_json({"table": opened.table.name, "groups": groups})
    else:
        columns = (*_GROUP, "dead_letters", "replayed", "first", "last")
        print_table(groups, columns, none=f"{opened.table.name} has no such dead letters.")


@dlq.command("show")
def show(
    warehouse: Warehouse,
    dead_letters: DeadLetterTableName,
    topic: Annotated[str, typer.Argument(help="Topic of the record.")],
    partition: Annotated[int, typer.Argument(help="Its partition.")],
    offset: Annotated[int, typer.Argument(help="Its offset.")],
    form: _Form = "auto",
    as_json: AsJson = False,
) -> None:
    """Show one dead letter, with the key and the value of the record.

    **Examples**

    ingestd dlq show /lake shop shop.public.orders 0 4711

    ingestd dlq show /lake shop shop.public.orders 0 4711 --format hex
    """
    if form not in ("auto", "text", "hex"):
        raise ConfigError(f"--format '{form}': choose auto, text or hex")
    opened = open_dead_letters(warehouse, dead_letters)
    names = opened.existing_columns(tuple(name for name, _ in COLUMNS))
    rows: list[dict[str, Any]] = []
    for topic_rows in opened.rows(DeadLetterFilter(topic=topic), names):
        same_partition = topic_rows.column("partition").to_numpy() == partition
        same_offset = topic_rows.column("offset").to_numpy() == offset
        mine = topic_rows.filter(pa.array(same_partition & same_offset))
        marks = opened.replays.marks(mine).tolist()
        pairs = zip(mine.select(names).to_pylist(), marks, strict=True)
        rows += [{**row, "replayed": mark} for row, mark in pairs]
    if not rows:
        raise ConfigError(
            f"{opened.table.name} has no dead letter of {topic}/{partition} at {offset}"
        )
    documents = [_document(row, form) for row in rows]
    if as_json:
        print_json(documents)
        return
    for document in documents:
        cells = [{"field": name, "content": value} for name, value in document.items()]
        print_table(cells, ("field", "content"), none="")


@dlq.command("replay")
def replay(
    warehouse: Warehouse,
    dead_letters: DeadLetterTableName,
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    to_topic: Target = None,
    source: OfSource = None,
    topic: OfTopic = None,
    stage: OfStage = None,
    reason: OfReason = None,
    again: Annotated[
        bool, typer.Option("--again", help="Include dead letters that were replayed before.")
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Send the unchanged records of dead letters to their topic again, or to another topic.

    Replayed dead letters are marked in a second table, and the next replay leaves them out. A
    record is appended to its topic, after newer records of its key. Headers are sent if they were
    stored, which depends on the data format.

    **Examples**

    ingestd dlq replay /lake shop --config shop.yaml --reason unknown-schema --dry-run

    ingestd dlq replay /lake shop --bootstrap broker-0:9092 --to-topic shop.mended
    """
    opened = open_dead_letters(warehouse, dead_letters)
    cluster = cluster_of(config, bootstrap)
    selection = DeadLetterFilter(source, topic, stage, reason)
    how = Replayed(again=again, dry_run=dry_run)
    what = "replaying dead letters of"
    with working(what, opened.table, left=_SENT, files=live_count()) as watched:
        done = replay_all(replace(opened, table=watched), selection, cluster, to_topic, how)
    sent, target = counted(done.sent, "record"), to_topic or "their topics"
    text = f"{opened.table.name}: {sent} sent to {target}"
    text += f"; left out: {done.before} replayed before, {done.empty} without a record."
    document = {"table": opened.table.name, **done.document()}
    print_result(text, document, as_json=as_json, dry_run=dry_run)


@dlq.command("purge")
def purge(
    warehouse: Warehouse,
    dead_letters: DeadLetterTableName,
    older: OlderThan = None,
    source: OfSource = None,
    topic: OfTopic = None,
    stage: OfStage = None,
    reason: OfReason = None,
    replayed: Annotated[
        bool, typer.Option("--replayed", help="Only dead letters that were replayed.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete dead letters, in one snapshot; older snapshots keep them until they expire.

    A running pipeline may continue; dead letters that it adds meanwhile are kept.

    **Examples**

    ingestd dlq purge /lake shop --older-than 30d --dry-run

    ingestd dlq purge /lake shop --replayed
    """
    selection = DeadLetterFilter(source, topic, stage, reason, older_than(older))
    if (selection.takes_all and not replayed) != everything:
        raise ConfigError(
            "choose dead letters: by --older-than or another option, or by --all alone"
        )
    opened = open_dead_letters(warehouse, dead_letters)

    def selected(rows: pa.Table) -> npt.NDArray[np.bool_]:
        marks = selection.marks(rows)
        return marks & opened.replays.marks(rows) if replayed else marks

    with working("purging dead letters of", opened.table, files=live_count()) as watched:
        deletion = delete_rows(watched, selected, FILTER_COLUMNS, now_ms=now_ms(), dry_run=dry_run)
    _print_deletion(opened.table.name, deletion, as_json=as_json, dry_run=dry_run)


def _print_deletion(name: str, deletion: Deletion, *, as_json: bool, dry_run: bool) -> None:
    snapshot = deletion.snapshot.id if deletion.snapshot else None
    rows, files = counted(deletion.rows, "dead letter"), counted(deletion.files, "file")
    text = f"{name}: {rows} deleted from {files}"
    text += f" by snapshot {snapshot}." if snapshot else "."
    document = {"table": name, "dead_letters": deletion.rows, "snapshot": snapshot}
    print_result(text, document, as_json=as_json, dry_run=dry_run)


def _counted(rows: pa.Table) -> list[dict[str, Any]]:
    """Return the counts of dead letters by topic, stage and reason, the largest first."""
    groups = rows.group_by(list(_GROUP)).aggregate(
        [("offset", "count"), ("replayed", "sum"), ("timestamp", "min"), ("timestamp", "max")]
    )
    counted = groups.to_pylist()
    counted.sort(
        key=lambda group_row: (-group_row["offset_count"], *(group_row[name] for name in _GROUP))
    )
    return [
        {
            **{name: group_row[name] for name in _GROUP},
            "dead_letters": group_row["offset_count"],
            "replayed": group_row["replayed_sum"],
            "first": time_text(millis_of(group_row["timestamp_min"])),
            "last": time_text(millis_of(group_row["timestamp_max"])),
        }
        for group_row in counted
    ]


def _document(row: dict[str, Any], form: str) -> dict[str, Any]:
    """Return a dead letter for printing: its time as ISO 8601, its bytes as text or hex.

    `key_is` and `value_is` name the form of its key and value: null, text or hex.
    """
    document = {**row, "timestamp": time_text(millis_of(row["timestamp"]))}
    document["headers"] = {
        name: _shown(header, form)[0] for name, header in record_headers(row)
    } or None
    for name in ("key", "value"):
        document[name], document[f"{name}_is"] = _shown(row[name], form)
    return document


def _shown(content: bytes | None, form: str) -> tuple[str | None, str]:
    """Return bytes as they are printed, and the form that was chosen: null, text or hex."""
    if content is None:
        return None, "null"
    if form != "hex":
        try:
            return content.decode(errors="strict" if form == "auto" else "backslashreplace"), "text"
        except UnicodeDecodeError:
            pass
    return content.hex(), "hex"
