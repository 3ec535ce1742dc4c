"""Files that are written over from batch to batch, but never while somebody needs them."""

import fcntl
import os
from pathlib import Path

import pyarrow as pa
import pytest

from ingestd.spark.blob_files import SPARE, SUFFIX, mapped_file, open_slot_file

LARGE = b"a" * 50_000


def spare_file(folder: Path, content: bytes, name: str = f"old{SUFFIX}") -> Path:
    (folder / SPARE).mkdir(exist_ok=True)
    path = folder / SPARE / name
    path.write_bytes(content)
    return path


def written(folder: Path, *blobs: bytes) -> str:
    file = open_slot_file(str(folder))
    for blob in blobs:
        file.append(pa.py_buffer(blob))
    file.close()
    return file.path


def test_a_spare_file_is_written_over_under_a_name_of_its_own(tmp_path: Path) -> None:
    old = spare_file(tmp_path, LARGE)
    inode = old.stat().st_ino
    path = written(tmp_path, b"b" * 30_000)
    assert not old.exists()
    assert Path(path).parent == tmp_path
    assert Path(path).stat().st_ino == inode
    assert mapped_file(path).to_pybytes() == b"b" * 30_000 + LARGE[30_000:]


def test_each_file_is_taken_once_and_then_new_ones_are_made(tmp_path: Path) -> None:
    spare_file(tmp_path, LARGE)
    first, second = open_slot_file(str(tmp_path)), open_slot_file(str(tmp_path))
    for file, mark in ((first, b"1"), (second, b"2")):
        file.append(mark * 100)
    first.close()
    second.close()
    assert mapped_file(first.path).to_pybytes()[:100] == b"1" * 100
    assert mapped_file(second.path).to_pybytes() == b"2" * 100


def test_places_tell_where_blobs_begin_and_how_long_they_are(tmp_path: Path) -> None:
    file = open_slot_file(str(tmp_path))
    file.append(pa.py_buffer(LARGE))
    file.append(b"xyz")
    file.close()
    assert file.places == [(0, 50_000), (50_000, 3)]


def test_a_file_gives_back_what_is_far_too_long(tmp_path: Path) -> None:
    spare_file(tmp_path, LARGE)
    assert Path(written(tmp_path, b"b" * 20_000)).stat().st_size == 20_000


def test_a_file_that_is_still_read_is_not_written_over(tmp_path: Path) -> None:
    old = spare_file(tmp_path, LARGE)
    part = mapped_file(str(old)).slice(1_000, 2_000)  # all that is left of it
    path = written(tmp_path, b"b" * 50_000)
    assert old.exists()
    assert Path(path) != old
    assert part.to_pybytes() == b"a" * 2_000


def test_a_new_file_is_not_taken_from_an_attempt_that_outlives_its_batch(tmp_path: Path) -> None:
    late = open_slot_file(str(tmp_path))
    (tmp_path / SPARE).mkdir()
    old = Path(late.path).rename(tmp_path / SPARE / f"old{SUFFIX}")
    path = written(tmp_path, b"b" * 100)
    late.append(b"a" * 200)
    late.close()
    assert mapped_file(path).to_pybytes() == b"b" * 100
    assert old.stat().st_size == 200


def test_a_file_can_be_taken_when_its_last_reader_has_gone(tmp_path: Path) -> None:
    old = spare_file(tmp_path, LARGE)
    part = mapped_file(str(old)).slice(1_000, 2_000)
    del part
    written(tmp_path, b"b")
    assert not old.exists()


def test_a_file_that_is_still_written_is_left_alone(tmp_path: Path) -> None:
    old = spare_file(tmp_path, LARGE)
    with old.open("r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        written(tmp_path, b"b")
    assert old.read_bytes() == LARGE


def test_other_files_and_folders_are_not_taken(tmp_path: Path) -> None:
    other = spare_file(tmp_path, LARGE, "kept rows")
    (tmp_path / SPARE / f"folder{SUFFIX}").mkdir()
    written(tmp_path, b"b")
    assert other.read_bytes() == LARGE


def test_without_locks_every_file_is_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "not supported")

    old = spare_file(tmp_path, LARGE)
    monkeypatch.setattr(fcntl, "flock", refuse)
    before = len(os.listdir("/proc/self/fd"))
    path = written(tmp_path, b"b")
    assert old.read_bytes() == LARGE
    assert mapped_file(path).to_pybytes() == b"b"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_is_not_there_is_the_callers_affair(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mapped_file(str(tmp_path / "gone"))
