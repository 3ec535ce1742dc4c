"""What the worker daemon does to its process."""

import os
import subprocess
import sys

from ingestd.spark.settings import WORKER_MEMORY

PROBE = """
import os, sys, importlib, zipimport
sys.path.append("/some/archive.zip")
from ingestd.spark import nursery, python_daemon
python_daemon.forget_archives()
python_daemon.preload(nursery._PLANNING)
importlib.invalidate_caches()
loaded = {"numpy", "pyarrow.parquet", "fastavro", "confluent_kafka", "ingestd.spark.stages",
          "ingestd.kafka.fetch", "ingestd.cdc.formats.debezium_json",
          "ingestd.paimon.format.parquet", "ingestd.spark.offset_source"}
assert loaded <= sys.modules.keys(), loaded - sys.modules.keys()
assert not [entry for entry in sys.path if entry.endswith(".zip")]
print(len(os.listdir("/proc/self/task")))
"""


def test_the_daemon_preloads_the_stages_without_starting_a_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"


LIMITED = """
from ingestd.spark import python_daemon
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
        command, capture_output=True, text=True, timeout=60, check=False, env=variables
    )
    assert (done.returncode, done.stdout.strip()) == (0, "limited"), done.stderr
