"""Settings of a Spark session: a local master by default, no UI, and no downloads.

This module does not import PySpark, so that the JVM can start before PySpark is imported.
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
from ingestd.config.spark_master import has_executors, is_one_machine
from ingestd.errors import ConfigError

PYTHON = "spark.pyspark.python"
JVM_OPTIONS = "spark.driver.extraJavaOptions"
EXECUTOR_JVM_OPTIONS = "spark.executor.extraJavaOptions"
LOG_FLAG = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
"""The flag with which a JVM logs errors only, on standard error."""
SWITCH = "INGESTD_SPARK_INTERNALS"
"""The environment variable whose value `off` disables uses of Spark's internals to save time."""
_SOURCES_OPTION = "ingestd\\.sources"
_DEFAULTS: Mapping[str, str] = {
    "spark.master": "local[*,4]",  # a task is tried up to 4 times
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "false",  # one plan for every batch
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "4",
    # The rows of a batch are offset ranges, too few to be worth generating code for.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # The defaults start a chmod and several readlink processes for every file of a checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # With underscores, unlike Spark's own: a variable of executors may be AWS_ACCESS_KEY_ID.
    "spark.redaction.regex": "(?i)secret|password|token|access[._]?key|credential",
    "spark.sql.redaction.options.regex": f"(?i)url|{_SOURCES_OPTION}",
    # An executor that serves no files has whole blobs serialized, up to 100 of them held otherwise.
    "spark.serializer.objectStreamReset": "1",
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
    # The driver runs already and owns neither; deleting them would need more permissions.
    "spark.kubernetes.driver.service.deleteOnTermination": "false",
    "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
}
# For these masters Spark creates a secret per context and passes it to executors.
_MAKE_SECRETS = ("local", "yarn", "k8s")
_AUTHENTICATE = "spark.authenticate"
_SECRET = "spark.authenticate.secret"  # noqa: S105  (the name of a setting)
UMASK = "INGESTD_UMASK"
"""The variable that passes the umask of this process to workers, in octal."""
PRIVATE_UMASK = 0o077
"""The umask of the JVM and of Spark's Python daemons: no access for other users."""
_CONFIDENTIAL = re.compile(r"(?i)secret|password|token|access[.]?key")
# JVMs only plan, schedule and copy blobs: the optimizing compiler costs more than it saves.
_JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_COLLECTOR = "-XX:+UseSerialGC"
_SET_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
EXCHANGE_PORT = "INGESTD_EXCHANGE_PORT"
"""The variable with the port at which an executor serves exchange files (0: any free port)."""
EXCHANGE_PORT_SETTING = f"spark.executorEnv.{EXCHANGE_PORT}"
_PORTS = 1 << 16
# With these, blobs pass through Spark's shuffle: it encrypts them, or keeps them for executors that
# have ended, where files end with their executor. A value is `true`, or the name of a class.
_NEEDS_SHUFFLE = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.rpc.enabled",
    "spark.ssl.enabled",
    "spark.io.encryption.enabled",
    "spark.shuffle.service.enabled",
    "spark.decommission.enabled",
    "spark.shuffle.manager",
    "spark.shuffle.sort.io.plugin.class",
)
_WORKER_PATH = "spark.executorEnv.PYTHONPATH"
WORKER_MEMORY = "INGESTD_WORKER_MEMORY"
"""The variable with the memory limit of each worker in bytes."""


