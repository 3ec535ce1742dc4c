"""What waits in memory and what on disk."""

from pathlib import Path

import pytest

from ingestd.errors import StorageError
from ingestd.spark.exchange.spool import Spool

ROWS = b"\xff\xff\xff\xff"
BLOBS = [ROWS + bytes([n]) * size for n, size in enumerate([10, 50, 3, 80, 1, 7])]


@pytest.mark.parametrize("room", [0, 20, 60, 1_000])
def test_every_blob_comes_back_whatever_fits_into_memory(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    spool = Spool(room)
    for blob in BLOBS:
        spool.add(blob)
    assert sorted(bytes(memoryview(blob)) for blob in spool.blobs()) == sorted(BLOBS)


def test_no_more_than_the_room_is_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    spool = Spool(65)
    for blob in BLOBS:
        spool.add(blob)
    held = [blob for blob in spool.blobs() if isinstance(blob, bytes)]
    assert 0 < sum(map(len, held)) <= 65
    assert list(tmp_path.iterdir()) == []  # nothing to be left behind by a task that is killed


def test_a_spool_is_true_once_it_holds_something(tmp_path: Path) -> None:
    spool = Spool(0)
    assert not spool
    spool.add(ROWS)
    assert spool


def test_reports_stay_in_memory_as_bytes(tmp_path: Path) -> None:
    spool = Spool(0)
    spool.add(b"ingestd-report")
    assert list(spool.blobs()) == [b"ingestd-report"]


def test_a_folder_that_cannot_be_written_is_worth_another_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "absent"))
    with pytest.raises(StorageError, match=r"spark\.local\.dir"):
        Spool(1).add(ROWS)
