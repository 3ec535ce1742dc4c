"""`ingestd verify --against-kafka`: compare the offsets that tables cover with the logs."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ingestd.cli.output import Row, print_json, print_table, say
from ingestd.cli.progress_line import waiting
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError
from ingestd.ingest.recovery.audit import (
    log_rows,
    loss_findings,
    recount_findings,
    table_findings,
)
from ingestd.ingest.recovery.log_coverage import compare_logs, find_losses
from ingestd.ingest.recovery.logs import Logs, ask_logs
from ingestd.ingest.recovery.recount import (
    Recount,
    Replay,
    check_countable,
    covered_span,
    recount,
    scratch_settings,
)
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.pipeline_warehouse import open_catalog, open_file_io
from ingestd.ingest.tables.registry_opening import OpenedTables, RegistryOpening
from ingestd.kafka.consumer_pool import close_consumers
from ingestd.kafka.offsets import OffsetClient
from ingestd.paimon.io.file_io import absolute_path
from ingestd.paimon.table.verify.verify_findings import Finding

_LOST = frozenset({"log-truncated", "log-replaced", "topic-recreated", "topic-deleted"})
"""Codes of findings about logs that no longer contain the records that were read."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of `ingestd verify --against-kafka`.

    It consists of the findings, a row of offsets for each topic partition, and the recounts of
    tables, if requested.
    """

    findings: Sequence[Finding]
    logs: Sequence[Row]
    recounts: Sequence[Recount]

    def print(self, *, as_json: bool) -> None:
        """Print the result as tables, or with `as_json` as one JSON document."""
        findings = [asdict(finding) for finding in self.findings]
        recounts = [_recount_row(recount) for recount in self.recounts]
        if as_json:
            print_json({"findings": findings, "logs": self.logs, "recounts": recounts})
            return
        columns = ("topic", "partition", "origin_offset", "covered_offset", "log_begin_offset",
                   "log_end_offset", "compared_by")  # fmt: skip
        print_table(self.logs, columns, none="no topic has been read yet")
        if recounts:
            say("")
            print_table(recounts, tuple(recounts[0]), none="")
        say("")
        none = "nothing found: the logs have what the tables cover."
        print_table(findings, ("severity", "code", "where", "message"), none=none)


def compare_with_kafka(warehouse: str, table: str | None, config: Path, *, rows: bool) -> Compared:
    """Compare the offsets that the tables of a pipeline cover with the logs; read-only.

    `config` is the configuration of the pipeline, whose warehouse is replaced by `warehouse`.
    `table` None stands for all tables of the pipeline. With `rows` the logs are read again,
    decoded, and compared with the rows of the tables.

    Raises ConfigError for a table that the pipeline has not written, ProgressLostError for a table
    without a progress record, SourceError if brokers do not respond, and the errors of reading
    tables. With `rows`, also raises ConfigError if a log has lost or replaced records.
    """
    settings = pipeline_settings(load_config(config))
    has_path = settings.metastore != "rest"
    settings = replace(settings, warehouse=absolute_path(warehouse) if has_path else warehouse)
    with ExitStack() as stack:
        stack.enter_context(waiting("comparing tables with their logs"))
        stack.callback(close_consumers)
        opened = _open(settings, table)
        clusters = {
            name: stack.enter_context(closing(OffsetClient(source.kafka)))
            for name, source in settings.sources.items()
        }
        logs = ask_logs(clusters)
        compared = compare_logs(opened, clusters, logs)
        losses = find_losses(opened, settings, logs, compared)
        findings = loss_findings(losses, settings.dead_letters, table)
        findings += table_findings(opened, opened.missing, table)
        recounts = _recounts(settings, opened, logs, table, findings) if rows else []
    for result in recounts:
        findings += recount_findings(result)
    covered = opened.progress.end if table is None else opened.tables[table].covered
    return Compared(findings, log_rows(opened, logs, compared, covered), recounts)


def _open(settings: PipelineSettings, table: str | None) -> OpenedTables:
    io = open_file_io(settings)
    catalog = open_catalog(settings)
    opened = RegistryOpening(settings, catalog, io).open()
    names = list(opened.tables) if table is None else [table]
    if not names or not opened.tables.keys() >= set(names):
        known = ", ".join(sorted(opened.tables)) or "none"
        raise ConfigError(
            f"{settings.warehouse}: no record of pipeline {settings.name} in "
            f"{table or 'any table of database ' + settings.database}; it has written: {known}"
        )
    return opened


def _recounts(
    settings: PipelineSettings,
    opened: OpenedTables,
    logs: Logs,
    table: str | None,
    findings: Sequence[Finding],
) -> list[Recount]:
    """Return the recounts of one table, or for None of all tables except the dead-letter table.

    Raises ConfigError if a log has lost or replaced records, or if `table` is the dead-letter
    table.
    """
    lost = next((finding for finding in findings if finding.code in _LOST), None)
    if lost is not None:
        raise ConfigError(
            f"cannot recount: {lost.message}; so the logs are not those that were read: leave out "
            "--recount"
        )
    names = sorted(opened.tables.keys() - {settings.dead_letters}) if table is None else [table]
    if settings.dead_letters in names:
        raise ConfigError(f"cannot recount {table}: dead letters are not rows of a log")
    for name in names:
        check_countable(opened.tables[name].table)
    return [_recount(settings, opened, logs, name) for name in names]


def _recount(settings: PipelineSettings, opened: OpenedTables, logs: Logs, name: str) -> Recount:
    managed = opened.tables[name]
    span = covered_span(name, opened.tables, opened.progress.origin, logs)
    with TemporaryDirectory(prefix="ingestd-recount-") as folder:
        scratch = scratch_settings(settings, name, folder)
        replay = Replay(scratch, name, managed.table.schema)
        return recount(replay, name, managed, span, logs.keys)


def _recount_row(result: Recount) -> Row:
    return {
        "table": result.table,
        "records_read": result.records,
        "rejected": result.rejected,
        "rows_by_log": result.rows.expected,
        "rows_found": result.rows.found,
        "missing": result.rows.missing,
        "extra": result.rows.extra,
        "different": result.rows.different,
        "log_complete": result.complete,
    }
