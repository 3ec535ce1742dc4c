"""A Hive Metastore of Hive 3.1 as a process, with its own database in memory.

    with HiveMetastore(folder) as metastore:
        catalog = load_catalog("hive", warehouse, {"uri": metastore.uri})

Everything but three archives is out of PySpark.
"""

import socket
import time
from pathlib import Path

from ingestd.dev.jars import cache_folder, java_command
from ingestd.dev.java_classes import compiled
from tests.support.closing import Closing
from tests.support.daemon import free_port
from tests.support.guarded_process import GuardedProcess
from tests.support.java import fetched, own_names, spark_jars

_START_SECONDS = 120
_SOURCES = [Path(__file__).parent / "hive_java" / "Metastore.java"]
_ARCHIVES = ("hive-standalone-metastore", "libthrift", "commons-collections")
_REPLACED = (
    "hive-metastore",
    "hive-exec",
    "hive-beeline",
    "hive-cli",
    "hive-jdbc",
    "libthrift-",
    "spark-",
)
_CLIENT = (
    "commons-codec", "commons-lang-", "commons-lang3", "commons-logging", "guava", "hive-common",
    "hive-exec", "hive-metastore", "hive-serde", "hive-shims", "hive-storage-api", "javax.jdo",
    "libfb303", "libthrift", "log4j-1.2-api", "log4j-api", "log4j-core",
)  # fmt: skip
_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "metastore.schema.verification": "false",
    "metastore.expression.proxy": (
        "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy"
    ),
    "metastore.task.threads.always": ("org.apache.hadoop.hive.metastore.events.EventCleanerTask"),
}
_FLAGS = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
)


def java_catalog() -> list[Path]:
    """What a judge needs for Paimon's HiveCatalog, beside Paimon."""
    client = (jar for jar in sorted(spark_jars().glob("*.jar")) if jar.name.startswith(_CLIENT))
    return [fetched("paimon-flink-2.0:1.4.2"), *client]


class HiveMetastore(Closing):
    """One running server, whose default warehouse is below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: GuardedProcess | None = None

    @property
    def uri(self) -> str:
        """The address for clients."""
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        jars = [jar for jar in sorted(spark_jars().glob("*.jar")) if not _replaced(jar)]
        jars = [*map(fetched, _ARCHIVES), *jars]
        classes = compiled(_SOURCES, jars, cache_folder() / "judges")
        settings = {**_SETTINGS, "metastore.warehouse.dir": str(self._folder / "warehouse")}
        flags = [f"-D{name}={value}" for name, value in settings.items()]
        classpath = ":".join(map(str, [classes, *jars]))
        port = ("-p", str(self.port))
        flags += [*_FLAGS, own_names(self._folder)]
        command = [java_command(), *flags, "-cp", classpath, "Metastore", *port]
        log = self._folder / "metastore.log"
        self._process = GuardedProcess(command, log)
        end = time.monotonic() + _START_SECONDS
        while not self._responds():
            running = self._process.running and time.monotonic() < end
            assert running, f"the metastore does not respond\n{log.read_text(errors='replace')}"
            time.sleep(0.1)

    def close(self) -> None:
        """End the server."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def _responds(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def _replaced(jar: Path) -> bool:
    return jar.name.startswith(_REPLACED)
