import threading
from pathlib import Path

import pytest

from ingestd.daemon import heartbeat_thread
from ingestd.daemon.heartbeat_thread import HeartbeatThread
from ingestd.daemon.supervisor import DaemonSettings, supervise
from ingestd.errors import FencedError
from ingestd.ingest.batch_events import BatchListener
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.heartbeat import (
    Heartbeat,
    refuse_second_daemon,
    request_reopen,
    running_daemon,
)
from ingestd.ingest.tables.pipeline_warehouse import pipeline_folder
from ingestd.paimon.io.file_io import LocalFileIO
from tests.unit.daemon.made_runs import Run, settings
from tests.unit.daemon.test_supervisor import QUICK

IO = LocalFileIO()
WAIT_SECONDS = 60


def test_a_daemon_is_visible_while_it_runs_and_not_after(tmp_path: Path) -> None:
    mine = settings(str(tmp_path))
    refused: list[bool] = []

    def run(_: PipelineSettings, listener: BatchListener) -> Run:
        while running_daemon(IO, pipeline_folder(mine.warehouse, mine.name)) is None:
            threading.Event().wait(0.01)
        with pytest.raises(FencedError):
            refuse_second_daemon(IO, mine.warehouse, (mine.name,))
        refused.append(True)
        return Run(None, listener, mine)

    daemon = DaemonSettings("127.0.0.1:0", "1", QUICK, until_latest=True)
    assert supervise(mine, daemon, run) == 0
    assert refused == [True]
    refuse_second_daemon(IO, mine.warehouse, (mine.name,))


def test_a_request_reaches_the_daemon_and_holds_up_no_heartbeat(tmp_path: Path) -> None:
    """The tables are opened again after the batch in progress, which may take minutes."""
    folder = pipeline_folder(str(tmp_path), "shop")
    heartbeat = Heartbeat(IO, folder, "node:1:a", "now")
    asked, batch_ends, reopened = threading.Event(), threading.Event(), threading.Event()

    def reopen() -> None:
        assert not asked.is_set(), "asked for once"
        asked.set()
        batch_ends.wait(WAIT_SECONDS)
        reopened.set()

    thread = HeartbeatThread(heartbeat, reopen)
    thread.renew()
    assert not asked.is_set()
    request_reopen(IO, str(tmp_path), "shop")
    thread.renew()
    assert asked.wait(WAIT_SECONDS)
    (tmp_path / ".ingestd" / "shop" / "heartbeat").unlink()
    thread.renew()
    assert running_daemon(IO, folder) is not None
    assert not reopened.is_set()
    batch_ends.set()
    assert reopened.wait(WAIT_SECONDS)


def test_a_store_that_fails_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "lake"
    folder.write_text("a file where the warehouse should be")
    heartbeat = Heartbeat(IO, pipeline_folder(str(folder), "shop"), "node:1:a", "now")
    thread = HeartbeatThread(heartbeat, lambda: None)
    thread.renew()
    thread.renew()
    assert [record.message for record in caplog.records] == ["heartbeat_not_renewed"]
    folder.unlink()
    thread.renew()
    assert running_daemon(IO, pipeline_folder(str(folder), "shop")) is not None


def test_a_store_that_hangs_does_not_hold_up_the_end_of_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung, released = threading.Event(), threading.Event()

    class HangingIO(LocalFileIO):
        def overwrite(self, path: str, data: bytes) -> None:
            hung.set()
            released.wait(60)

    monkeypatch.setattr(heartbeat_thread, "_STOP_SECONDS", 0.01)
    folder = pipeline_folder(str(tmp_path), "shop")
    thread = HeartbeatThread(Heartbeat(HangingIO(), folder, "node:1:a", "now"), lambda: None)
    thread.start()
    assert hung.wait(120)
    thread.stop()
    released.set()
