"""One winner for each name, whatever becomes of requests and answers on the way."""

import pytest

from ingestd.paimon.io.hdfs import publish
from ingestd.paimon.io.hdfs_client import Hdfs
from tests.support.fake_hdfs import FakeHdfs, Trouble, UnknownFeatureError

LOST = OSError("RPC listener disconnected")
SAFE = RuntimeError('RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "no")')
DENIED = RuntimeError('RPCError("org.apache.hadoop.security.AccessControlException", "no")')


def publishes(data: bytes, *, replace: bool = False) -> bool:
    return publish(Hdfs("hdfs://c", frozenset()), "/t/s-1", lambda: iter([data]), replace=replace)


def files(names: FakeHdfs) -> dict[str, bytes]:
    return {path: data for path, data in names.files.items() if data is not None}


def test_the_first_of_a_name_stays_and_nothing_else_does(names: FakeHdfs) -> None:
    assert publishes(b"first")
    assert not publishes(b"second")
    assert files(names) == {"/t/s-1": b"first"}
    assert publishes(b"third", replace=True)
    assert files(names) == {"/t/s-1": b"third"}


@pytest.mark.parametrize("step", ["create", "write", "hsync", "close"])
@pytest.mark.parametrize("trouble", [LOST, SAFE])
def test_a_file_that_could_not_be_written_is_written_anew(
    names: FakeHdfs, step: str, trouble: Exception
) -> None:
    names.before[step] = [trouble, trouble]
    assert publishes(b"mine")
    assert files(names) == {"/t/s-1": b"mine"}


@pytest.mark.parametrize("answer", [LOST, TimeoutError(), FileNotFoundError("source is gone")])
def test_a_rename_whose_answer_was_lost_is_recognised(names: FakeHdfs, answer: Exception) -> None:
    """The library asks again when a connection breaks: then the source is not found."""
    names.after["rename"] = [answer]
    assert publishes(b"mine")
    assert files(names) == {"/t/s-1": b"mine"}


def test_a_rename_that_never_came_leaves_the_name_free_and_cannot_come_late(
    names: FakeHdfs,
) -> None:
    names.before["rename"] = [LOST]
    with pytest.raises(OSError, match="disconnected"):
        publishes(b"mine")
    assert files(names) == {}, "without its source it cannot happen any more"
    assert publishes(b"mine")


def test_after_a_lost_answer_another_writers_file_is_not_taken_for_ours(names: FakeHdfs) -> None:
    names.files["/t/s-1"] = b"theirs"
    names.before["rename"] = [LOST]
    assert not publishes(b"mine")
    assert not publishes(b"thei")
    assert not publishes(b"theirs and more")
    assert files(names) == {"/t/s-1": b"theirs"}


def test_a_replacement_that_failed_is_an_error(names: FakeHdfs) -> None:
    assert publishes(b"old")
    names.before["rename"] = [LOST]
    with pytest.raises(OSError, match="disconnected"):
        publishes(b"new", replace=True)
    assert files(names) == {"/t/s-1": b"old"}


def test_what_time_does_not_heal_is_not_tried_again(names: FakeHdfs) -> None:
    names.before["create"] = [DENIED]
    with pytest.raises(RuntimeError, match="AccessControl"):
        publishes(b"mine")
    assert names.asked.count("create") == 1
    assert files(names) == {}


def test_striped_files_that_cannot_be_synced_are_published_too(names: FakeHdfs) -> None:
    unknown: list[Trouble] = [UnknownFeatureError("hsync of erasure coded files")]
    names.before["hsync"] = unknown
    assert publishes(b"mine")
    assert files(names) == {"/t/s-1": b"mine"}
