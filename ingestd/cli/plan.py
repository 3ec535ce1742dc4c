"""`ingestd plan`: show what a pipeline would do to its tables."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ingestd.cli.dry_run import Planned, dry_run_pipeline
from ingestd.cli.output import AsJson, Row, counted, print_json, print_table, say
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.ingest.dry_run.dry_run import DryRun
from ingestd.ingest.dry_run.table_preview import ColumnPreview, TablePreview, table_previews
from ingestd.log import printable, redact

_STOPPED = 5
_SHOWN_REJECTED = 20
_VERDICTS = {
    "create": "would be created",
    "alter": "exists and would be changed",
    "keep": "exists and stays as it is",
    "impossible": "cannot take its rows",
}


def plan(
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")],
    records: Annotated[
        int, typer.Option("--records", min=1, help="Most records of each topic to look at.")
    ] = 200,
    as_json: AsJson = False,
) -> None:
    """Show what a pipeline would do to its tables, without doing it.

    Reads the oldest and the newest records of every topic and decodes and routes them as the
    daemon does. Shows which table each source table goes to; its columns, and whether they are
    new, widened or as they are; keys, partition keys, buckets and options; source tables that
    meet in one target; and records that would become dead letters, with their coordinates.

    Nothing is written: no table, no schema, no offset. Ends with 5 if a table could not be made,
    if a topic would stop the pipeline, or if it would be set aside because its messages are of
    another data format.

    **Examples**

    ingestd plan -c shop.yaml

    ingestd plan -c shop.yaml --records 5000 --json
    """
    planned = dry_run_pipeline(pipeline_settings(load_config(config)), records)
    if as_json:
        print_json(plan_document(config, planned))
    else:
        print_plan(planned)
    raise typer.Exit(0 if planned.found.passed else _STOPPED)


def plan_document(config: Path, planned: Planned) -> Mapping[str, object]:
    """Return the plan as one JSON document."""
    found = planned.found
    return {
        "file": str(config),
        "passed": found.passed,
        "topics": _topic_rows(planned),
        "tables": [_table_document(table_preview) for table_preview in table_previews(found)],
        "excluded": {str(feed): rows for feed, rows in sorted(found.excluded.items())},
        "truncated": sorted(found.truncates.emptied),
        "control": found.counts.control,
        "rejected": {
            "total": found.counts.rejected.total(),
            "by_reason": _reasons(found),
            "samples": [
                {**asdict(rejected_record), "message": redact(rejected_record.message)}
                for rejected_record in found.rejected
            ],
        },
    }


def print_plan(planned: Planned) -> None:
    """Print the plan."""
    found = planned.found
    names = ("source", "topic", "partitions", "offsets", "sampled")
    print_table(_topic_rows(planned), names, none="No topic is there yet.")
    for table_preview in table_previews(found):
        _print_table(table_preview)
        if table_preview.table in found.truncates.emptied:
            _line("truncated", "a truncate is among the records; older rows are not counted")
    for feed, rows in sorted(found.excluded.items()):
        say(f"\nleft out by routing: {printable(str(feed))} ({counted(rows, 'row')})")
    _print_rejected(found)
    for (source, topic), problem in sorted(found.topic_problems.items()):
        say(f"\ntopic {topic} of source {source} would stop the pipeline")
        _line("problem", redact(problem))
    for (source, topic), problem in sorted(found.set_aside.items()):
        say(f"\ntopic {topic} of source {source} would be set aside")
        _line("problem", redact(problem))
    if found.passed:
        say("\nNothing was written. Nothing of the sample would stop the pipeline.")


def _topic_rows(planned: Planned) -> list[Row]:
    """Return for each topic the size of its log, and how much of it was sampled."""
    sampled: dict[tuple[str, str], int] = {}
    for one, chunks in planned.sample.items():
        topic = (one.source, one.topic)
        sampled[topic] = sampled.get(topic, 0) + sum(len(chunk.offsets) for chunk in chunks)
    problems = {**planned.found.set_aside, **planned.found.topic_problems}
    return [
        {
            "source": source,
            "topic": topic,
            "partitions": len(ends),
            "offsets": sum(ends.values()) - sum(begin[topic].values()),
            "sampled": sampled.get((source, topic), 0),
            "problem": redact(problems[source, topic]) if (source, topic) in problems else None,
        }
        for source, (begin, end) in planned.logs.items()
        for topic, ends in sorted(end.items())
    ]


def _table_document(one: TablePreview) -> Mapping[str, object]:
    return {
        **asdict(one),
        "problem": one.problem and redact(one.problem),
        "columns": [_column_row(one, column) for column in one.columns],
    }


def _column_row(table: TablePreview, column: ColumnPreview) -> Row:
    keys = {"primary": table.primary_keys, "partition": table.partition_keys}
    return {
        "column": column.name,
        "type": str(column.type),
        "key": ", ".join(word for word, names in keys.items() if column.name in names),
        "change": column.change,
    }


def _print_table(one: TablePreview) -> None:
    say(f"\n{one.table} {_VERDICTS[one.verdict]}")
    _line("from", ", ".join(one.sources))
    _line("topics", ", ".join(one.topics))
    if one.problem:
        _line("problem", redact(one.problem))
    if not one.columns:
        return
    rows = ", ".join(f"{count} {kind}" for kind, count in one.rows.items())
    options = ", ".join(f"{name}={value}" for name, value in sorted(one.options.items()))
    _line("rows", rows or "none counted")
    _line("key", ", ".join(one.primary_keys) or "none: an append table")
    _line("partition", ", ".join(one.partition_keys) or "none")
    _line("buckets", one.buckets)
    _line("options", options or "none")
    if one.dropped:
        _line("dropped", ", ".join(one.dropped))
    columns = [_column_row(one, column) for column in one.columns]
    print_table(columns, ("column", "type", "key", "change"), none="")


def _print_rejected(found: DryRun) -> None:
    if not found.counts.rejected:
        return
    say(f"\n{counted(found.counts.rejected.total(), 'record')} would become dead letters:")
    for reason, count in _reasons(found).items():
        say(f"  {count:>6} {reason}")
    rows = [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "why": f"{record.stage}/{record.reason}: {redact(record.message)}",
        }
        for record in found.rejected[:_SHOWN_REJECTED]
    ]
    print_table(rows, ("topic", "partition", "offset", "why"), none="")


def _reasons(found: DryRun) -> dict[str, int]:
    counts = sorted(found.counts.rejected.items())
    return {f"{stage}/{reason}": count for (stage, reason), count in counts}


def _line(title: str, text: str) -> None:
    say(f"  {title:<9} {printable(text)}")
