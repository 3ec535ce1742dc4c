"""The status of a daemon as people and pipes see it."""

import io
import re
from typing import Any

from rich.console import Console

from ingestd.cli.keyboard import parse_keys
from ingestd.cli.watch import status_line, status_view
from ingestd.cli.watch_tables import TablesView, after_key, ordered
from ingestd.daemon.status import Status
from ingestd.errors import SourceError
from ingestd.ingest.batch_events import BatchSummary, OpenedTable, TableCommit
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.paimon.io.file_io import MemoryFileIO
from tests.support.native_tables import native_table


def busy() -> Status:
    status = Status("shop", "1.2.3", ["s"], lambda: 1000.0)
    status.enter("running")
    status.source_answered("s", {"t": {0: 30}})
    status.batch_started("7", [OffsetRange("s", "t", 0, 0, 20)])
    counts = Counts()
    counts.records[SourcePartition("s", "t", 0)] = 20
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


def test_the_lag_of_silent_brokers_is_not_known() -> None:
    status = busy()
    status.sample()
    assert re.search(r"^lag +\S+ 10$", shown(status), re.MULTILINE)
    status.source_went_silent("s", "no broker")
    status.sample()
    assert re.search(r"^lag +\S+ -$", shown(status), re.MULTILINE)


def test_names_and_messages_cannot_reach_the_terminal_as_commands() -> None:
    assert "\x1b" not in shown(busy(), "note\x1b[2J")


def test_a_daemon_that_has_done_nothing_yet_is_shown_too() -> None:
    text = shown(Status("new", "1", []))
    assert "none under way" in text
    assert "lag=- lag_seconds=- " in status_line(Status("new", "1", []).document())


def many(count: int) -> dict[str, Any]:
    document = busy().document()
    (table,) = document["tables"].values()
    document["tables"] = {
        f"db.t{number:02}": {**table, "rows": number % 7, "lag_seconds": number or None}
        for number in range(count)
    }
    return document


def text_of(document: dict[str, Any], view: TablesView, height: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=120).print(status_view(document, None, view, height))
    return stream.getvalue()


def test_every_table_is_reached_and_the_view_fits_the_terminal() -> None:
    document, view = many(60), TablesView()
    seen: set[str] = set()
    for _ in range(60):
        text = text_of(document, view, 24)
        assert len(text.splitlines()) <= 24
        seen |= set(re.findall(r"db\.t\d\d", text))
        view = after_key(document, view, "down")
    assert len(seen) == 60
    assert "tables 53 to 60 of 60" in text_of(document, view, 24)


def test_tables_are_sorted_by_each_column_with_unknown_values_last() -> None:
    document, view = many(10), TablesView()
    orders = {}
    for _ in range(5):
        orders[view.sort] = ordered(document, view)
        view = after_key(document, view, "s")
    assert view.sort == "table"
    assert orders["rows"][:3] == ["db.t06", "db.t05", "db.t04"]
    assert orders["lag"][0] == "db.t09"
    assert orders["lag"][-1] == "db.t00"


def test_one_table_is_opened_and_left() -> None:
    document = many(3)
    view = TablesView()
    for key in ("down", "down", "down", "x", "enter"):
        view = after_key(document, view, key)
    assert (view.selected, view.is_open) == ("db.t02", True)
    assert "last result" in text_of(document, view, 24)
    del document["tables"]["db.t02"]
    assert "no longer in the status" in text_of(document, view, 24)
    assert not after_key(document, view, "escape").is_open


def test_a_batch_has_its_total_duration() -> None:
    document = many(1)
    (name,) = document["tables"]
    (batch,) = document["recent"]["batches"]
    batch["snapshots"] = {name: 3}
    batch["seconds"] = {"read": 1.5, "commit": 2.25, "total": 4.0}
    text = text_of(document, TablesView(selected=name, is_open=True), 24)
    assert re.search(r"^7 .* 3 +4\.0 *$", text, re.MULTILINE)


def test_tables_from_before_a_restart_are_shown() -> None:
    status = Status("shop", "1.2.3", ["s"])
    schema = native_table("/w", [("id", "INT")], io=MemoryFileIO()).schema
    status.tables_opened({"db.old": OpenedTable(schema, 41, 1000.0)})
    assert re.search(r"db.old +41 ", text_of(status.document(), TablesView(), 24))
    opened = TablesView(selected="db.old", is_open=True)
    assert "1970-01-01T00:16:40Z" in text_of(status.document(), opened, 24)


def test_errors_have_their_time() -> None:
    assert "1970-01-01T00:16:40Z SourceError: broke" in shown(busy())


def test_a_pipeline_without_tables_takes_keys() -> None:
    document = Status("new", "1", []).document()
    for key in ("up", "down", "enter", "s", "escape"):
        assert not after_key(document, TablesView(), key).is_open


def test_keys_of_terminals_have_names() -> None:
    assert parse_keys("\x1b[A\x1bOBs\r\x1b") == ["up", "down", "s", "enter", "escape"]
    assert parse_keys("\x1b[5~q") == ["q"]
