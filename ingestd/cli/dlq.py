"""`ingestd dlq`: list, count, show, replay and purge dead letters."""

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
    DeadLetters,
    DeadLetterTableName,
    NewerThan,
    OfOffset,
    OfPartition,
    OfReason,
    OfSource,
    OfStage,
    OfTable,
    OfTopic,
    OlderThan,
    millis_of,
    newest_dead_letters,
    open_dead_letters,
    time_before,
)
from ingestd.cli.groups import DryRun, group, now_ms, print_result
from ingestd.cli.output import AsJson, print_json, print_table, say, timestamp_text
from ingestd.cli.progress_line import live_count, working
from ingestd.cli.table_arguments import Warehouse
from ingestd.errors import ConfigError
from ingestd.ingest.dead_letters.dead_letter import COLUMNS
from ingestd.ingest.dead_letters.dead_letter_topic import record_headers
from ingestd.ingest.dead_letters.shown_bytes import shown_bytes
from ingestd.paimon.table.rewrite.delete_rows import Deletion, delete_rows
from ingestd.wording import counted

_SENT = (
    "Records that were sent and marked are left out when the same command is run again; records "
    "of the file in progress may arrive twice."
)
_GROUP = ("topic", "stage", "reason")
_LISTED = ("topic", "partition", "offset", "time", "table", "stage", "reason", "message")
_Form: TypeAlias = Annotated[
    str,
    typer.Option("--format", help="How bytes are shown: text, hex, or auto, by their content."),
]
_Again: TypeAlias = Annotated[
    bool, typer.Option("--again", help="Include dead letters that were replayed before.")
]

dlq = group(
    "dlq",
    "List, count, show, replay and purge dead letters: records that could not be used.",
    "ingestd dlq list /lake shop --newer-than 1h",
    "ingestd dlq show /lake shop shop.public.orders 0 4711",
    "ingestd dlq replay /lake shop --config shop.yaml --reason unknown-schema",
    "ingestd dlq purge /lake shop --older-than 30d --dry-run",
)


