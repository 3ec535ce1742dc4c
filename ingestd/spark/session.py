"""The Spark session of a pipeline: local by default, quiet, and without anything to download."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import ingestd
from ingestd.errors import ConfigError

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_SOURCES_OPTION = "ingestd\\.sources"
_DEFAULTS: Mapping[str, str] = {
    "spark.master": "local[*,4]",  # a task whose worker died is tried again
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "false",  # one plan for every batch
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "4",
    # The defaults start a chmod and several readlink processes for every file of a checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.redaction.options.regex": f"(?i)url|{_SOURCES_OPTION}",
    "spark.python.daemon.module": "ingestd.spark.python_daemon",
    "spark.python.worker.reuse": "true",
    # Over TCP each task waits 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
}
_LOOPBACK: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# The JVM plans and schedules only: its second compiler costs more than it gives back.
_JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_PYTHON = "spark.pyspark.python"
_WORKER_PATH = "spark.executorEnv.PYTHONPATH"
_NOISE = "WARNING: Using incubator modules:"


def build_session(app_name: str, extra: Mapping[str, str]) -> SparkSession:
    """Start the session, or get the one of this process; `extra` are Spark's own settings, on top.

    A local master binds to the loopback interface only and runs its workers with this Python.
    Raises ConfigError when Java is missing or Spark does not start.
    """
    settings = {**session_settings(extra), "spark.app.name": app_name}
    if SparkSession.getActiveSession() is None:
        _prepare_environment(settings)
        _start_context(settings)
    builder = SparkSession.builder.appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def session_settings(extra: Mapping[str, str]) -> dict[str, str]:
    """All settings of a session with the user's `extra` ones."""
    settings = {**_DEFAULTS, _WORKER_PATH: _worker_path(), **extra}
    if _is_local(settings):
        settings = {**settings, **_LOOPBACK, **extra}
    log = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    settings[_JVM_OPTIONS] = " ".join(filter(None, [log, *_JVM_FLAGS, extra.get(_JVM_OPTIONS)]))
    return settings


def _start_context(settings: Mapping[str, str]) -> None:
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    errors = _quiet_errors()
    try:
        gateway = launch_gateway(  # type: ignore[no-untyped-call]  # untyped in PySpark
            conf, {"stderr": errors}
        )
        SparkContext(conf=conf, gateway=gateway)
    except (OSError, PySparkRuntimeError) as error:
        raise ConfigError(
            f"Spark does not start; it needs a Java 17 runtime (JAVA_HOME or PATH): {error}"
        ) from error
    finally:
        if errors is not None:
            os.close(errors)


def _quiet_errors() -> int | None:
    """A file descriptor that passes on to standard error what is worth reading.

    The launcher of the JVM prints a line on each start that no setting turns off. The process
    behind the descriptor ends with the last one that writes into it.
    """
    reading, writing = os.pipe()
    try:
        subprocess.Popen(  # noqa: S603  (nothing of it comes from outside)
            ["grep", "--line-buffered", "-v", "-F", _NOISE],  # noqa: S607  (the user's own)
            stdin=reading,
            stdout=2,
            start_new_session=True,
        )
    except OSError:
        os.close(writing)
        return None
    finally:
        os.close(reading)
    return writing


def _prepare_environment(settings: Mapping[str, str]) -> None:
    """PySpark takes the worker's Python and the JVM's address from the environment alone."""
    if _is_local(settings):
        os.environ["PYSPARK_PYTHON"] = settings.get(_PYTHON, sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    elif _PYTHON in settings:
        os.environ["PYSPARK_PYTHON"] = settings[_PYTHON]
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _worker_path() -> str:
    """Where workers find this package when it is not installed for their Python."""
    parent = str(Path(ingestd.__file__).resolve().parent.parent)
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    found = [] if parent in installed else [parent]
    return os.pathsep.join([*found, *filter(None, [os.environ.get("PYTHONPATH")])])


def _is_local(settings: Mapping[str, str]) -> bool:
    return settings["spark.master"].split("[")[0] == "local"
