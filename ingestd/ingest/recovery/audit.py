"""Findings and report rows from a comparison of tables with their Kafka logs; pure functions."""

from collections.abc import Iterable

from ingestd.ingest.recovery.log_coverage import LogComparison, OpenTables
from ingestd.ingest.recovery.logs import LogPartition, Logs
from ingestd.ingest.recovery.losses import TO_BE, Loss, named_losses
from ingestd.ingest.recovery.recount import Recount
from ingestd.ingest.tables.log_positions import TopicName, Vector
from ingestd.paimon.table.verify.verify_findings import Finding, Severity
from ingestd.wording import counted

_MEANING = {
    "missing-rows": "rows of the logs are missing in the table",
    "extra-rows": "rows of the table are not in the logs",
    "different-rows": "rows differ from those of the logs",
}


def loss_findings(losses: Iterable[Loss], dead_letters: str, table: str | None) -> list[Finding]:
    """Return findings about records that tables lack and logs no longer have.

    They are about the losses for which a dead letter is written (see `named_losses`; `dead_letters`
    is the dead-letter table). If `table` is not None, only its losses, and those of tables that do
    not exist yet, are included. A loss to which the source's policy does not apply, such as a
    changed routing, is a warning, any other an error.
    """
    named = named_losses(losses, dead_letters)
    selected = [loss for loss in named if table is None or loss.table in (table, TO_BE)]
    return [
        Finding(
            "error" if loss.is_refusable else "warning",
            loss.reason,
            f"{loss.name.topic}/{loss.log.partition}",
            str(loss),
        )
        for loss in selected
    ]


def table_findings(opened: OpenTables, missing: Iterable[str], table: str | None) -> list[Finding]:
    """Return findings about missing tables, and tables in which another writer replaced rows.

    `missing` are the missing tables. If `table` is None, all tables are included.
    """
    findings = [
        Finding(
            "error",
            "missing-table",
            name,
            "the table had rows, and has been dropped or has no snapshot",
        )
        for name in missing
    ]
    for name, managed in sorted(opened.tables.items()):
        if managed.overwritten_by is not None:
            text = f"another writer replaced rows in snapshot {managed.overwritten_by}"
            findings.append(Finding("warning", "overwritten", name, text))
    return [finding for finding in findings if table in (None, finding.where)]


def recount_findings(recount: Recount) -> list[Finding]:
    """Return findings about differences between the rows of a table and the rows of its logs.

    If the logs no longer have all records, extra rows are not reported, and different rows are only
    a warning, because some of their values may be from expired records.
    """
    rows, findings = recount.rows, []
    for code, count in (
        ("missing-rows", rows.missing),
        ("extra-rows", rows.extra if recount.complete else 0),
        ("different-rows", rows.different),
    ):
        if count:
            partial = code == "different-rows" and not recount.complete
            severity: Severity = "warning" if partial else "error"
            keys = "; ".join(key for kind, key in rows.samples if code.startswith(kind))
            text = (
                f"{count} {_MEANING[code]} ({counted(rows.expected, 'row')} in the logs), such as "
                f"{keys}"
            )
            findings.append(Finding(severity, code, recount.table, text))
    return findings


def log_rows(
    opened: OpenTables, logs: Logs, compared: LogComparison, covered: Vector
) -> list[dict[str, object]]:
    """Return a row of the report for each log in `covered`, sorted by topic and partition.

    The keys of a row are `topic`, `partition`, `origin_offset` (at which the pipeline began to
    read), `covered_offset` (the first that is not covered), `log_begin_offset`, `log_end_offset`,
    and `compared_by` ("record", "epoch" or "offset"). The last three are None if the log does not
    exist.
    """
    progress = opened.progress
    rows: list[dict[str, object]] = []
    for key, partitions in covered.items():
        name = logs.names.get(key) or progress.topics.get(key, TopicName(key, ""))
        for partition, position in sorted(partitions.items()):
            log = LogPartition(key, partition)
            state, by = logs.states.get(log), compared.confirmed.get(log, "offset")
            rows.append(
                {
                    "topic": name.topic,
                    "partition": partition,
                    "origin_offset": progress.origin.get(key, {}).get(partition, 0),
                    "covered_offset": position.offset,
                    "log_begin_offset": state.begin if state else None,
                    "log_end_offset": state.end if state else None,
                    "compared_by": by if state else None,
                }
            )
    return sorted(rows, key=lambda row: (str(row["topic"]), str(row["partition"]).zfill(9)))
