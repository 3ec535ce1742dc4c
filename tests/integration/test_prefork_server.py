"""A process that the client asks for is a fork of the prefork server, with the client's streams."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ingestd.spark.startup import prefork_start
from ingestd.spark.startup.prefork_server import extend_path, receive
from ingestd.spark.startup.prefork_start import PreforkServer, open_prefork_server

PROBE = """
import os, sys
print(os.getppid(), "pyarrow.parquet" in sys.modules, os.environ["MARK"], sys.argv[1:])
"""


@pytest.fixture(scope="module")
def prefork_server() -> Iterator[PreforkServer]:
    found = open_prefork_server()
    assert found is not None
    found.spawn()
    yield found
    found.close()


def ask(
    prefork_server: PreforkServer, *arguments: str, stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    variables: Mapping[str, str] = prefork_server.variables
    return subprocess.run(
        [variables["PYSPARK_PYTHON"], *arguments],
        input=stdin,
        env={**os.environ, **variables, **more},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_daemon_of_spark_s_is_a_fork_that_ends_with_its_standard_input(
    prefork_server: PreforkServer,
) -> None:
    asked = subprocess.Popen(
        [prefork_server.variables["PYSPARK_PYTHON"], "-m", "pyspark.daemon", "pyspark.worker"],
        env={**os.environ, **prefork_server.variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert asked.stdin is not None
    assert asked.stdout is not None
    port = int.from_bytes(asked.stdout.read(4), "big")
    with socket.create_connection(("127.0.0.1", port)) as worker:
        pid = int.from_bytes(worker.recv(4), "big")
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"ingestd.spark.startup.prefork_server" in command
        assert Path(f"/proc/{pid}/comm").read_text() == "ingestd-worker\n"
    asked.stdin.close()
    assert asked.stdout.read() == b""
    assert asked.wait(60) == 0
    asked.stdout.close()


def test_a_server_that_cannot_start_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "probe_of_path.py").write_text(PROBE)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "door"))
        listener.listen()
        shim = Path(prefork_start.__file__).with_name("worker.sh")
        asked = subprocess.Popen(
            [shim, "-m", "probe_of_path"],
            env={
                **os.environ,
                "INGESTD_PREFORK": str(tmp_path / "door"),
                "INGESTD_PYTHON": sys.executable,
                "PYTHONPATH": str(tmp_path),
                "MARK": "after all",
            },
            stdout=subprocess.PIPE,
        )
        listener.accept()[0].close()
    output, _ = asked.communicate(timeout=180)
    assert b"False after all" in output


def test_other_modules_get_a_python_of_their_own(
    prefork_server: PreforkServer, tmp_path: Path
) -> None:
    (tmp_path / "probe_of_path.py").write_text(PROBE)
    done = ask(prefork_server, "-m", "probe_of_path", "one", MARK="here", PYTHONPATH=str(tmp_path))
    assert "False here ['one']" in done.stdout, done.stderr


def test_a_fork_whose_pipe_spark_has_closed_ends_without_a_word(
    prefork_server: PreforkServer,
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    asked = subprocess.Popen(
        [prefork_server.variables["PYSPARK_PYTHON"], "-m", "pyspark.daemon", "pyspark.worker"],
        env={**os.environ, **prefork_server.variables},
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    _, errors = asked.communicate(timeout=120)
    assert errors == b""


def test_without_a_server_the_client_becomes_python(
    prefork_server: PreforkServer, tmp_path: Path
) -> None:
    (tmp_path / "probe_of_path.py").write_text(PROBE)
    done = ask(
        prefork_server,
        "-m",
        "probe_of_path",
        MARK="alone",
        PYTHONPATH=str(tmp_path),
        INGESTD_PREFORK=str(tmp_path / "nobody"),
    )
    assert f"{os.getpid()} False alone" in done.stdout, done.stderr


def test_the_server_removes_its_socket_when_the_driver_has_gone() -> None:
    found = open_prefork_server()
    assert found is not None
    found.spawn()
    folder = Path(found.variables["INGESTD_PREFORK"]).parent
    assert folder.exists()
    os.close(found._end)  # as the end of the driver does, whatever ended it
    found._end = -1
    assert found._wait is not None
    assert found._wait() == 0
    assert not folder.exists()


DRIVER = """
import os, subprocess, sys
from ingestd.spark.startup.prefork_start import open_prefork_server

prefork_server = open_prefork_server()
secret = os.memfd_create("secret")
asked = subprocess.Popen(
    [prefork_server.variables["PYSPARK_PYTHON"], "-m", "pyspark.daemon", "pyspark.worker"],
    env={**os.environ, **prefork_server.variables},
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)
import ingestd.daemon.service
import threading
assert threading.active_count() == len(os.listdir("/proc/self/task")) == 1
prefork_server.fork([secret, asked.stdin.fileno(), asked.stdout.fileno()])
prefork_server.fork()
prefork_server.spawn()
(child,) = [pid for pid in map(int, subprocess.check_output(
    ["pgrep", "-P", str(os.getpid())]).split()) if pid != asked.pid
    and open(f"/proc/{pid}/comm").read() != "pgrep\\n"]
assert int.from_bytes(asked.stdout.read(4), "big"), "the fork came and served who had waited"
print(open(f"/proc/{child}/comm").read().strip())
files = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
print(any("secret" in name for name in files))
asked.stdin.close()
print(asked.wait(60))
prefork_server.close()
print(os.path.exists(os.path.dirname(prefork_server.variables["INGESTD_PREFORK"])))
"""


def test_a_driver_without_threads_becomes_one_by_a_fork_and_who_came_early_is_served() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["ingestd-prefork", "False", "0", "False"], done.stderr


def test_a_socket_that_no_process_came_to_serve_goes_with_its_folder() -> None:
    found = open_prefork_server()
    assert found is not None
    found.close()
    assert not Path(found.variables["INGESTD_PREFORK"]).parent.exists()


def test_a_request_that_is_cut_off_leaves_no_streams_open() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        socket.send_fds(ours, [(100).to_bytes(4, "big")], [0, 1, 2])
        ours.sendall(b"{")
        ours.shutdown(socket.SHUT_WR)
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(ValueError, match="truncated"):
            receive(theirs)
        assert len(os.listdir("/proc/self/fd")) == before


def test_folders_of_the_path_are_found_and_archives_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", ["first"])
    extend_path(os.pathsep.join([str(tmp_path), "/some/archive.zip", "", str(tmp_path)]))
    assert sys.path == ["first", str(tmp_path)]
