"""A real HDFS on this machine: a namenode and two datanodes, two processes of Hadoop's own classes.

One archive comes from Maven, once into the user's cache; the rest is what PySpark brings.
"""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hdfs_native import Client, WriteOptions

from ingestd.dev.jars import cache_folder, java_command
from ingestd.dev.java_classes import compiled
from tests.support.daemon import free_port
from tests.support.java import fetched, own_names, paimon_classpath

SOURCES = Path(__file__).resolve().parent / "hdfs_java"
_START_SECONDS = 240
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")
_ANYWHERE = "127.0.0.1:0"


@dataclass
class HdfsServer:
    """A running one; paths of its files begin with `root`."""

    folder: Path
    port: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """A path of the cluster."""
        return f"hdfs://127.0.0.1:{self.port}"

    @property
    def conf(self) -> Path:
        """The folder of its settings, as HADOOP_CONF_DIR names one."""
        return self.folder / "conf"

    def start_namenode(self) -> None:
        """Start it, with the names that it knew before."""
        self._start("namenode", self.folder / "names")

    def start_datanodes(self) -> None:
        """Start both, with the blocks that they had before."""
        self._start("datanodes", self.folder / "blocks-1", self.folder / "blocks-2")

    def kill(self, what: str) -> None:
        """End the `namenode` or the `datanodes`, as a machine that breaks down."""
        process = self.processes.pop(what)
        process.kill()
        process.wait(120)

    def freeze(self) -> None:
        """Stop all threads of the namenode; its connections stay open."""
        process = self.processes["namenode"]
        process.send_signal(signal.SIGSTOP)
        while not all(map(_is_stopped, Path(f"/proc/{process.pid}/task").iterdir())):
            time.sleep(0.01)

    def thaw(self) -> None:
        """Let the namenode continue."""
        self.processes["namenode"].send_signal(signal.SIGCONT)

    def command(self, *words: object) -> None:
        """Have the namenode do something: `safemode ENTER`, `quota DIRECTORY NAMES`."""
        process = self.processes["namenode"]
        assert process.stdin
        assert process.stdout
        process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n"

    def wait(self) -> None:
        """Until files can be written; AssertionError if it takes long."""
        end = time.monotonic() + _START_SECONDS
        problem: object = ""
        while time.monotonic() < end and all(p.poll() is None for p in self.processes.values()):
            try:
                client = Client(self.root).inner
                writer = client.create(f"/probes/{time.time_ns()}", WriteOptions())
                writer.write(b"1")
                writer.close()
                return
            except (OSError, RuntimeError) as error:
                problem = error
                time.sleep(0.3)
        raise AssertionError(f"no HDFS at {self.root}: {problem}")

    def _start(self, what: str, *folders: Path) -> None:
        classpath = [self.conf, _classes(), *_archives()]
        flags = (*_FLAGS, own_names(self.folder), "-cp", ":".join(map(str, classpath)))
        command = [java_command(), *flags, "Cluster", what]
        with (self.folder / f"{what}.log").open("ab") as log:
            self.processes[what] = subprocess.Popen(
                [*command, *map(str, folders)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )


@contextmanager
def running_hdfs(folder: Path) -> Iterator[HdfsServer]:
    """The cluster as long as the block runs; JarError if its archive cannot be had."""
    server = HdfsServer(folder, free_port())
    server.conf.mkdir(parents=True)
    _write_settings(server.conf / "core-site.xml", {"fs.defaultFS": server.root})
    names = ("namenode.http-address", "datanode.address", "datanode.ipc.address")
    addresses = {f"dfs.{name}": _ANYWHERE for name in (*names, "datanode.http.address")}
    settings = {
        "dfs.replication": "2",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.fs-limits.min-block-size": "1024",
        "dfs.blocksize": str(8 << 20),
    }
    _write_settings(server.conf / "hdfs-site.xml", {**addresses, **settings})
    try:
        server.start_namenode()
        server.start_datanodes()
        server.wait()
        yield server
    finally:
        for what in tuple(server.processes):
            server.kill(what)


def _write_settings(file: Path, settings: dict[str, str]) -> None:
    lines = (
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    file.write_text(f"<configuration>\n{chr(10).join(lines)}\n</configuration>\n")


def _archives() -> list[Path]:
    return [fetched("hadoop-client-minicluster"), *paimon_classpath()[1:]]


def _classes() -> Path:
    return compiled(sorted(SOURCES.glob("*.java")), _archives(), cache_folder() / "judges")


def _is_stopped(thread: Path) -> bool:
    """Return whether the thread of a process (`/proc/PID/task/ID`) is stopped by a signal."""
    return (thread / "stat").read_text().rpartition(") ")[2].startswith("T")
