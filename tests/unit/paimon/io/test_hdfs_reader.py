"""Ranges of a file, wherever its blocks lie by then."""

import io

import pytest

from ingestd.errors import StorageError
from ingestd.paimon.io import hdfs_client
from ingestd.paimon.io.hdfs import HdfsReader
from ingestd.paimon.io.hdfs_client import Hdfs
from tests.support.fake_hdfs import FakeHdfs

GONE = RuntimeError('DataTransferError("the datanode is gone")')


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> FakeHdfs:
    fake = FakeHdfs({"/": None, "/f": bytes(range(100))})
    monkeypatch.setattr(hdfs_client, "client_of", lambda *_: fake)
    monkeypatch.setattr(hdfs_client, "_FIRST_WAIT", 0.0)
    return fake


def opened(names: FakeHdfs) -> HdfsReader:
    reader = names.read("/f")
    names.asked.clear()
    return HdfsReader(Hdfs("hdfs://c", frozenset()), "/f", "hdfs://c/f", reader)


def test_ranges_are_read_from_where_it_stands(names: FakeHdfs) -> None:
    reader = opened(names)
    assert reader.readable()
    assert reader.seekable()
    assert reader.seek(-3, io.SEEK_END) == 97
    assert reader.read() == bytes([97, 98, 99])
    assert reader.read(5) == b""
    assert reader.seek(10) == 10
    assert reader.read(2) == bytes([10, 11])
    assert reader.seek(1, io.SEEK_CUR) == reader.tell() == 13
    assert names.asked == ["range", "range"]


def test_blocks_that_have_gone_elsewhere_are_found_again(names: FakeHdfs) -> None:
    reader = opened(names)
    names.before["range"] = [GONE, GONE]
    assert reader.read(3) == bytes([0, 1, 2])
    assert names.asked.count("read") == 2


def test_a_file_that_is_gone_is_named(names: FakeHdfs) -> None:
    reader = opened(names)
    del names.files["/f"]
    names.before["range"] = [GONE]
    with pytest.raises(StorageError, match="cannot read from 0 on hdfs://c/f"):
        reader.read(3)
