"""Where the archive of classes is, whose it is, and who makes it."""

import os
import time
from pathlib import Path

import pytest

from ingestd.spark.startup import class_archive
from ingestd.spark.startup.class_archive import (
    FOLDER,
    OFF,
    archive_file,
    archive_flags,
    archive_folder,
    create_in_background,
    publish,
    temporary_archive,
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path / "cache"))
    found = archive_file("/usr/bin/java", [])
    assert found is not None
    return found


def test_the_folder_is_the_one_given_else_in_the_user_s_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert archive_folder() == Path("/cache/ingestd/spark")
    monkeypatch.setenv(FOLDER, "/given")
    assert archive_folder() == Path("/given")
    monkeypatch.setenv(FOLDER, OFF.upper())
    assert archive_folder() is None
    assert archive_file("/usr/bin/java", []) is None


def test_another_jar_means_another_archive(tmp_path: Path, file: Path) -> None:
    jar = tmp_path / "some.jar"
    jar.write_bytes(b"1")
    first = archive_file("/usr/bin/java", [str(jar)])
    assert first == archive_file("/usr/bin/java", [str(jar)])
    jar.write_bytes(b"22")
    assert len({file, first, archive_file("/usr/bin/java", [str(jar)])}) == 3


def test_flags_name_an_archive_only_while_it_is_there(file: Path) -> None:
    assert archive_flags(file) == ()
    assert archive_flags(None) == ()
    file.parent.mkdir()
    file.touch()
    assert f"-XX:SharedArchiveFile={file}" in archive_flags(file)


def test_one_process_makes_it_and_others_leave_it_alone(file: Path) -> None:
    quick = "this"  # a module that ends at once
    assert create_in_background(file, quick)
    assert not create_in_background(file, quick)
    old = time.time() - class_archive._STALE_SECONDS - 1
    os.utime(file.with_suffix(".making"), (old, old))
    assert create_in_background(file, quick), "the process that began it before did not finish"


def test_nobody_makes_what_is_there_or_cannot_be_kept(file: Path, tmp_path: Path) -> None:
    assert not create_in_background(None, "this")
    (tmp_path / "cache").touch()
    assert not create_in_background(file, "this")
    (tmp_path / "cache").unlink()
    file.parent.mkdir()
    file.touch()
    assert not create_in_background(file, "this")


def test_it_appears_whole_under_its_name_and_very_old_ones_go(file: Path) -> None:
    made = temporary_archive(file)
    old = file.parent / "old.jsa"
    old.touch()
    os.utime(old, (0, 0))
    assert not publish(made, file), "nothing was recorded"
    made.write_bytes(b"archive")
    assert publish(made, file)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
