"""What only HDFS can get wrong; what every FileIO does is asked of it in test_file_io.py."""

import pickle

import pytest

from ingestd.errors import ConfigError, StorageError, UnsupportedError
from ingestd.paimon.io.file_io import file_io_for
from ingestd.paimon.io.hdfs import HdfsFileIO
from tests.support.fake_hdfs import FakeHdfs, UnknownFeatureError

ROOT = "hdfs://c/lake"


def test_its_paths_open_it_with_their_options() -> None:
    options = {"hadoop-conf-dir": "/etc/hadoop", "hadoop.dfs.ha.namenodes.c": "a,b"}
    io = file_io_for(ROOT, options)
    assert io == HdfsFileIO(frozenset(options.items()))
    assert pickle.loads(pickle.dumps(io)) == io
    assert "/etc/hadoop" not in repr(io)


@pytest.mark.parametrize(
    "name", ["hadoop.dfs.replication", "hadoop-conf-loader", "security.kerberos.login.contexts"]
)
def test_an_option_that_the_client_would_ignore_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}: no such option of HDFS; there are hadoop"):
        file_io_for(ROOT, {name: "x"})


def test_a_path_without_a_place_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"begins hdfs://HOST:PORT/"):
        HdfsFileIO().exists("hdfs:/lake")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise ModuleNotFoundError("No module named 'hdfs_native'", name="hdfs_native")

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(ConfigError, match=r"hdfs_native.*pip install 'ingestd-paimon\[hdfs\]'"):
        file_io_for(ROOT)


def test_a_file_is_no_empty_directory(names: FakeHdfs) -> None:
    io = HdfsFileIO()
    io.write_new(f"{ROOT}/f", b"1")
    assert not io.delete_empty_directory(f"{ROOT}/f")
    assert not io.delete_empty_directory(f"{ROOT}/none")
    assert io.read_bytes(f"{ROOT}/f") == b"1"
    assert io.list_names(f"{ROOT}/f") == []


def test_a_deletion_that_fails_is_quiet_and_others_are_reported(names: FakeHdfs) -> None:
    io = HdfsFileIO()
    denied = RuntimeError('RPCError("org.x.AccessControlException", "no")')
    names.before["delete"] = [denied, denied, denied]
    io.delete_quietly(f"{ROOT}/f")
    with pytest.raises(StorageError, match=f"cannot delete {ROOT}/d: permission denied"):
        io.delete_tree(f"{ROOT}/d")
    io.make_directory(f"{ROOT}/d")
    with pytest.raises(StorageError, match=f"cannot delete {ROOT}/d: permission denied"):
        io.delete_empty_directory(f"{ROOT}/d")


def test_a_deletion_whose_cluster_cannot_be_found_is_logged_and_not_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    HdfsFileIO().delete_quietly("hdfs://lake/w/x")
    assert "file_not_deleted" in caplog.messages


def test_an_encrypted_directory_is_refused_by_name(names: FakeHdfs) -> None:
    names.before["create"] = [UnknownFeatureError("File encryption")]
    with pytest.raises(UnsupportedError, match=r"lake/f: File encryption"):
        HdfsFileIO().write_new(f"{ROOT}/f", b"1")


def test_a_large_file_is_read_in_ranges(names: FakeHdfs) -> None:
    data = bytes(9 << 20) + b"end"
    with HdfsFileIO().open_output(f"{ROOT}/f") as out:
        out.write(data)
    with HdfsFileIO().open_input(f"{ROOT}/f") as stream:
        stream.seek(9 << 20)
        assert stream.read() == b"end"
        assert stream.size() == len(data)
    taken = pytest.raises(StorageError, match="already exists")
    with taken, HdfsFileIO().open_output(f"{ROOT}/f") as out:
        out.write(b"other")
