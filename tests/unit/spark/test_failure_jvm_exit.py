"""An error of a connection to a JVM that has ended names how it ended."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ingestd.errors import JvmLostError
from ingestd.spark.failure import jvm_exit_message, reported_jvm_exit
from ingestd.spark.startup import jvm as module
from ingestd.spark.startup.jvm import Jvm


@pytest.fixture
def jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jvm:
    """A process that stands for the session's JVM and ends when its standard input does."""
    command = (sys.executable, "-c", "import sys; sys.stdin.read()")
    made = Jvm(subprocess.Popen(command, stdin=subprocess.PIPE), command, tmp_path / "none")
    monkeypatch.setattr(module, "_kept", [made])
    return made


def test_a_connection_that_broke_because_the_jvm_was_killed_says_so(jvm: Jvm) -> None:
    jvm._process.kill()
    killed = pytest.raises(JvmLostError, match=r"JVM was killed by SIGKILL, .*memory is short")
    with killed, reported_jvm_exit():
        raise ConnectionRefusedError("of the gateway")


def test_an_error_of_another_kind_stays_what_it_is(jvm: Jvm) -> None:
    jvm._process.kill()
    with pytest.raises(KeyError), reported_jvm_exit():
        raise KeyError("k")


@pytest.mark.parametrize(
    ("code", "text"),
    [(1, "ended with 1;"), (-signal.SIGSEGV, "killed by SIGSEGV;"), (-77, "killed by signal 77;")],
)
def test_the_message_names_code_or_signal(code: int, text: str) -> None:
    assert text in jvm_exit_message(code)
