"""`ingestd plan`: show what a pipeline would do to its tables."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ingestd.cli.output import AsJson, Row, print_json, print_table, say
from ingestd.cli.sampled_dry_run import Planned, dry_run_pipeline
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.ingest.dry_run.dry_run import DryRun
from ingestd.ingest.dry_run.table_preview import ColumnPreview, TablePreview, table_previews
from ingestd.log import printable, redact
from ingestd.wording import counted

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
        int,
        typer.Option("--records", min=1, help="Maximum number of records to read of each topic."),
    ] = 200,
    as_json: AsJson = False,
) -> None:
    """Show what a pipeline would do to its tables, without doing it.

    Reads the oldest and the newest records of every topic and decodes and routes them as the
    daemon does. Shows which table each source table is written to; its columns, and whether they
    are new, widened or unchanged; keys, partition keys, buckets and options; source tables that
    share a target; and records that would become dead letters, with their coordinates.

    Nothing is written: no table, no schema, no offset. Exit code 5 if a table could not be created
    or cannot take its rows, or if a topic would stop the pipeline or be set aside because its
    messages are of another data format.

    **Examples**

    ingestd plan -c shop.yaml

    ingestd plan -c shop.yaml --records 5000 --json
    """
    planned = dry_run_pipeline(pipeline_settings(load_config(config)), records)
    if as_json:
        print_json(plan_document(config, planned))
    else:
        print_plan(planned)
    raise typer.Exit(0 if planned.result.passed else _STOPPED)


def plan_document(config: Path, planned: Planned) -> Mapping[str, object]:
    """Return the result of a dry run as the JSON document of `ingestd plan --json`."""
    result = planned.result
    return {
        "file": str(config),
        "passed": result.passed,
        "topics": _topic_rows(planned),
        "tables": [_table_document(table_preview) for table_preview in table_previews(result)],
        "excluded": {
            str(source_table): rows for source_table, rows in sorted(result.excluded.items())
        },
        "truncated": sorted(result.truncates.accepted),
        "warnings": [redact(warning) for warning in planned.warnings],
        "control": result.counts.control,
        "rejected": {
            "total": result.counts.rejected.total(),
            "by_reason": _reasons(result),
            "samples": [
                {**asdict(rejected_record), "message": redact(rejected_record.message)}
                for rejected_record in result.rejected
            ],
        },
    }


def print_plan(planned: Planned) -> None:
    """Print the result of a dry run as tables and text."""
    result = planned.result
    names = ("source", "topic", "partitions", "offsets", "sampled")
    print_table(_topic_rows(planned), names, none="No topic is there yet.")
    for table_preview in table_previews(result):
        _print_table(table_preview)
        if table_preview.table in result.truncates.accepted:
            _line("truncated", "a truncate is among the records; older rows are not counted")
    for source_table, rows in sorted(result.excluded.items()):
        say(f"\nleft out by routing: {printable(str(source_table))} ({counted(rows, 'row')})")
    _print_rejected(result)
    for (source, topic), problem in sorted(result.topic_problems.items()):
        say(f"\ntopic {topic} of source {source} would stop the pipeline")
        _line("problem", redact(problem))
    for (source, topic), problem in sorted(result.set_aside.items()):
        say(f"\ntopic {topic} of source {source} would be set aside")
        _line("problem", redact(problem))
    if planned.warnings:
        say("")
    for warning in planned.warnings:
        say(f"warning: {redact(warning)}", colour="yellow")
    _print_verdict(result)


def _print_verdict(result: DryRun) -> None:
    """Print whether the pipeline would run; if not, repeat every problem on a line of its own."""
    if result.passed:
        say("\nNothing was written. Nothing of the sample would stop the pipeline.")
        return
    problems = [f"table {table}: {why}" for table, why in sorted(result.table_problems.items())]
    topics = sorted({**result.set_aside, **result.topic_problems}.items())
    problems += [f"topic {topic} of source {source}: {why}" for (source, topic), why in topics]
    say(f"\nNothing was written. FAILED by {counted(len(problems), 'problem')}:", colour="red")
    for problem in problems:
        say(f"  {printable(redact(problem))}")


def _topic_rows(planned: Planned) -> list[Row]:
    """Return a row for each topic: the size of its log, the sampled records, and any problem."""
    sampled: dict[tuple[str, str], int] = {}
    for offset_range, chunks in planned.sample.items():
        topic = (offset_range.source, offset_range.topic)
        sampled[topic] = sampled.get(topic, 0) + sum(len(chunk.offsets) for chunk in chunks)
    problems = {**planned.result.set_aside, **planned.result.topic_problems}
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


def _table_document(preview: TablePreview) -> Mapping[str, object]:
    return {
        **asdict(preview),
        "problem": preview.problem and redact(preview.problem),
        "columns": [_column_row(preview, column) for column in preview.columns],
    }


def _column_row(table: TablePreview, column: ColumnPreview) -> Row:
    keys = {"primary": table.primary_keys, "partition": table.partition_keys}
    return {
        "column": column.name,
        "type": str(column.type),
        "key": ", ".join(word for word, names in keys.items() if column.name in names),
        "change": column.change,
    }


def _print_table(preview: TablePreview) -> None:
    say(f"\n{preview.table} {_VERDICTS[preview.verdict]}")
    _line("from", ", ".join(preview.sources))
    _line("topics", ", ".join(preview.topics))
    if preview.problem:
        _line("problem", redact(preview.problem))
    if not preview.columns:
        return
    rows = ", ".join(f"{count} {kind}" for kind, count in preview.rows.items())
    options = ", ".join(f"{name}={value}" for name, value in sorted(preview.options.items()))
    _line("rows", rows or "none counted")
    if preview.where is not None:
        _line("where", f"{preview.where}: {counted(preview.filtered, 'row')} did not pass")
    if preview.deleted_at is not None:
        _line("deletes", f"keep their rows, with the time in {preview.deleted_at}")
    _line("key", ", ".join(preview.primary_keys) or "none: an append table")
    _line("partition", ", ".join(preview.partition_keys) or "none")
    _line("buckets", preview.buckets)
    _line("options", options or "none")
    if preview.dropped:
        _line("dropped", ", ".join(preview.dropped))
    columns = [_column_row(preview, column) for column in preview.columns]
    print_table(columns, ("column", "type", "key", "change"), none="")


def _print_rejected(result: DryRun) -> None:
    if not result.counts.rejected:
        return
    say(f"\n{counted(result.counts.rejected.total(), 'record')} would become dead letters:")
    for reason, count in _reasons(result).items():
        say(f"  {count:>6} {reason}")
    rows = [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "why": f"{record.stage}/{record.reason}: {redact(record.message)}",
        }
        for record in result.rejected[:_SHOWN_REJECTED]
    ]
    print_table(rows, ("topic", "partition", "offset", "why"), none="")


def _reasons(result: DryRun) -> dict[str, int]:
    counts = sorted(result.counts.rejected.items())
    return {f"{stage}/{reason}": count for (stage, reason), count in counts}


def _line(title: str, text: str) -> None:
    say(f"  {title:<9} {printable(text)}")
