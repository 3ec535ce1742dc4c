"""What a comparison of tables with their logs found, as findings and rows of a report; pure."""

from collections.abc import Iterable

from ingestd.ingest.recovery.comparison import LogComparison, OpenTables
from ingestd.ingest.recovery.logs import Logs
from ingestd.ingest.recovery.losses import TO_BE, Loss, named_losses
from ingestd.ingest.recovery.recount import Recount
from ingestd.ingest.tables.positions import TopicName, Vector
from ingestd.paimon.table.verify.findings import Finding, Severity

_MEANING = {
    "missing-rows": "rows that the logs have for the table are not in it",
    "extra-rows": "rows of the table are not in its logs",
    "different-rows": "rows have other contents than the logs have",
}


def loss_findings(losses: Iterable[Loss], dead_letters: str, table: str | None) -> list[Finding]:
    """Return what tables lack and logs no longer have; of one table, or (None) of the pipeline.

    Changed routing is a warning: nothing is lost by it.
    """
    named = named_losses(losses, dead_letters)
    wanted = [one for one in named if table is None or one.table in (table, TO_BE)]
    return [
        Finding(
            "error" if one.is_refusable else "warning",
            one.reason,
            f"{one.name.topic}/{one.place[1]}",
            str(one),
        )
        for one in wanted
    ]


def table_findings(opened: OpenTables, missing: Iterable[str], table: str | None) -> list[Finding]:
    """Return tables that are gone, and those in which another writer replaced rows."""
    found = [
        Finding(
            "error", "missing-table", name, "the table had rows, and is gone or has no snapshot"
        )
        for name in missing
    ]
    for name, one in sorted(opened.tables.items()):
        if one.overwritten_by is not None:
            text = f"another writer replaced rows in snapshot {one.overwritten_by}"
            found.append(Finding("warning", "overwritten", name, text))
    return [one for one in found if table in (None, one.where)]


def recount_findings(recount: Recount) -> list[Finding]:
    """Return how the rows of a table differ from what its logs have.

    Where the logs no longer have everything, extra rows are no finding, and different ones only a
    warning: a part of their contents may come from records that expired.
    """
    rows, found = recount.rows, []
    for code, count in (
        ("missing-rows", rows.missing),
        ("extra-rows", rows.extra if recount.complete else 0),
        ("different-rows", rows.different),
    ):
        if count:
            partial = code == "different-rows" and not recount.complete
            severity: Severity = "warning" if partial else "error"
            keys = "; ".join(key for kind, key in rows.samples if code.startswith(kind))
            text = f"{count} {_MEANING[code]} ({rows.expected} rows by the logs), such as {keys}"
            found.append(Finding(severity, code, recount.table, text))
    return found


def log_rows(
    opened: OpenTables, logs: Logs, compared: LogComparison, covered: Vector
) -> list[dict[str, object]]:
    """Return a row for each log of `covered`, with what it has and by what it was compared."""
    progress = opened.progress
    rows: list[dict[str, object]] = []
    for key, partitions in covered.items():
        name = logs.names.get(key) or progress.topics.get(key, TopicName(key, ""))
        for partition, position in sorted(partitions.items()):
            state = logs.states.get((key, partition))
            by = compared.confirmed.get((key, partition), "offset")
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
