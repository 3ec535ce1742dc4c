import logging
from pathlib import Path

import pytest

from ingestd.daemon.history_file import HistoryFile, history_path
from ingestd.daemon.status import Status
from ingestd.errors import SourceError
from ingestd.ingest.batch_events import BatchSummary, TableCommit
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.offset_ranges import SourcePartition


class Clock:
    now = 1_795_000_000.0

    def __call__(self) -> float:
        return self.now


def lived(clock: Clock) -> Status:
    """A daemon with something of everything."""
    status = Status("shop", "1", ["s"], clock, clock)
    bad = RejectedSample("s", "t", 0, 5, "decode", "invalid-json", "no JSON")
    for _ in range(3):
        counts = Counts()
        counts.records[SourcePartition("s", "t", 0)] = 50
        commit = TableCommit("db.t", "committed", 1, 1, 0.1)
        status.batch_finished(BatchSummary("1", {}, (commit,), counts, (bad,), {"total": 0.5}))
        status.sample()
        clock.now += 20
    status.failed(SourceError("no broker"))
    return status


def test_the_next_process_has_the_history_of_the_last(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "history"
    before = lived(clock)
    HistoryFile(path).save(before.saved_history())
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    saved = HistoryFile(path).load()
    assert saved is not None
    after = Status("shop", "1", ["s"], clock, clock)
    after.restore(saved)
    ours, theirs = after.console_document(), before.console_document()
    assert ours["recent"] == theirs["recent"]
    assert ours["samples"] == theirs["samples"]
    assert [sample.rate for sample in ours["samples"]] == [None, 2.5, 2.5]
    clock.now += 86_400
    much_later = Status("shop", "1", ["s"], clock, clock)
    much_later.restore(saved)
    assert much_later.document()["recent"]["errors"] == [], "an error of another day"


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "link", "folder", "other"])
def test_a_damaged_or_foreign_file_is_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    path = tmp_path / "history"
    HistoryFile(path).save(lived(Clock()).saved_history())
    content = path.read_bytes()
    path.unlink()
    if damage == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif damage == "folder":
        path.mkdir()
    elif damage == "flipped":
        path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    else:
        path.write_bytes({"cut": content[:-1], "empty": b"", "other": b"{}" * 50}[damage])
    with caplog.at_level(logging.WARNING):
        assert HistoryFile(path).load() is None
    assert [record.getMessage() for record in caplog.records] == ["history_ignored"]


def test_it_is_saved_once_a_minute_and_a_full_disk_is_only_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    file = HistoryFile(tmp_path / "gone" / "history", clock)
    history = lived(Clock()).saved_history
    for _ in range(13):
        file.save_if_due(history)
        clock.now += 10
    assert [record.getMessage() for record in caplog.records] == ["history_not_saved"] * 2
    assert HistoryFile(tmp_path / "none").load() is None


def test_each_pipeline_has_its_file_where_spark_has_its_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    paths = {history_path("/lake", name, {"spark.local.dir": "/fast"}) for name in ("a", "b")}
    assert len(paths) == 2
    assert {path.parent for path in paths} == {Path("/fast")}
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/disk1,/disk2")
    assert history_path("/lake", "a", {}).parent == Path("/disk1")
