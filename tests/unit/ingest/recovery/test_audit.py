"""What tables cover against their logs, as findings."""

from pathlib import Path

import pytest

from ingestd.ingest.recovery.audit import log_rows, loss_findings, table_findings
from ingestd.ingest.recovery.log_coverage import compare_logs, find_losses
from ingestd.ingest.recovery.logs import ask_logs
from ingestd.ingest.tables.registry_opening import RegistryOpening
from ingestd.paimon.io.file_io import LocalFileIO
from tests.support.truth_rig import Log, Topic, Truth

ORDERS, USERS = "shop.orders", "shop.users"


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    """Ten orders and ten users, in tables."""
    found = Truth(tmp_path)
    found.kafka.add_topics(ORDERS, USERS)
    found.live()
    return found


def audit(
    truth: Truth, table: str | None = None
) -> tuple[set[tuple[str, str]], list[dict[str, object]]]:
    """Code and place of each finding, and what the logs have."""
    opened = RegistryOpening(truth.settings, truth.catalog, LocalFileIO()).open()
    clusters = {"src": truth.kafka}
    logs = ask_logs(clusters)  # type: ignore[arg-type]
    compared = compare_logs(opened, clusters, logs)  # type: ignore[arg-type]
    losses = find_losses(opened, truth.settings, logs, compared)
    found = loss_findings(losses, truth.settings.dead_letters, table)
    found += table_findings(opened, opened.missing, table)
    covered = opened.progress.end if table is None else opened.tables[table].covered
    return {(one.code, one.where) for one in found}, log_rows(opened, logs, compared, covered)


def test_logs_that_have_everything_are_known_by_their_last_records(truth: Truth) -> None:
    truth.kafka.produce(ORDERS, 10)
    found, logs = audit(truth)
    assert found == set()
    assert logs == [
        {
            "topic": topic,
            "partition": 0,
            "origin_offset": 0,
            "covered_offset": 10,
            "log_begin_offset": 0,
            "log_end_offset": end,
            "compared_by": "record",
        }
        for topic, end in ((ORDERS, 11), (USERS, 10))
    ]


def test_what_cannot_be_compared_by_records_is_by_epochs(truth: Truth) -> None:
    truth.kafka.topics[ORDERS].logs[0].first = 10
    _, (orders, users) = audit(truth)
    assert (orders["compared_by"], users["compared_by"]) == ("epoch", "record")


def test_a_cut_log_is_named_for_the_tables_that_it_fed(truth: Truth) -> None:
    log = truth.kafka.topics[ORDERS].logs[0]
    log.records[6:] = []
    log.epoch += 1
    truth.kafka.produce(ORDERS, *range(20, 30))
    assert audit(truth)[0] == {("log-truncated", f"{ORDERS}/0")}
    assert audit(truth, "lake.orders")[0] == {("log-truncated", f"{ORDERS}/0")}


def test_another_last_record_under_the_same_epoch_is_named(truth: Truth) -> None:
    truth.kafka.topics[USERS].logs[0].records[9] = (99, 0)
    found, logs = audit(truth)
    assert found == {("log-replaced", f"{USERS}/0")}
    assert [log["compared_by"] for log in logs] == ["record", "offset"]


def test_records_that_expired_unread_are_named(truth: Truth) -> None:
    truth.kafka.produce(ORDERS, *range(10, 20))
    truth.kafka.topics[ORDERS].logs[0].first = 15
    assert audit(truth)[0] == {("offset-gap", f"{ORDERS}/0")}


def test_recreated_and_deleted_topics_are_named(truth: Truth) -> None:
    truth.kafka.topics[ORDERS] = Topic("another id", [Log()])
    del truth.kafka.topics[USERS]
    found, logs = audit(truth)
    assert found == {("topic-recreated", f"{ORDERS}/0"), ("topic-deleted", f"{USERS}/0")}
    assert [(log["topic"], log["log_end_offset"], log["compared_by"]) for log in logs] == [
        (ORDERS, None, None),
        (USERS, None, None),
    ]


def test_tables_that_are_gone_are_named(truth: Truth) -> None:
    for path in sorted(truth.folder("users").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    truth.folder("users").rmdir()
    assert audit(truth)[0] == {("missing-table", "lake.users")}
    assert audit(truth, "lake.orders")[0] == set()
