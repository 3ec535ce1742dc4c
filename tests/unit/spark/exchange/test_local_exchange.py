"""Blobs on their way through files, or through the shuffle where there is no shared folder."""

import fcntl
import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from ingestd.errors import RetryableError
from ingestd.ingest.rows.blobs import (
    Blob,
    BlobOrigin,
    Report,
    UnsentRows,
    as_bytes,
    encode_report,
    receive,
)
from ingestd.ingest.values.counts import Counts
from ingestd.paimon.spec.data_types import RowKind
from ingestd.spark.exchange.local_exchange import (
    RECYCLED,
    SUFFIX,
    FolderBlobStore,
    map_file,
    open_slot_file,
    read_blobs,
    write_blobs,
)

LARGE = [bytes([n]) * (40_000 + n) for n in range(4)]
PAIRS: list[tuple[int, Blob]] = [
    (0, pa.py_buffer(LARGE[0])),
    (1, pa.py_buffer(LARGE[1])),
    (0, b"small"),
    (0, pa.py_buffer(LARGE[2])),
    (1, pa.py_buffer(LARGE[3])),
]


def arrived(pairs: list[tuple[int, bytes]], slot: int) -> list[bytes]:
    blobs = read_blobs(blob for where, blob in pairs if where == slot)
    return sorted(as_bytes(blob) for blob in blobs)


def test_blobs_arrive_at_their_slots_through_files(tmp_path: Path) -> None:
    pairs = list(write_blobs(PAIRS, str(tmp_path)))
    assert arrived(pairs, 0) == sorted([LARGE[0], b"small", LARGE[2]])
    assert arrived(pairs, 1) == sorted([LARGE[1], LARGE[3]])


def test_only_names_and_small_blobs_go_through_the_shuffle(tmp_path: Path) -> None:
    pairs = list(write_blobs(PAIRS, str(tmp_path)))
    assert max(len(blob) for _, blob in pairs) < 1_000
    assert len(list(tmp_path.iterdir())) == 2  # one file for each slot


def test_what_is_no_rows_arrives_as_what_it_was_however_large_it_is(tmp_path: Path) -> None:
    counts = Counts(rows=Counter({(f"table_{n}", RowKind.INSERT): n for n in range(5_000)}))
    report = encode_report(Report(counts=counts))
    assert len(report) > 40_000
    pairs = list(write_blobs([(0, report), *PAIRS], str(tmp_path)))
    assert receive(read_blobs(blob for _, blob in pairs[:1])).reports == (Report(counts=counts),)


def test_without_a_folder_blobs_go_through_the_shuffle_themselves() -> None:
    pairs = list(write_blobs(PAIRS, None))
    assert [(slot, as_bytes(blob)) for slot, blob in PAIRS] == pairs
    assert arrived(pairs, 1) == sorted([LARGE[1], LARGE[3]])


def test_two_attempts_of_a_task_do_not_meet(tmp_path: Path) -> None:
    abandoned = write_blobs(PAIRS, str(tmp_path))
    next(abandoned)
    abandoned.close()  # type: ignore[attr-defined]  # a generator
    pairs = list(write_blobs(PAIRS, str(tmp_path)))
    assert arrived(pairs, 1) == sorted([LARGE[1], LARGE[3]])


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    with pytest.raises(RetryableError, match=r"gone.*spark\.local\.dir"):
        list(write_blobs(PAIRS, gone))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    pairs = list(write_blobs(PAIRS, str(tmp_path)))
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(RetryableError, match="was not cleaned"):
        arrived(pairs, 0)


def test_a_blob_store_returns_what_was_put(tmp_path: Path) -> None:
    blob_store = FolderBlobStore(str(tmp_path))
    names = [blob_store.put(pa.py_buffer(one)) for one in LARGE]
    assert None not in names
    assert [bytes(memoryview(blob_store.get(str(name)) or b"")) for name in names] == LARGE


def test_a_blob_store_that_cannot_be_written_keeps_nothing_and_a_missing_blob_is_none(
    tmp_path: Path,
) -> None:
    assert FolderBlobStore(str(tmp_path / "gone")).put(LARGE[0]) is None
    assert FolderBlobStore(str(tmp_path)).get(str(tmp_path / "gone")) is None


@pytest.mark.parametrize("through_files", [True, False])
def test_rows_that_are_not_encoded_yet_arrive_as_rows(through_files: bool, tmp_path: Path) -> None:
    rows = pa.table({"id": range(20_000), "text": [None, "a"] * 10_000}).slice(7)
    unsent = [UnsentRows(BlobOrigin("db.t", "s", "topic", 1, n), rows.slice(n)) for n in (0, 5)]
    blobs = [(0, one) for one in unsent]
    pairs = list(write_blobs([*blobs, PAIRS[0]], str(tmp_path) if through_files else None))
    *sent, other = read_blobs(blob for _, blob in pairs)
    assert as_bytes(other) == LARGE[0]
    assert sent == [one.encoded() if through_files else as_bytes(one) for one in unsent]
    received = receive(sent).rows["db.t"]
    assert [one.origin.offset for one in received] == [0, 5]
    assert received[1].rows.equals(rows.slice(5))
    assert receive(unsent).rows["db.t"][0].rows.equals(rows)


