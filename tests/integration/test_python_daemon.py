"""What the worker daemon does to its process."""

import os
import select
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

from ingestd.spark.startup.settings import WORKER_MEMORY

PROBE = """
import os, sys, importlib, zipimport
sys.path.append("/some/archive.zip")
from ingestd.spark.startup import prefork_server, python_daemon
python_daemon.forget_archives()
python_daemon.preload(prefork_server._PLANNING)
importlib.invalidate_caches()
loaded = {"numpy", "pyarrow.parquet", "fastavro", "confluent_kafka", "ingestd.spark.stages",
          "ingestd.kafka.fetch", "ingestd.cdc.formats.debezium_json",
          "ingestd.paimon.format.parquet", "ingestd.spark.offset_source"}
assert loaded <= sys.modules.keys(), loaded - sys.modules.keys()
assert not [entry for entry in sys.path if entry.endswith(".zip")]
print(len(os.listdir("/proc/self/task")))
"""
PACKAGES = (
    "aws_msk_iam_sasl_signer",
    "boto3",
    "botocore",
    "hdfs_native",
    "opentelemetry",
    "psycopg",
)
"""Packages of extras, which an installation may lack."""
WITHOUT_EXTRAS = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {PACKAGES!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
"""


def test_the_daemon_preloads_the_stages_without_starting_a_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"


def test_the_daemon_preloads_without_the_packages_of_extras() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS + PROBE], timeout=180, check=True)


def test_a_sigterm_to_all_ends_neither_daemon_nor_worker_and_the_closed_pipe_ends_both() -> None:
    daemon = subprocess.Popen(
        [sys.executable, "-m", "ingestd.spark.startup.python_daemon", "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    (port,) = struct.unpack("!i", daemon.stdout.read(4))
    with socket.create_connection(("127.0.0.1", port), 120) as first:
        (worker,) = struct.unpack("!i", first.recv(4))
        for pid in (daemon.pid, worker):
            os.kill(pid, signal.SIGTERM)
        with socket.create_connection(("127.0.0.1", port), 120) as second:
            (other,) = struct.unpack("!i", second.recv(4))  # the daemon serves
            os.kill(other, 0)
        os.kill(worker, 0)
        daemon.stdin.close()
        daemon.wait(120)
    assert _ended(worker), "a worker outlives its daemon"


def _ended(pid: int) -> bool:
    """Whether a process ends in time."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 30)[0])
    finally:
        os.close(process)


def umask_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))


def test_workers_write_with_the_umask_of_the_driver_whatever_the_daemon_s_own_is() -> None:
    daemon = subprocess.Popen(
        [sys.executable, "-m", "ingestd.spark.startup.python_daemon", "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "INGESTD_UMASK": "27",
            "PYTHON_WORKER_FACTORY_SECRET": "s",
            "PYTHON_UNIX_DOMAIN_ENABLED": "false",
        },
        umask=0o077,
    )
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    (port,) = struct.unpack("!i", daemon.stdout.read(4))
    assert umask_of(daemon.pid) == 0o077
    with socket.create_connection(("127.0.0.1", port), 120) as connection:
        (worker,) = struct.unpack("!i", connection.recv(4))
        connection.sendall(struct.pack("!i", 1) + b"s")
        assert connection.recv(6) == struct.pack("!i", 2) + b"ok"  # it is in its loop
        assert umask_of(worker) == 0o027
    daemon.stdin.close()
    daemon.wait(120)
    daemon.stdout.close()


LIMITED = """
from ingestd.spark.startup import python_daemon
python_daemon.preload()
python_daemon.limit_memory()
kept = bytearray(64 << 20)
try:
    bytearray(512 << 20)
except MemoryError:
    print("limited")
"""


def test_a_worker_has_the_limit_of_memory_that_its_environment_says() -> None:
    variables = {**os.environ, WORKER_MEMORY: str(512 << 20)}
    command = [sys.executable, "-c", LIMITED]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False, env=variables
    )
    assert (done.returncode, done.stdout.strip()) == (0, "limited"), done.stderr
