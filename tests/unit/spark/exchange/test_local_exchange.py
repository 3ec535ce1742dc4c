"""Blobs on their way through files, or through the shuffle where there is no shared folder."""

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


def test_spans_are_where_blobs_begin_and_how_long_they_are(tmp_path: Path) -> None:
    file = open_slot_file(str(tmp_path))
    file.append(pa.py_buffer(OLD))
    file.append(b"xyz")
    file.stream.close()
    assert file.spans == [(0, 50_000), (50_000, 3)]
