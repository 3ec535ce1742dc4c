"""Files that executors serve to each other, from a process as that of an executor."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from ingestd.errors import StorageError
from ingestd.spark.exchange.executor_files import ExecutorFolder, executor_folder, fetch_file
from ingestd.spark.exchange.local_exchange import read_blobs, write_blobs
from tests.support.processes import stopped

ADDRESS = "INGESTD_EXCHANGE_ADDRESS"
SERVER = """
import os
from ingestd.spark.exchange.executor_files import listening_socket, serve_files
parent, listener = os.getppid(), listening_socket(0)
print(os.environ["INGESTD_EXCHANGE_ADDRESS"], flush=True)
serve_files(listener, parent)
"""
START = """
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "-c", sys.argv[1]]).returncode)
"""
JVM = """
import subprocess, sys
server = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
print(server.pid, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Executor:
    """A process whose arguments name a host, as those of an executor's JVM, and its file server."""

    process: "subprocess.Popen[str]"
    server_pid: int
    address: str
    local: Path


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Executor]:
    """An executor with files below its own local directory; this process is one of its workers."""
    local = tmp_path / "local"
    local.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(local))
    command = [sys.executable, "-c", JVM, SERVER, "--hostname", "127.0.0.1"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid, address = int(process.stdout.readline()), process.stdout.readline().strip()
        monkeypatch.setenv(ADDRESS, address)
        yield Executor(process, pid, address, local)
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
        process.kill()


def opened(number: int, oldest: int) -> Path:
    path = ExecutorFolder(number, oldest).open()
    assert path is not None
    return Path(path)


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (3 << 20) + 17])
def test_a_file_is_fetched_whole(size: int, executor: Executor) -> None:
    content = os.urandom(size)
    path = opened(3, 3) / secrets.token_hex(16)
    path.write_bytes(content)
    assert fetch_file(executor.address, str(path)).to_pybytes() == content
    assert [entry.name for entry in executor.local.iterdir()] == ["ingestd-exchange"]


def test_a_worker_without_the_folder_gets_the_same_blobs(
    executor: Executor, tmp_path: Path
) -> None:
    blobs = [bytes([n]) * 50_000 for n in range(3)]
    pairs = list(write_blobs([(1, pa.py_buffer(blob)) for blob in blobs], str(opened(0, 0))))
    sent = [bytes(blob) for _, blob in pairs]
    here = [bytes(memoryview(blob)) for blob in read_blobs(sent)]
    # The folder is where the server finds it, and not where the reference says.
    elsewhere = [blob.replace(str(executor.local).encode(), b"/another/machine") for blob in sent]
    there = [bytes(memoryview(blob)) for blob in read_blobs(elsewhere)]
    assert here == there == blobs
    assert elsewhere != sent


@pytest.mark.parametrize("name", ["0/../../secret", "0/" + "a" * 32, "/etc/passwd", ""])
def test_only_files_whose_name_is_known_are_sent(name: str, executor: Executor) -> None:
    (executor.local / "secret").write_text("secret")
    opened(0, 0)
    host, port = executor.address.split(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(f"{name}\n".encode())
        assert connection.makefile("rb").read() == b""


def test_a_file_that_is_gone_is_an_error_with_the_address(executor: Executor) -> None:
    [(_, blob)] = write_blobs([(0, pa.py_buffer(b"a" * 50_000))], str(opened(0, 0)))
    for path in executor.local.rglob("0/*"):
        path.unlink()
    with pytest.raises(StorageError, match=executor.address):
        list(read_blobs([blob]))


def test_folders_of_batches_that_have_ended_are_removed(executor: Executor) -> None:
    with executor_folder() as first, executor_folder() as second:
        assert (second.number, second.oldest) == (first.number + 1, first.number)
        opened(first.number, first.oldest)
        opened(second.number, second.oldest)
        opened(first.number, first.oldest)  # a task that runs again
        assert len(list((executor.local / "ingestd-exchange").iterdir())) == 2
    with executor_folder() as third:
        assert third.oldest == third.number
        kept = opened(third.number, third.oldest)
    assert list((executor.local / "ingestd-exchange").iterdir()) == [kept]


def test_without_a_server_blobs_go_through_the_shuffle(executor: Executor) -> None:
    os.kill(executor.server_pid, 9)
    deadline = time.monotonic() + 60
    while ExecutorFolder(0, 0).open() is not None:
        assert time.monotonic() < deadline


def test_a_server_that_hangs_gets_no_files(executor: Executor) -> None:
    assert ExecutorFolder(0, 0).open() is not None
    with stopped(executor.server_pid):
        assert ExecutorFolder(0, 0).open() is None


def test_a_folder_that_cannot_be_created_is_an_error_with_its_path(executor: Executor) -> None:
    executor.local.rmdir()
    with pytest.raises(StorageError, match=f"{executor.local}/.*spark.local.dir"):
        ExecutorFolder(0, 0).open()


def test_the_port_of_an_ended_daemon_is_awaited_and_that_of_another_program_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code = f"from ingestd.spark.startup.python_daemon import _start_file_server as s; s({port})"
        command = [sys.executable, "-c", START, code, "--hostname", "127.0.0.1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert f"StorageError: port {port} of " in done.stderr
        assert "spark.executorEnv.INGESTD_EXCHANGE_PORT" in done.stderr
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(1)  # most of it is the start of Python; the port is free soon after
            other.close()
            _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")


def test_the_server_ends_with_its_executor(executor: Executor) -> None:
    executor.process.kill()
    executor.process.wait(60)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{executor.server_pid}/stat").exists():
        if "Z" in Path(f"/proc/{executor.server_pid}/stat").read_text().rpartition(")")[2]:
            return
        assert time.monotonic() < deadline
        time.sleep(0.1)
