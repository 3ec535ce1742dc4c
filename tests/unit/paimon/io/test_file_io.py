"""Behaviour that every FileIO has, and what only the local one can get wrong."""

import multiprocessing
import pickle
import threading
import time
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from ingestd.errors import StorageError, UnsupportedError
from ingestd.paimon.io import hdfs_client, object_store
from ingestd.paimon.io.file_io import FileIO, LocalFileIO, MemoryFileIO, absolute_path, file_io_for
from ingestd.paimon.io.hdfs import HdfsFileIO
from ingestd.paimon.io.object_store import ObjectFileIO
from tests.support.fake_hdfs import FakeHdfs


@pytest.fixture(params=["local", "memory", "file-uri", "objects", "hdfs"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[FileIO, str]:
    if request.param == "objects":
        store = MemoryStore()
        monkeypatch.setattr(object_store, "open_store", lambda *_: store)
        return ObjectFileIO(), "s3://bucket/warehouse"
    if request.param == "hdfs":
        names = FakeHdfs()
        monkeypatch.setattr(hdfs_client, "client_of", lambda *_: names)
        return HdfsFileIO(), "hdfs://cluster/warehouse"
    if request.param == "memory":
        return MemoryFileIO(), "/warehouse"
    return LocalFileIO(), f"file://{tmp_path}" if request.param == "file-uri" else str(tmp_path)


def test_a_new_file_reads_back_and_brings_its_directories(place: tuple[FileIO, str]) -> None:
    io, root = place
    io.write_new(f"{root}/a/b/c", b"content")
    assert io.read_bytes(f"{root}/a/b/c") == b"content"
    assert io.size(f"{root}/a/b/c") == 7
    assert io.exists(f"{root}/a/b/c")
    assert io.exists(f"{root}/a/b")


def test_a_new_file_never_replaces_one(place: tuple[FileIO, str]) -> None:
    io, root = place
    io.write_new(f"{root}/f", b"first")
    with pytest.raises(StorageError, match="/f"):
        io.write_new(f"{root}/f", b"second")
    assert io.read_bytes(f"{root}/f") == b"first"


def test_only_the_first_of_a_name_is_published(place: tuple[FileIO, str]) -> None:
    io, root = place
    assert io.try_write_atomic(f"{root}/snapshot/snapshot-1", b"first")
    assert not io.try_write_atomic(f"{root}/snapshot/snapshot-1", b"second")
    assert io.read_bytes(f"{root}/snapshot/snapshot-1") == b"first"
    assert io.list_names(f"{root}/snapshot") == ["snapshot-1"]


def test_overwriting_replaces_and_leaves_nothing_else(place: tuple[FileIO, str]) -> None:
    io, root = place
    io.overwrite(f"{root}/d/LATEST", b"1")
    io.overwrite(f"{root}/d/LATEST", b"2")
    assert io.read_bytes(f"{root}/d/LATEST") == b"2"
    assert io.list_names(f"{root}/d") == ["LATEST"]


def test_what_is_missing_is_distinguished_from_failure(place: tuple[FileIO, str]) -> None:
    io, root = place
    for read in (io.read_bytes, io.size, io.open_input):
        with pytest.raises(FileNotFoundError):
            read(f"{root}/nothing")
    assert not io.exists(f"{root}/nothing")
    assert not io.exists(f"{root}/nothing/below")
    assert io.list_names(f"{root}/nothing") == []
    io.delete_quietly(f"{root}/nothing")
    io.delete_tree(f"{root}/nothing")


def test_names_are_those_one_level_down(place: tuple[FileIO, str]) -> None:
    io, root = place
    io.write_new(f"{root}/d/b", b"")
    io.write_new(f"{root}/d/a/x", b"")
    io.make_directory(f"{root}/d/empty")
    assert io.list_names(f"{root}/d") == ["a", "b", "empty"]
    assert io.list_names(f"{root}/d/b") == []


def test_deleting_takes_the_file_or_the_whole_tree(place: tuple[FileIO, str]) -> None:
    io, root = place
    for name in ("t/a", "t/b/c", "tt"):
        io.write_new(f"{root}/{name}", b"x")
    io.delete_quietly(f"{root}/t/a")
    assert io.list_names(f"{root}/t") == ["b"]
    io.delete_tree(f"{root}/t")
    assert not io.exists(f"{root}/t")
    assert io.exists(f"{root}/tt")


def test_a_stream_becomes_a_file_when_it_ends_well(place: tuple[FileIO, str]) -> None:
    io, root = place
    with io.open_output(f"{root}/bucket-0/data") as stream:
        stream.write(b"abc")
        stream.write(b"def")
    with io.open_input(f"{root}/bucket-0/data") as stream:
        stream.seek(2)
        assert stream.read() == b"cdef"
    with pytest.raises(StorageError), io.open_output(f"{root}/bucket-0/data") as stream:
        stream.write(b"other")
    assert io.read_bytes(f"{root}/bucket-0/data") == b"abcdef"


def test_a_stream_that_fails_leaves_no_file(place: tuple[FileIO, str]) -> None:
    io, root = place
    with pytest.raises(RuntimeError), io.open_output(f"{root}/d/f") as stream:
        stream.write(b"half")
        raise RuntimeError
    assert not io.exists(f"{root}/d/f")


def test_a_pickled_one_reaches_the_same_files(place: tuple[FileIO, str]) -> None:
    io, root = place
    io.write_new(f"{root}/f", b"x")
    assert pickle.loads(pickle.dumps(io)).read_bytes(f"{root}/f") == b"x"


def test_of_many_threads_one_publishes(place: tuple[FileIO, str]) -> None:
    io, root = place
    won: list[bytes] = []

    def publish(content: bytes) -> None:
        if io.try_write_atomic(f"{root}/s/snapshot-1", content):
            won.append(content)

    threads = [threading.Thread(target=publish, args=(bytes([n]) * 999,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [io.read_bytes(f"{root}/s/snapshot-1")]


def _publish_all(root: str, name: str, names: int) -> list[int]:
    io = LocalFileIO()
    return [n for n in range(names) if io.try_write_atomic(f"{root}/{n}", name.encode() * 500)]


def test_of_many_processes_one_publishes_each_name(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        jobs = [(str(tmp_path), name, 60) for name in "abc"]
        won = pool.starmap(_publish_all, jobs)
    assert sorted(n for names in won for n in names) == list(range(60))
    for name, numbers in zip("abc", won, strict=True):
        assert all((tmp_path / str(n)).read_text() == name * 500 for n in numbers)
    assert len(list(tmp_path.iterdir())) == 60


def test_a_refused_write_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    io = LocalFileIO()
    for act in (io.write_new, io.try_write_atomic, io.overwrite):
        with pytest.raises(StorageError, match="file/below"):
            act(f"{tmp_path}/file/below", b"")


def test_a_failed_publication_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    with pytest.raises(StorageError, match="snapshot-1"):
        LocalFileIO().try_write_atomic(f"{tmp_path}/snapshot-1", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("uri", ["/w", "file:/w", "file:///w", "w/x:y", "relative"])
def test_paths_and_file_uris_are_local(uri: str) -> None:
    assert file_io_for(uri) == LocalFileIO()


@pytest.mark.parametrize("uri", ["viewfs:/w", "ftp://b"])
def test_another_scheme_is_refused_by_name(uri: str) -> None:
    with pytest.raises(UnsupportedError, match=f"'{uri.partition(':')[0]}'"):
        file_io_for(uri)


def test_a_relative_warehouse_is_made_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_path("w/") == f"{tmp_path}/w"
    assert absolute_path("file:///w/x/") == "/w/x"


def test_a_renamed_directory_keeps_all_it_holds(place: tuple[FileIO, str]) -> None:
    io, root = place
    io.write_new(f"{root}/a/b/c", b"content")
    io.rename_directory(f"{root}/a", f"{root}/x/y")
    assert io.read_bytes(f"{root}/x/y/b/c") == b"content"
    assert not io.exists(f"{root}/a")


def test_a_rename_never_replaces(place: tuple[FileIO, str]) -> None:
    io, root = place
    io.write_new(f"{root}/a/f", b"a")
    io.write_new(f"{root}/b/f", b"b")
    with pytest.raises(StorageError, match="/a"):
        io.rename_directory(f"{root}/a", f"{root}/b")
    assert (io.read_bytes(f"{root}/a/f"), io.read_bytes(f"{root}/b/f")) == (b"a", b"b")
    with pytest.raises(StorageError):
        io.rename_directory(f"{root}/none", f"{root}/c")


def test_a_listing_shows_what_is_there_and_how_old(place: tuple[FileIO, str]) -> None:
    io, root = place
    assert io.list_entries(f"{root}/a") == []
    io.write_new(f"{root}/a/b/c", b"content")
    io.write_new(f"{root}/a/x", b"12")
    found = io.list_entries(f"{root}/a")
    assert [(one.name, one.is_directory) for one in found] == [("b", True), ("x", False)]
    assert found[1].size == 2
    if not isinstance(io, MemoryFileIO):
        assert abs(found[1].modified_ms / 1000 - time.time()) < 3600


def test_a_link_is_no_directory_of_ours(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "there")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    found = LocalFileIO().list_entries(str(tmp_path))
    kinds = [(one.name, one.is_directory) for one in found]
    assert kinds == [("here", False), ("lost", False), ("there", True)]


def test_only_an_empty_directory_is_deleted_as_such(place: tuple[FileIO, str]) -> None:
    io, root = place
    io.make_directory(f"{root}/empty")
    io.write_new(f"{root}/full/f", b"x")
    assert io.delete_empty_directory(f"{root}/empty")
    assert not io.exists(f"{root}/empty")
    for path in ("empty", "full", "full/f", "never"):
        assert not io.delete_empty_directory(f"{root}/{path}")
    assert io.read_bytes(f"{root}/full/f") == b"x"