OLD = b"a" * 50_000


def recycled_file(folder: Path, content: bytes, name: str = f"old{SUFFIX}") -> Path:
    (folder / RECYCLED).mkdir(exist_ok=True)
    path = folder / RECYCLED / name
    path.write_bytes(content)
    return path


def write_file(folder: Path, *blobs: bytes) -> str:
    file = open_slot_file(str(folder))
    for blob in blobs:
        file.append(pa.py_buffer(blob))
    file.close()
    return file.path


def test_a_recycled_file_is_written_over_under_a_name_of_its_own(tmp_path: Path) -> None:
    old = recycled_file(tmp_path, OLD)
    inode = old.stat().st_ino
    path = write_file(tmp_path, b"b" * 30_000)
    assert not old.exists()
    assert Path(path).parent == tmp_path
    assert Path(path).stat().st_ino == inode
    assert map_file(path).to_pybytes() == b"b" * 30_000 + OLD[30_000:]


def test_each_file_is_taken_once_and_then_new_ones_are_made(tmp_path: Path) -> None:
    recycled_file(tmp_path, OLD)
    first, second = open_slot_file(str(tmp_path)), open_slot_file(str(tmp_path))
    for file, mark in ((first, b"1"), (second, b"2")):
        file.append(mark * 100)
    first.close()
    second.close()
    assert map_file(first.path).to_pybytes()[:100] == b"1" * 100
    assert map_file(second.path).to_pybytes() == b"2" * 100


def test_spans_are_where_blobs_begin_and_how_long_they_are(tmp_path: Path) -> None:
    file = open_slot_file(str(tmp_path))
    file.append(pa.py_buffer(OLD))
    file.append(b"xyz")
    file.close()
    assert file.spans == [(0, 50_000), (50_000, 3)]


def test_a_file_gives_back_what_is_far_too_long(tmp_path: Path) -> None:
    recycled_file(tmp_path, OLD)
    assert Path(write_file(tmp_path, b"b" * 20_000)).stat().st_size == 20_000


def test_a_file_that_is_still_read_is_not_written_over(tmp_path: Path) -> None:
    old = recycled_file(tmp_path, OLD)
    part = map_file(str(old)).slice(1_000, 2_000)  # all that is left of it
    path = write_file(tmp_path, b"b" * 50_000)
    assert old.exists()
    assert Path(path) != old
    assert part.to_pybytes() == b"a" * 2_000


def test_a_new_file_is_not_taken_from_an_attempt_that_outlives_its_batch(tmp_path: Path) -> None:
    late = open_slot_file(str(tmp_path))
    (tmp_path / RECYCLED).mkdir()
    old = Path(late.path).rename(tmp_path / RECYCLED / f"old{SUFFIX}")
    path = write_file(tmp_path, b"b" * 100)
    late.append(b"a" * 200)
    late.close()
    assert map_file(path).to_pybytes() == b"b" * 100
    assert old.stat().st_size == 200


def test_a_file_can_be_taken_when_its_last_reader_has_gone(tmp_path: Path) -> None:
    old = recycled_file(tmp_path, OLD)
    part = map_file(str(old)).slice(1_000, 2_000)
    del part
    write_file(tmp_path, b"b")
    assert not old.exists()


def test_a_file_that_is_still_written_is_left_alone(tmp_path: Path) -> None:
    old = recycled_file(tmp_path, OLD)
    with old.open("r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        write_file(tmp_path, b"b")
    assert old.read_bytes() == OLD


def test_other_files_and_folders_are_not_taken(tmp_path: Path) -> None:
    other = recycled_file(tmp_path, OLD, "kept rows")
    (tmp_path / RECYCLED / f"folder{SUFFIX}").mkdir()
    write_file(tmp_path, b"b")
    assert other.read_bytes() == OLD


def test_without_locks_every_file_is_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "not supported")

    old = recycled_file(tmp_path, OLD)
    monkeypatch.setattr(fcntl, "flock", refuse)
    before = len(os.listdir("/proc/self/fd"))
    path = write_file(tmp_path, b"b")
    assert old.read_bytes() == OLD
    assert map_file(path).to_pybytes() == b"b"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_is_not_there_is_the_callers_affair(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        map_file(str(tmp_path / "gone"))
