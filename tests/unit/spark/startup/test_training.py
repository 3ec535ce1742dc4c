"""The archive of classes is made by a session that records, once, and put in its place."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ingestd.spark.startup import training
from ingestd.spark.startup.class_archive import FOLDER, OFF
from ingestd.spark.startup.settings import JVM_OPTIONS
from ingestd.spark.startup.training import CountingReader, CountingSource, create_archive, main


class Session:
    """A session whose JVM leaves an archive where its flags say, unless it cannot."""

    def __init__(self, options: str, *, records: bool) -> None:
        flags = dict(one.split("=", 1) for one in options.split() if "=" in one)
        self.file = Path(flags["-XX:ArchiveClassesAtExit"])
        self.records = records

    def stop(self) -> None:
        if self.records:
            self.file.write_bytes(b"archive")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    file = tmp_path / "classes.jsa"
    monkeypatch.setattr(training, "class_archive_path", lambda: file)
    return file


def start_sessions(monkeypatch: pytest.MonkeyPatch, *, records: bool) -> list[Session]:
    started: list[Session] = []

    def build(name: str, settings: Mapping[str, str]) -> Session:
        started.append(Session(settings[JVM_OPTIONS], records=records))
        return started[-1]

    monkeypatch.setattr(training, "build_session", build)
    monkeypatch.setattr(training, "_stream", lambda session, folder: None)
    return started


def test_it_is_recorded_beside_its_place_and_moved_there(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = start_sessions(monkeypatch, records=True)
    assert create_archive() == archive
    assert started[0].file != archive
    assert archive.read_bytes() == b"archive"
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]


def test_one_that_is_there_is_not_made_again(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = start_sessions(monkeypatch, records=True)
    archive.touch()
    assert main() == 0
    assert capsys.readouterr().out == f"{archive}\n"
    assert started == []


def test_a_jvm_that_records_nothing_is_told_of(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = start_sessions(monkeypatch, records=False)
    assert main() == 1
    assert FOLDER in capsys.readouterr().err
    assert len(started) == 1
    assert not archive.exists()


def test_without_archives_none_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    started = start_sessions(monkeypatch, records=True)
    monkeypatch.setenv(FOLDER, OFF)
    assert main() == 1
    assert started == []


def test_the_stream_of_the_training_goes_on_and_has_no_rows() -> None:
    reader = CountingSource({}).streamReader(None)
    assert isinstance(reader, CountingReader)
    first = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    second = reader.latestOffset(first, reader.getDefaultReadLimit())
    assert first != second
    (part,) = reader.partitions(first, second)
    assert list(reader.read(part)) == []
