"""Settings of a Spark session: local by default, quiet, and without anything to download.

Knows nothing of PySpark, so that the JVM can be on its way before PySpark is imported.
"""

import os
import re
import secrets
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import ingestd

PYTHON = "spark.pyspark.python"
JVM_OPTIONS = "spark.driver.extraJavaOptions"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_SOURCES_OPTION = "ingestd\\.sources"
_DEFAULTS: Mapping[str, str] = {
    "spark.master": "local[*,4]",  # a task whose worker died is tried again
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "false",  # one plan for every batch
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "4",
    # The rows of a batch are ranges that nobody collects: no code is worth generating for them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # The defaults start a chmod and several readlink processes for every file of a checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.redaction.options.regex": f"(?i)url|{_SOURCES_OPTION}",
    "spark.python.daemon.module": "ingestd.spark.startup.python_daemon",
    "spark.python.worker.reuse": "true",
    # Over TCP each task waits 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
}
_LOOPBACK: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_KUBERNETES: Mapping[str, str] = {
    # Neither is made for a driver that runs already: the right to delete them would be for nothing.
    "spark.kubernetes.driver.service.deleteOnTermination": "false",
    "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
}
# Spark makes a secret for each context of these itself and hands it to executors as a variable.
_MAKE_SECRETS = ("local", "yarn", "k8s")
_AUTHENTICATE = "spark.authenticate"
_SECRET = "spark.authenticate.secret"  # noqa: S105  (the name of a setting)
UMASK = "INGESTD_UMASK"
"""The variable that names the umask of this process, in octal, to workers."""
PRIVATE_UMASK = 0o077
"""Of a JVM and of Spark's Python daemons: their folders and sockets are for no other user."""
_CONFIDENTIAL = re.compile(r"(?i)secret|password|token|access[.]?key")
# The JVM plans and schedules only: its second compiler costs more than it gives back.
_JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_WORKER_PATH = "spark.executorEnv.PYTHONPATH"
WORKER_MEMORY = "INGESTD_WORKER_MEMORY"
"""Variable of the workers' environment: most bytes of memory that each of them may have."""


def session_settings(extra: Mapping[str, str]) -> dict[str, str]:
    """All settings of a session with the user's `extra` ones."""
    settings = {**_DEFAULTS, _WORKER_PATH: worker_path(), **extra}
    settings = {**settings, **_authentication(settings), **extra}
    if is_local(settings):
        settings = {**settings, **_LOOPBACK, **extra}
    if settings["spark.master"].startswith("k8s:"):
        settings = {**settings, **_KUBERNETES, **extra}
    log = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    settings[JVM_OPTIONS] = " ".join(filter(None, [log, *_JVM_FLAGS, extra.get(JVM_OPTIONS)]))
    return settings


def is_confidential(name: str) -> bool:
    """Whether the value of a setting of this name is for no command line."""
    return _CONFIDENTIAL.search(name) is not None


def with_worker_memory(extra: Mapping[str, str], most_bytes: int) -> dict[str, str]:
    """Return settings with a limit for the memory of each Python worker."""
    return {f"spark.executorEnv.{WORKER_MEMORY}": str(most_bytes), **extra}


def prepare_environment(settings: Mapping[str, str]) -> None:
    """PySpark takes the worker's Python and the JVM's address from the environment alone."""
    os.environ[UMASK] = format(current_umask(), "o")
    if is_local(settings):
        os.environ["PYSPARK_PYTHON"] = settings.get(PYTHON, sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    elif PYTHON in settings:
        os.environ["PYSPARK_PYTHON"] = settings[PYTHON]
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def current_umask() -> int:
    """The umask of this process; other threads may create files meanwhile."""
    status = Path("/proc/self/status")
    with suppress(OSError):
        for line in status.read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(PRIVATE_UMASK)  # no other way to ask
    os.umask(mask)
    return mask


def worker_path() -> str:
    """Where workers find this package when it is not installed for their Python."""
    parent = str(Path(ingestd.__file__).resolve().parent.parent)
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    found = [] if parent in installed else [parent]
    return os.pathsep.join([*found, *filter(None, [os.environ.get("PYTHONPATH")])])


def is_local(settings: Mapping[str, str]) -> bool:
    """Whether driver and executors share this machine."""
    return settings["spark.master"].split("[")[0] in ("local", "local-cluster")


def _authentication(settings: Mapping[str, str]) -> dict[str, str]:
    """Lets only processes of this session speak to its channels, loopback's included.

    A standalone cluster has a secret of its own, which only its users know: there the settings
    have to name it.
    """
    master = re.split(r"[\[:]", settings["spark.master"])[0]
    if master in _MAKE_SECRETS or _SECRET in settings:
        return {_AUTHENTICATE: "true"}
    if master == "local-cluster":
        return {_AUTHENTICATE: "true", _SECRET: secrets.token_hex(32)}
    return {}
