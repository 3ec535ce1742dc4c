"""Jars, compilation and start of the Java programs that the tests use as judges."""

import importlib.util
import os
import socket
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ingestd.dev.jars import cache_folder, fetch, java_command, read_pins
from ingestd.dev.java_classes import compiled
from tests.support.closing import Closing

PINS = Path(__file__).with_name("java_jars.txt")
PAIMON, PAIMON_2 = "paimon-bundle", "paimon-flink-2.0:2.0.0"
"""The archives with Java Paimon 1.4.2 and 2.0.0."""
FROM_SPARK = (
    "hadoop-client-api",
    "hadoop-client-runtime",
    "jcl-over-slf4j",
    "slf4j-api",
    "lz4-java",
    "snappy-java",
)


def spark_jars() -> Path:
    """The folder of PySpark's jars; `INGESTD_SPARK_JARS` where PySpark is not installed."""
    if given := os.environ.get("INGESTD_SPARK_JARS"):
        return Path(given)
    spark = importlib.util.find_spec("pyspark")
    assert spark, "PySpark is not installed, and INGESTD_SPARK_JARS names no folder"
    return Path(str(spark.origin)).parent / "jars"


@cache
def fetched(artifact: str) -> Path:
    """A pinned archive, out of the user's cache; `artifact` is its name, or `name:version`."""
    pins = read_pins(PINS)
    coordinate = next(pin for pin in pins if f":{artifact}:" in f"{pin}:")
    folder = cache_folder() / "judges" / artifact.replace(":", "-")
    return fetch([coordinate], folder, pins=pins)[0]


@cache
def paimon_classpath(paimon: str = PAIMON) -> tuple[Path, ...]:
    """Java Paimon and what it needs, the latter out of PySpark."""
    from_spark = (next(iter(sorted(spark_jars().glob(f"{name}-*.jar")))) for name in FROM_SPARK)
    return (fetched(paimon), *from_spark)


def compiled_classes(sources: Path, more: Sequence[Path] = (), paimon: str = PAIMON) -> Path:
    """Compile a folder of Java files against Paimon, once for each content of them."""
    files = sorted(sources.glob("*.java"))
    return compiled(files, (*paimon_classpath(paimon), *more), cache_folder() / "judges")


def own_names(folder: Path) -> str:
    """A flag of Java with which the names of this machine are its own, whatever /etc/hosts has.

    No other name has an address then.
    """
    file = folder / "hosts"
    file.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
    return f"-Djdk.net.hosts.file={file}"


def judge_command(
    main: str,
    classes: Path,
    *arguments: str,
    more: Sequence[Path] = (),
    heap: str = "768m",
    zone: str = "UTC",
    paimon: str = PAIMON,
) -> Sequence[str]:
    """Command line of a judge: small heap, quick start; `more` archives beside Paimon."""
    classpath = ":".join([str(classes), *map(str, (*paimon_classpath(paimon), *more))])
    flags = [
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Xmx{heap}",
        f"-Duser.timezone={zone}",
    ]
    return [
        java_command(),
        *flags,
        "-Dslf4j.internal.verbosity=ERROR",
        "-cp",
        classpath,
        main,
        *arguments,
    ]


class JavaProcess(Closing):
    """A Java program that prints a line when it is ready, and ends with its standard input."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.first_line = self._process.stdout.readline().strip() if self._process.stdout else ""
        assert self.first_line, "the program did not start"

    def close(self) -> None:
        """End the JVM."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait(120)
