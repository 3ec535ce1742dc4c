"""Engines that are asked in their own language: Spark SQL and Flink SQL, with connectors.

Spark is not the one that ingestd runs on: Paimon's newest connector that is in the package registry
is one for Spark 3.5, which gets an environment of its own, and Iceberg has none for ours. Flink
runs in one JVM, from the archives that the benchmarks use.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingestd.dev.jars import cache_folder, fetch, java_command, read_pins
from ingestd.dev.java_classes import compiled
from tests.support.pypaimon import environment

ROOT = Path(__file__).resolve().parents[2]
FLINK_PINS = ROOT / "bench" / "peers" / "flink_jars.txt"
SPARK_CONNECTOR = "org.apache.paimon:paimon-spark-3.5:0.9.0"
SPARK_DIGEST = "e9e8a90a630a1440dfd869bb568c8fc916d6de23bc162922cc0c2684ed6fa15b"
FLINK_FILES = "org.apache.flink:flink-connector-files:2.0.0"
FLINK_FILES_DIGEST = "75432a68cdbca619d824801f885fbcfea42c7e49d1e4943c92577e4da4bb50a4"
"""Of every Flink distribution; reading needs it, and the benchmarks only write."""
OPENED = ("java.lang", "java.util", "java.nio", "sun.nio.ch")
FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Of JVMs that run for a few seconds."""
TIMEOUT = 600
_SPARK = """
import json, sys
from pyspark.sql import SparkSession

jar, settings, statements = json.loads(sys.argv[1])
settings |= {"spark.jars": jar, "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
builder = SparkSession.builder.master("local[1]")
for name, value in settings.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
answers = [session.sql(statement).collect() for statement in statements]
plain = lambda value: value.hex() if isinstance(value, bytearray) else str(value)
print(json.dumps([[row.asDict(True) for row in rows] for rows in answers], default=plain))
"""


def paimon_connector() -> Path:
    """The archive of Paimon's connector for Spark."""
    pins = {SPARK_CONNECTOR: SPARK_DIGEST}
    (jar,) = fetch([SPARK_CONNECTOR], cache_folder() / "engines" / "spark", pins=pins)
    return jar


def spark_sql(
    statements: Sequence[str], settings: dict[str, str], jar: Path
) -> list[list[dict[str, Any]]]:
    """The rows of each statement, with the settings that ``--conf`` gives and a connector."""
    request = json.dumps([str(jar), settings, statements])
    python = str(environment("spark_sql"))
    own = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_HOME")}
    own |= {"PYSPARK_PYTHON": python, "JAVA_TOOL_OPTIONS": " ".join(FLAGS)}
    own["SPARK_LOCAL_IP"] = "127.0.0.1"  # Spark looks up the name of the machine otherwise
    out = _output([python, "-c", _SPARK, request], own)
    answers: list[list[dict[str, Any]]] = json.loads(out.splitlines()[-1])
    return answers


def flink_sql(statements: str, folder: Path) -> list[list[str]]:
    """The values of all rows that statements print, as text; `folder` is for scratch files."""
    pins = read_pins(FLINK_PINS)
    jars = fetch(list(pins), cache_folder() / "peers" / "flink", pins=pins)
    more = {FLINK_FILES: FLINK_FILES_DIGEST}
    jars += fetch([FLINK_FILES], cache_folder() / "engines" / "flink", pins=more)
    sources = [Path(__file__).parent / "flink_java" / "FlinkSql.java"]
    classes = compiled(sources, jars, cache_folder() / "engines" / "classes")
    file = folder / "statements.sql"
    file.write_text(statements)
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    flags = ["-Xmx1g", *FLAGS, *opened]
    flags += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", f"-Djava.io.tmpdir={folder}"]
    path = ":".join(map(str, [classes, *jars]))
    out = _output([java_command(), *flags, "-cp", path, "FlinkSql", str(file)], dict(os.environ))
    return [line.split("\t") for line in out.splitlines()]


def _output(command: list[str], surroundings: dict[str, str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TIMEOUT, env=surroundings
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
