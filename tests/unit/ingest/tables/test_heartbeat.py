import os
from pathlib import Path

import pytest

from ingestd.errors import FencedError, FormatError
from ingestd.ingest.tables.heartbeat import (
    ALIVE_MS,
    Heartbeat,
    refuse_second_daemon,
    request_reopen,
    running_daemon,
)
from ingestd.ingest.tables.pipeline_warehouse import pipeline_folder
from ingestd.paimon.io.file_io import LocalFileIO

IO = LocalFileIO()
STARTED = "2026-11-26T12:00:00+00:00"


def heartbeat(warehouse: Path, holder: str = "node-1:17:ab", pipeline: str = "shop") -> Heartbeat:
    return Heartbeat(IO, pipeline_folder(str(warehouse), pipeline), holder, STARTED)


def shift(warehouse: Path, seconds: float) -> None:
    """Let the store have written the heartbeat that much earlier."""
    path = warehouse / ".ingestd/shop/heartbeat"
    at = path.stat().st_mtime - seconds
    os.utime(path, (at, at))


def test_a_daemon_runs_as_long_as_its_heartbeat_is_renewed(tmp_path: Path) -> None:
    folder = pipeline_folder(str(tmp_path), "shop")
    assert running_daemon(IO, folder) is None
    own = heartbeat(tmp_path)
    own.renew()
    shift(tmp_path, ALIVE_MS / 1000 - 20)
    running = running_daemon(IO, folder)
    assert running is not None
    assert str(running) == f"process 17 on node-1, running since {STARTED}"
    assert 30_000 < running.renewed_ms_ago <= ALIVE_MS
    shift(tmp_path, 30)
    assert running_daemon(IO, folder) is None
    own.renew()
    assert running_daemon(IO, folder) is not None


def test_a_clock_that_was_set_back_does_not_block_the_next_start(tmp_path: Path) -> None:
    folder = pipeline_folder(str(tmp_path), "shop")
    heartbeat(tmp_path).renew()
    shift(tmp_path, -20)
    running = running_daemon(IO, folder)
    assert running is not None and running.renewed_ms_ago == 0
    shift(tmp_path, -3600)
    assert running_daemon(IO, folder) is None


def test_a_second_daemon_is_refused_also_under_a_former_name(tmp_path: Path) -> None:
    heartbeat(tmp_path).renew()
    refuse_second_daemon(IO, str(tmp_path), ("other",))
    with pytest.raises(FencedError, match=r"process 17 on node-1, .* --take-over"):
        refuse_second_daemon(IO, str(tmp_path), ("new", "shop"))


def test_a_daemon_withdraws_only_its_own_heartbeat(tmp_path: Path) -> None:
    folder = pipeline_folder(str(tmp_path), "shop")
    first, second = heartbeat(tmp_path), heartbeat(tmp_path, "node-2:9:cd")
    first.renew()
    second.renew()
    first.withdraw()
    running = running_daemon(IO, folder)
    assert running is not None
    assert running.holder == "node-2:9:cd"
    second.withdraw()
    second.withdraw()
    assert running_daemon(IO, folder) is None


def test_a_request_is_taken_once_and_only_made_to_a_running_daemon(tmp_path: Path) -> None:
    own = heartbeat(tmp_path)
    assert request_reopen(IO, str(tmp_path), "shop") is None
    assert not own.take_reopen_request()
    own.renew()
    assert request_reopen(IO, str(tmp_path), "shop") is not None
    assert own.take_reopen_request()
    assert not own.take_reopen_request()


def test_a_foreign_file_is_not_taken_for_a_daemon(tmp_path: Path) -> None:
    heartbeat(tmp_path).renew()
    (tmp_path / ".ingestd/shop/heartbeat").write_text("{}")
    with pytest.raises(FormatError, match=r"\.ingestd/shop/heartbeat.*delete it"):
        running_daemon(IO, pipeline_folder(str(tmp_path), "shop"))