@dlq.command("list")
def list_dead_letters(
    warehouse: Warehouse,
    dead_letters: DeadLetterTableName,
    table: OfTable = None,
    source: OfSource = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    stage: OfStage = None,
    reason: OfReason = None,
    newer: NewerThan = None,
    older: OlderThan = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of dead letters.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List dead letters with coordinates, time, table and message of each, the newest first.

    **Examples**

    ingestd dlq list /lake shop

    ingestd dlq list /lake shop --table shop.orders --newer-than 1h --limit 500 --json
    """
    opened = open_dead_letters(warehouse, dead_letters)
    selection = DeadLetterFilter(
        source,
        topic,
        stage,
        reason,
        time_before(older, "--older-than"),
        table,
        partition,
        after_ms=time_before(newer, "--newer-than"),
    )
    _print_newest(opened, selection, limit, as_json=as_json)


def _print_newest(
    opened: DeadLetters, selection: DeadLetterFilter, limit: int, *, as_json: bool
) -> None:
    newest, total = newest_dead_letters(opened, selection, limit)
    rows = [{**row, "timestamp": timestamp_text(millis_of(row["timestamp"]))} for row in newest]
    if as_json:
        print_json({"table": opened.table.name, "total": total, "dead_letters": rows})
        return
    shown = [{**row, "time": row["timestamp"]} for row in rows]
    print_table(shown, _LISTED, none=f"{opened.table.name} has no such dead letters.")
    if total > len(rows):
        say(f"The newest {len(rows):,} of {total:,}; --limit shows more, filters select some.")


@dlq.command("count")
def count_dead_letters(
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

    ingestd dlq count /lake shop

    ingestd dlq count /lake shop --topic shop.public.orders --json
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
        raise _no_dead_letter(opened, f"{topic}/{partition}", offset)
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
    table: OfTable = None,
    source: OfSource = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    offset: OfOffset = None,
    stage: OfStage = None,
    reason: OfReason = None,
    again: _Again = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Send the unchanged records of dead letters to their topic again, or to another topic.

    Replayed dead letters are marked in a second table, and the next replay leaves them out. A
    record is appended to its topic, after newer records of its key. Headers are sent if they were
    stored, which depends on the data format.

    **Examples**

    ingestd dlq replay /lake shop -c shop.yaml --topic shop.orders --partition 0 --offset 4711

    ingestd dlq replay /lake shop --config shop.yaml --reason unknown-schema --dry-run

    ingestd dlq replay /lake shop --bootstrap broker-0:9092 --to-topic shop.mended
    """
    opened = open_dead_letters(warehouse, dead_letters)
    cluster = cluster_of(config, bootstrap)
    selection = DeadLetterFilter(source, topic, stage, reason, None, table, partition, offset)
    how = Replayed(again=again, dry_run=dry_run)
    with working(
        "replaying dead letters of", opened.table, left=_SENT, files=live_count(), dry_run=dry_run
    ) as watched:
        done = replay_all(replace(opened, table=watched), selection, cluster, to_topic, how)
    _print_replay(opened, selection, done, to_topic, as_json=as_json)


def _print_replay(
    opened: DeadLetters,
    selection: DeadLetterFilter,
    done: Replayed,
    to_topic: str | None,
    *,
    as_json: bool,
) -> None:
    if selection.offset is not None and not (done.sent or done.before or done.empty):
        raise _no_dead_letter(opened, f"{selection.topic}/{selection.partition}", selection.offset)
    name = opened.table.name
    sent, target = counted(done.sent, "record"), to_topic or "their topics"
    text = f"{name}: {sent} sent to {target}"
    text += f"; left out: {done.before} replayed before, {done.empty} without a record."
    document = {"table": name, **done.document()}
    print_result(text, document, as_json=as_json, dry_run=done.dry_run)


def _no_dead_letter(opened: DeadLetters, topic_partition: str, offset: int) -> ConfigError:
    return ConfigError(f"{opened.table.name} has no dead letter of {topic_partition} at {offset}")


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
    selection = DeadLetterFilter(source, topic, stage, reason, time_before(older, "--older-than"))
    if (selection.takes_all and not replayed) != everything:
        raise ConfigError(
            "choose dead letters: by --older-than or another option, or by --all alone"
        )
    opened = open_dead_letters(warehouse, dead_letters)

    def selected(rows: pa.Table) -> npt.NDArray[np.bool_]:
        marks = selection.marks(rows)
        return marks & opened.replays.marks(rows) if replayed else marks

    table = opened.table
    with working("purging dead letters of", table, files=live_count(), dry_run=dry_run) as watched:
        deletion = delete_rows(watched, selected, FILTER_COLUMNS, now_ms=now_ms(), dry_run=dry_run)
    _print_deletion(table.name, deletion, as_json=as_json, dry_run=dry_run)


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
            "first": timestamp_text(millis_of(group_row["timestamp_min"])),
            "last": timestamp_text(millis_of(group_row["timestamp_max"])),
        }
        for group_row in counted
    ]


def _document(row: dict[str, Any], form: str) -> dict[str, Any]:
    """Return a dead letter for printing: its time as ISO 8601, its bytes as `form` requests.

    `form` is auto, text or hex. `key_is` and `value_is` are the forms in which the key and the
    value are shown.
    """
    document = {**row, "timestamp": timestamp_text(millis_of(row["timestamp"]))}
    document["headers"] = {
        name: _shown(header, form)[0] for name, header in record_headers(row)
    } or None
    for name in ("key", "value"):
        document[name], document[f"{name}_is"] = _shown(row[name], form)
    return document


def _shown(content: bytes | None, form: str) -> tuple[str | None, str]:
    """Return bytes as they are printed, and the form in which they are shown."""
    if content is None or form == "auto":
        shown = shown_bytes(content)
        framed = shown.form == "framed"
        return str(shown) if framed else shown.content, shown.form
    if form == "hex":
        return content.hex(), "hex"
    return content.decode(errors="backslashreplace"), "text"
