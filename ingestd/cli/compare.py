"""`ingestd compare`: compare tables with the tables of the source database."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from ingestd.cli.interrupts import interruptible
from ingestd.cli.output import AsJson, print_json, print_table, say
from ingestd.cli.progress_line import waiting
from ingestd.compare.catch_up import CatchUpTimeouts
from ingestd.compare.compare_plan import SourceOnly, Uncompared
from ingestd.compare.drivers import dialect_of, public_url
from ingestd.compare.pipeline_compare import CompareOptions, compare_tables
from ingestd.compare.report import has_differences, repair_hints
from ingestd.compare_metrics import MetricsFile
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError
from ingestd.wording import counted

_SHOWN_KEYS = 10
_Result = Mapping[str, Any]
_LEFT = "It changes nothing. With --progress-file the same command continues where it stopped."
_Config: TypeAlias = Annotated[
    Path,
    typer.Option("--config", "-c", metavar="FILE", help="The pipeline's configuration."),
]
_Tables: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TABLE",
        help="Tables, or TABLE=SCHEMA.TABLE with the source table; default all of the pipeline.",
    ),
]
_Source: TypeAlias = Annotated[
    str,
    typer.Option(
        "--source",
        metavar="URL",
        envvar="INGESTD_COMPARE_SOURCE",
        help="The database: postgresql://USER@HOST/NAME or mysql://USER@HOST/NAME.",
    ),
]
_AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="For a source without changes: compare the table as of this time (ISO 8601), or "
        "'latest'.",
    ),
]
_Slot: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--slot", metavar="NAME", help="PostgreSQL: replication slot, if there are several."
    ),
]
_Limit: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Report at most this many differences of a table.")
]
_Rate: TypeAlias = Annotated[
    int,
    typer.Option(
        "--rows-per-second", min=1, metavar="N", help="Maximum rate of reading the database."
    ),
]
_PageRows: TypeAlias = Annotated[
    int, typer.Option("--page-rows", min=1, metavar="N", help="Rows that one statement hashes.")
]
_Timeout: TypeAlias = Annotated[
    float,
    typer.Option(
        "--statement-timeout", min=1, metavar="S", help="Seconds allowed for a statement."
    ),
]
_Connector: TypeAlias = Annotated[
    float,
    typer.Option(
        "--connector-delay",
        min=0,
        metavar="S",
        help="Seconds after which a connector that does not advance is regarded as idle.",
    ),
]
_Stream: TypeAlias = Annotated[
    float,
    typer.Option(
        "--stream-timeout", min=0, metavar="S", help="Seconds to wait until a table catches up."
    ),
]
_Progress: TypeAlias = Annotated[
    Path | None,
    typer.Option("--progress-file", metavar="FILE", help="Store progress here; resume from it."),
]
_Metrics: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE",
        help="Write the result for the node exporter's textfile collector: NAME.prom.",
    ),
]
_Search: TypeAlias = Annotated[
    int,
    typer.Option(
        "--search-records",
        min=0,
        metavar="N",
        help="Search the newest N records of a table's topics for those of differing keys.",
    ),
]
_Hints: TypeAlias = Annotated[
    bool, typer.Option("--repair-hint", help="Also print how to repair the differences.")
]


def compare(
    config: _Config,
    source: _Source,
    tables: _Tables = None,
    as_of: _AsOf = None,
    slot: _Slot = None,
    limit: _Limit = 1000,
    rows_per_second: _Rate = 50_000,
    page_rows: _PageRows = 50_000,
    statement_timeout: _Timeout = 60.0,
    connector_delay: _Connector = 10.0,
    stream_timeout: _Stream = 300.0,
    progress_file: _Progress = None,
    search_records: _Search = 500_000,
    metrics_file: _Metrics = None,
    repair_hint: _Hints = False,
    as_json: AsJson = False,
) -> None:
    """Compare tables with those of the source database by key, while both change.

    The database and the lake hash ranges of keys; ranges that differ are split down to single rows.
    A row that differs is read again after the pipeline has caught up with the source, and reported
    if it still differs. Nothing is changed on either side.

    Exit code 0 if no row differs, 1 if some do, 3 if the source does not respond, 4 if the
    warehouse cannot be read.

    **Examples**

    ingestd compare -c ingestd.yaml --source postgresql://reader@db:5432/shop

    ingestd compare -c ingestd.yaml orders --source postgresql://reader@db/shop --repair-hint

    ingestd compare -c ingestd.yaml orders=public.orders --source URL --as-of latest --json
    """
    timeouts = CatchUpTimeouts(connector_delay, stream_timeout)
    options = CompareOptions(source, as_of, slot, limit, search_records, rows_per_second,
                             page_rows, statement_timeout, timeouts, progress_file)  # fmt: skip
    metrics = None if metrics_file is None else MetricsFile(metrics_file)
    _compare(config, tables or (), options, metrics, hints=repair_hint, as_json=as_json)


def _compare(
    config: Path,
    tables: Sequence[str],
    options: CompareOptions,
    metrics: MetricsFile | None,
    *,
    hints: bool,
    as_json: bool,
) -> None:
    url = public_url(options.source)
    settings = pipeline_settings(load_config(config))
    with interruptible("comparing with", url, _LEFT), waiting(f"comparing with {url}"):
        compared = list(compare_tables(settings, tables, options))
    results = [result for result in compared if not isinstance(result, (Uncompared, SourceOnly))]
    left_out = [result for result in compared if isinstance(result, Uncompared)]
    source_only = [result.table for result in compared if isinstance(result, SourceOnly)]
    if metrics is not None:
        metrics.write(settings.name, results, len(left_out), time.time())
    if not results:
        reasons = "".join(f"\n{table.table}: {table.reason}" for table in left_out)
        raise ConfigError(f"no table can be compared{reasons}")
    dialect = dialect_of(options.source)
    repairs = [hint for result in results for hint in repair_hints(result, dialect) if hints]
    if as_json:
        not_compared = [{"table": table.table, "reason": table.reason} for table in left_out]
        print_json(
            {
                "tables": results,
                "not_compared": not_compared,
                "only_in_source": source_only,
                "repair_hints": repairs,
            }
        )
    else:
        _print(results, left_out, source_only, repairs)
    raise typer.Exit(1 if any(map(has_differences, results)) else 0)


def _print(
    results: Sequence[_Result],
    left_out: Sequence[Uncompared],
    source_only: Sequence[str],
    hints: Sequence[str],
) -> None:
    columns = ("table", "source", "rows", "missing", "extra", "different", "moving", "result")
    print_table([{**result, "result": _verdict(result)} for result in results], columns, none="")
    for result in results:
        _print_rows(result)
        if result["kept"]:
            rows = counted(result["kept"], "row")
            say(f"{result['table']}: {rows} only in the lake not compared: on-truncate: ignore")
        for column in result["columns_not_compared"]:
            say(f"{result['table']}: column {column['column']} not compared: {column['reason']}")
    for table in left_out:
        say(f"{table.table}: not compared: {table.reason}")
    for name in source_only:
        say(f"{name}: only in the source: no table of the pipeline is written from it")
    for hint in hints:
        say(f"\n{hint}")


def _verdict(result: _Result) -> str:
    if not has_differences(result):
        return "equal"
    return "differs" if result["complete"] else "differs, stopped at --limit"


def _print_rows(result: _Result) -> None:
    rows = [
        {
            "kind": difference["kind"],
            "key": _pairs(difference["key"]),
            "source": _pairs(difference["source"]),
            "lake": _pairs(difference["lake"]),
            "newest_record": _coordinates(difference["newest_record"]),
        }
        for difference in result["differences"]
    ]
    if rows:
        say(f"\n{result['table']}: {counted(len(rows), 'row')}")
        searched = result["records_searched"]
        columns = ("kind", "key", "source", "lake")
        print_table(rows, columns if searched is None else (*columns, "newest_record"), none="")
        if searched is not None:
            say(f"{result['table']}: newest records searched in {counted(searched, 'record')}")
    if result["moving"]:
        keys = ", ".join(_pairs(key) for key in result["moving_keys"][:_SHOWN_KEYS])
        say(f"{result['table']}: changed during every comparison, so undecided: {keys}")


def _coordinates(record: Mapping[str, Any] | None) -> str:
    """Format the topic, partition and offset of a record; None is "not found"."""
    if record is None:
        return "not found"
    return f"{record['topic']}, partition {record['partition']}, offset {record['offset']}"


def _pairs(values: Mapping[str, str | None] | None) -> str:
    """Format a row as `column=value, ...`, or as a dash if the row does not exist."""
    if values is None:
        return "-"
    return ", ".join(f"{name}={'null' if text is None else text}" for name, text in values.items())
