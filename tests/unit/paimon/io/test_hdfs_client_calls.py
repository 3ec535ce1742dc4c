"""Deadlines, retries, and what failures are called."""

import threading

import pytest

from ingestd.errors import StorageError, UnsupportedError
from ingestd.paimon.io import hdfs_client
from ingestd.paimon.io.hdfs_client import Hdfs, failure_text, hdfs_error, may_pass
from tests.support.fake_hdfs import UnknownFeatureError

HDFS = Hdfs("hdfs://c", frozenset())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs_client, "client_of", lambda *_: "client")
    monkeypatch.setattr(hdfs_client, "_FIRST_WAIT", 0.0)


def test_a_call_has_the_client_and_its_answer() -> None:
    assert HDFS.once(lambda client: f"{client} answers") == "client answers"


def test_who_keeps_silent_is_left_and_asked_by_another_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forgotten: list[str] = []
    released = threading.Event()
    monkeypatch.setattr(hdfs_client, "forget_client", forgotten.append)
    monkeypatch.setattr(hdfs_client, "RESPONSE_SECONDS", 0.01)
    with pytest.raises(TimeoutError) as caught:
        HDFS.with_retries(lambda _: released.wait(60))
    released.set()
    assert forgotten == ["hdfs://c"]
    assert failure_text(caught.value) == "no response from the cluster within 0.01 seconds"


def test_a_failure_of_the_library_itself_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def broken(_: object) -> None:
        raise KeyError("no error that the library is known to have")

    with pytest.raises(RuntimeError, match="InternalError"):
        HDFS.once(broken)


def test_failures_that_pass_are_waited_out() -> None:
    answers = iter([OSError("refused"), rpc("RetriableException"), None])

    def ask(_: object) -> str:
        if error := next(answers):
            raise error
        return "at last"

    assert HDFS.with_retries(ask) == "at last"


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs_client, "PATIENCE_SECONDS", -1.0)
    asked = []
    with pytest.raises(RuntimeError, match="SafeMode"):
        HDFS.again(lambda: asked.append(1) or _raise(rpc("SafeModeException")))
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("error", "passes", "words"),
    [
        (OSError("Connection refused"), True, "no connection: Connection refused"),
        ("SafeModeException", True, "the namenode is in safe mode, nothing can be written: text"),
        ("StandbyException", True, "no namenode of the cluster is active: text"),
        ("AccessControlException", False, "permission denied: text"),
        ("NSQuotaExceededException", False, "the quota of names is exceeded: text"),
        ("DSQuotaExceededException", False, "the quota of space is exceeded: text"),
        ("SnapshotException", False, "SnapshotException: text"),
        (FileExistsError("/f exists\n\tat org.X(Y.java)"), False, "/f exists"),
        (RuntimeError('DataTransferError("gone")'), True, "DataTransferError: gone"),
        (RuntimeError("NoSASLMechanism"), False, "the cluster wants a login"),
    ],
)
def test_failures_are_called_by_name(error: Exception | str, passes: bool, words: str) -> None:
    error = rpc(error) if isinstance(error, str) else error
    assert may_pass(error) == passes
    assert failure_text(error).startswith(words)
    assert "\tat" not in failure_text(error)
    assert "\\tat" not in failure_text(error)


def test_datanodes_that_are_not_there_yet_may_come() -> None:
    text = "File /f could only be written to 0 of the 1 minReplication nodes."
    assert may_pass(RuntimeError(f'RPCError("java.io.IOException", "{text}")'))
    assert not may_pass(RuntimeError('RPCError("java.io.IOException", "other")'))


def test_what_the_client_does_not_know_is_refused() -> None:
    refused = hdfs_error("write", "hdfs://c/f", UnknownFeatureError("File encryption"))
    assert isinstance(refused, UnsupportedError)
    assert "cannot write hdfs://c/f: File encryption" in refused.message
    other = hdfs_error("write", "hdfs://c/f", OSError("refused"))
    assert isinstance(other, StorageError)
    assert other.message == "cannot write hdfs://c/f: no connection: refused"


def rpc(kind: str) -> RuntimeError:
    return RuntimeError(f'RPCError("org.apache.hadoop.{kind}", "text\\n\\tat org.X(Y.java)")')


def _raise(error: Exception) -> None:
    raise error
