"""The status of a daemon as people and pipes see it."""

import io

from rich.console import Console

from ingestd.cli.watch import status_line, status_view
from ingestd.daemon.status import Status
from ingestd.errors import SourceError
from ingestd.ingest.batch_events import BatchSummary, TableCommit
from ingestd.ingest.values.counts import Counts, TopicPartition
from ingestd.kafka.offset_ranges import OffsetRange


def busy() -> Status:
    status = Status("shop", "1.2.3", ["s"], lambda: 1000.0)
    status.enter("running")
    status.source_answered("s", {"t": {0: 30}})
    status.batch_started("7", [OffsetRange("s", "t", 0, 0, 20)])
    counts = Counts()
    counts.records[TopicPartition("s", "t", 0)] = 20
    commits = (TableCommit("db.\x1b[31mred", "committed", 3, 1, 0.1),)
    status.batch_finished(BatchSummary("7", {"s": {"t": {0: 20}}}, commits, counts))
    status.batch_started("8", [OffsetRange("s", "t", 0, 20, 30)])
    status.failed(SourceError("broke\x1b[2J\nbadly"))
    return status


def shown(status: Status, note: str | None = None) -> str:
    stream = io.StringIO()
    Console(file=stream, width=120).print(status_view(status.document(), note))
    return stream.getvalue()


def test_a_line_has_what_matters_most() -> None:
    line = status_line(busy().document())
    assert "pipeline=shop state=running ready=true batch=7 " in line
    assert line.count("\n") == 0


def test_the_view_has_state_batches_tables_sources_and_errors() -> None:
    text = shown(busy())
    for part in ("shop", "running", "batch 7 done, batch 8", "SourceError: broke", "snapshot"):
        assert part in text, part


def test_names_and_messages_cannot_reach_the_terminal_as_commands() -> None:
    assert "\x1b" not in shown(busy(), "note\x1b[2J")


def test_a_daemon_that_has_done_nothing_yet_is_shown_too() -> None:
    text = shown(Status("new", "1", []))
    assert "none under way" in text
    assert "lag=- lag_seconds=- " in status_line(Status("new", "1", []).document())


def test_only_so_many_tables_are_listed() -> None:
    status = busy()
    document = status.document()
    (one,) = document["tables"].values()
    document["tables"] = {f"db.t{number}": one for number in range(25)}
    stream = io.StringIO()
    Console(file=stream, width=120).print(status_view(document))
    assert "and 5 more" in stream.getvalue()
