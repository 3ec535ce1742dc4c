from pathlib import Path

from ingestd.cli.progress_line import CountingFileIO, FileCounts
from ingestd.paimon.io.file_io import LocalFileIO


def test_files_are_counted_by_what_is_done_with_them(tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []
    io = CountingFileIO(
        LocalFileIO(sync=False),
        FileCounts(lambda now: told.append((now.read, now.written, now.deleted))),
    )
    file = str(tmp_path / "a")
    io.write_new(file, b"1")
    io.overwrite(file, b"2")
    assert io.read_bytes(file) == b"2"
    with io.open_input(file) as stream:
        assert stream.read() == b"2"
    io.delete_quietly(file)
    assert io.list_entries(str(tmp_path)) == []
    assert told == [(0, 1, 0), (0, 2, 0), (1, 2, 0), (2, 2, 0), (2, 2, 1), (2, 2, 1)]


def test_a_data_file_counts_once_and_one_of_our_own_never() -> None:
    counts = FileCounts(lambda _: None)
    counts.wrote_file("/t/bucket-0/new.parquet")
    for name in ("old", "old", "new"):
        counts.read_file(f"/t/bucket-0/{name}.parquet")
    counts.read_file("/t/manifest/manifest-1")
    assert (counts.data_files, counts.read) == (1, 4)
