"""When an archive of classes is made; `integration/test_class_archive.py` judges a real one."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ingestd.spark.startup import training
from ingestd.spark.startup.class_archive import FOLDER, OFF
from ingestd.spark.startup.settings import JVM_OPTIONS
from ingestd.spark.startup.training import CountingReader, CountingSource, main


class Session:
    """A session whose JVM records nothing."""

    def stop(self) -> None:
        """Leave no archive."""


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    file = tmp_path / "classes.jsa"
    monkeypatch.setattr(training, "class_archive_path", lambda: file)
    return file


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options of the JVMs that were started."""
    found: list[str] = []

    def build(name: str, settings: Mapping[str, str]) -> Session:
        found.append(settings[JVM_OPTIONS])
        return Session()

    monkeypatch.setattr(training, "build_session", build)
    monkeypatch.setattr(training, "_stream", lambda session, folder: None)
    return found


def test_one_that_is_there_is_not_made_again(
    archive: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    archive.touch()
    assert main() == 0
    assert capsys.readouterr().out == f"{archive}\n"
    assert started == []


def test_a_jvm_that_records_nothing_is_reported(
    archive: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main() == 1
    assert FOLDER in capsys.readouterr().err
    assert ["ArchiveClassesAtExit" in options for options in started] == [True]
    assert not archive.exists()


def test_without_archives_none_is_made(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, OFF)
    assert main() == 1
    assert started == []


def test_the_stream_of_the_training_has_some_batches_without_rows_and_then_waits() -> None:
    reader = CountingSource({}).streamReader(None)
    assert isinstance(reader, CountingReader)
    offset, limit = reader.initialOffset(), reader.getDefaultReadLimit()
    batches = 0
    while (after := reader.latestOffset(offset, limit)) != offset:
        (part,) = reader.partitions(offset, after)
        assert list(reader.read(part)) == []
        offset, batches = after, batches + 1
    assert batches == 3