def session_settings(extra: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of a session; the user's settings `extra` override the others.

    JVM options are combined instead, with the user's options last. Raises ConfigError for a
    port for exchange files that is not a number below 65536.
    """
    settings = {**_DEFAULTS, _WORKER_PATH: worker_path(), **extra}
    settings = {**settings, **_authentication(settings), **extra}
    if is_one_machine(settings["spark.master"]):
        settings = {**settings, **_LOOPBACK, **extra}
    if settings["spark.master"].startswith("k8s:"):
        settings = {**settings, **_KUBERNETES, **extra}
    if has_executors(settings["spark.master"]):
        settings = {**settings, **_exchange(settings)}
    for name in (JVM_OPTIONS, EXECUTOR_JVM_OPTIONS):
        settings[name] = f"{LOG_FLAG} {_jvm_flags(extra.get(name, ''))}"
    return settings


def _exchange(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the setting of the port at which executors exchange files.

    The port is empty if blobs pass through Spark's shuffle. Raises ConfigError for
    a port that is not a number below 65536.
    """
    port = settings.get(EXCHANGE_PORT_SETTING)
    if port and not (port.isdecimal() and int(port) < _PORTS):
        raise ConfigError(
            f"{EXCHANGE_PORT_SETTING} is {port!r}: set it to a port below {_PORTS}, to 0 for any "
            "free port, or to '' to use Spark's shuffle"
        )
    if needs_shuffle(settings) or not uses_internals():
        return {EXCHANGE_PORT_SETTING: ""}
    return {EXCHANGE_PORT_SETTING: "0" if port is None else port}


def needs_shuffle(settings: Mapping[str, str]) -> bool:
    """Return whether blobs must pass through Spark's shuffle with these settings of Spark.

    They must if encryption, Spark's shuffle service or decommissioning is on, or if a class
    replaces a part of the shuffle.
    """
    values = [settings.get(name, "").strip().lower() for name in _NEEDS_SHUFFLE]
    return any(value == "true" or "." in value for value in values)


def uses_internals() -> bool:
    """Return whether unpublished interfaces of Spark may be used to save time.

    Returns False if the environment variable INGESTD_SPARK_INTERNALS is `off`.
    """
    return os.environ.get(SWITCH, "").lower() != "off"


def is_confidential(name: str) -> bool:
    """Return whether the name of a setting shows that its value is a secret.

    Such a value must not appear on a command line.
    """
    return _CONFIDENTIAL.search(name) is not None


def with_worker_memory(extra: Mapping[str, str], most_bytes: int) -> dict[str, str]:
    """Return the user's settings with the memory limit of each Python worker in bytes.

    A limit that the user's settings contain is kept.
    """
    return {f"spark.executorEnv.{WORKER_MEMORY}": str(most_bytes), **extra}


def prepare_environment(settings: Mapping[str, str]) -> None:
    """Set the environment variables for the Python and the umask of Spark's workers.

    PYSPARK_PYTHON is the Python in `settings`, else that of this process; if tasks run on other
    machines, an existing value precedes that of this process. PYSPARK_DRIVER_PYTHON is always the
    Python of this process. If all tasks run on this machine, SPARK_LOCAL_IP becomes 127.0.0.1
    unless it is set.
    """
    os.environ[UMASK] = format(current_umask(), "o")
    if is_one_machine(settings["spark.master"]):
        os.environ["PYSPARK_PYTHON"] = settings.get(PYTHON, sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    elif PYTHON in settings:
        os.environ["PYSPARK_PYTHON"] = settings[PYTHON]
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def current_umask() -> int:
    """Return the umask of this process.

    Where /proc cannot be read, the umask is changed for a moment.
    """
    status = Path("/proc/self/status")
    with suppress(OSError):
        for line in status.read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(PRIVATE_UMASK)  # the only other way to read it
    os.umask(mask)
    return mask


def worker_path() -> str:
    """Return a PYTHONPATH with which workers can import ingestd.

    It is the PYTHONPATH of this process, preceded by the parent folder of the package `ingestd`
    unless that is installed.
    """
    parent = str(Path(ingestd.__file__).resolve().parent.parent)
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    parents = [] if parent in installed else [parent]
    return os.pathsep.join([*parents, *filter(None, [os.environ.get("PYTHONPATH")])])


def _jvm_flags(given: str) -> str:
    """Return our JVM flags followed by the flags `given`, as text.

    Our garbage collector is left out if these select another one.
    """
    collector = () if _SET_COLLECTOR.search(given) else (_COLLECTOR,)
    return " ".join(filter(None, [*_JVM_FLAGS, *collector, given]))


def _authentication(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which Spark's channels accept only processes of this session.

    Returns no settings for a standalone cluster, unless `settings` contain the cluster's secret.
    """
    master = re.split(r"[\[:]", settings["spark.master"])[0]
    if master in _MAKE_SECRETS or _SECRET in settings:
        return {_AUTHENTICATE: "true"}
    if master == "local-cluster":
        return {_AUTHENTICATE: "true", _SECRET: secrets.token_hex(32)}
    return {}
