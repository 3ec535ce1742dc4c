"""A real standalone Spark cluster on this machine: a master and workers, each a process.

Ports are free ones of the loopback interface, Java's classes are those of the installed PySpark.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
_WAIT_SECONDS = 180
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
"""Of masters, workers and the program that starts them: they run for minutes."""


class SparkCluster:
    """Runs while the block does; `url` is its `spark.master`."""

    def __init__(self, folder: Path, *, workers: int, cores: int, memory: str = "1g") -> None:
        self._folder = folder
        self._workers = workers
        self._cores = cores
        self._memory = memory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def __enter__(self) -> Self:
        try:
            log = self._start("master", _MASTER, "--host", "127.0.0.1", "--port", "0")
            self.url = self._wait(log, r"Starting Spark master at (spark://\S+)")
            for _ in range(self._workers):
                self.add_worker()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(self.log())
        self.stop()

    @property
    def worker_pids(self) -> list[int]:
        """The processes of the workers, in the order of their starts."""
        return [process.pid for process in self._processes[1:]]

    def add_worker(self, environment: Mapping[str, str] | None = None) -> None:
        """Start one more worker and wait until the master knows it.

        `environment` is added to that of the worker and its executors.
        """
        number = len(self._processes) - 1
        sizes = ("--cores", str(self._cores), "--memory", self._memory)
        work = ("--work-dir", str(self._folder / f"work-{number}"))
        log = self._start(
            f"worker-{number}",
            _WORKER,
            *("--host", "127.0.0.1", *sizes, *work, self.url),
            more=environment,
        )
        self._wait(log, r"Successfully registered with master")

    def kill_worker(self, number: int) -> None:
        """End one worker, as its machine would: with its executors, and without a word.

        Workers are numbered in the order of their starts, the killed ones included.
        """
        process = self._processes[1 + number]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)

    def stop(self) -> None:
        """End every process of the cluster, executors included."""
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):  # executors may outlive their worker
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)

    def log(self) -> str:
        """What the processes and their executors have said."""
        files = [*self._folder.glob("*.log"), *self._folder.glob("work-*/*/*/stderr")]
        return "\n".join(f"{path}\n{path.read_text(errors='replace')[-3000:]}" for path in files)

    def _start(self, name: str, *arguments: str, more: Mapping[str, str] | None = None) -> Path:
        log = self._folder / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _JVM_FLAGS,
            "SPARK_LAUNCHER_OPTS": _JVM_FLAGS,
            "SPARK_MASTER_WEBUI_PORT": "0",
            "SPARK_WORKER_WEBUI_PORT": "0",
            "PYSPARK_PYTHON": sys.executable,
            **(more or {}),
        }
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self._processes.append(process)
        return log

    def _wait(self, log: Path, pattern: str) -> str:
        deadline = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < deadline:
            found = re.search(pattern, log.read_text(errors="replace"))
            if found is not None:
                return found[found.lastindex or 0]
            if self._processes[-1].poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"Spark did not start:\n{log.read_text(errors='replace')[-4000:]}")
