"""Start the Spark session of this process, in our own JVM or one that PySpark's launcher starts."""

import logging
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ingestd.errors import ConfigError, RetryableError, SparkMasterError, SparkSettingError
from ingestd.spark.pyspark_internals import (
    authenticate_callbacks,
    has_context,
    restrict_accumulator_socket,
    skip_packaged_sources,
)
from ingestd.spark.startup.jvm import (
    Gateway,
    Jvm,
    java_command,
    keep,
    start_jvm,
    take_prestarted,
)
from ingestd.spark.startup.settings import (
    PRIVATE_UMASK,
    is_confidential,
    prepare_environment,
    session_settings,
    uses_internals,
)

_LOG = logging.getLogger(__name__)
_STOPPED = ("stopped SparkContext", "Spark context stopped while waiting for backend")
"""Texts of Java's errors if Spark has stopped its context, as when the master refuses it."""
_FILTERED_WARNING = "WARNING: Using incubator modules:"
_GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
_WORKER_PYTHON = "PYSPARK_PYTHON"
_GATEWAY_SECRET = "PYSPARK_GATEWAY_SECRET"  # noqa: S105  (the name of a variable)
_starting = threading.Lock()


def build_session(pipeline: str, extra: Mapping[str, str]) -> SparkSession:
    """Return the Spark session of this process, and start it if it does not exist yet.

    `pipeline` is the name of the pipeline, for the name of Spark's application. `extra` are Spark
    settings of the user, which override the settings of ingestd. By default, a local master binds
    to the loopback interface only and runs its workers with this Python. Raises ConfigError if Java
    is missing, SparkSettingError if Spark does not start with a setting, and SparkMasterError if
    its master does not accept the session.
    """
    settings = {**session_settings(extra), "spark.app.name": f"ingestd-{pipeline}"}
    with _starting:
        try:
            session = _session(settings)
        except Py4JJavaError as error:
            raise _refusal(settings["spark.master"], str(error)) from error
    if uses_internals():
        skip_packaged_sources(session)
    return session


def _session(settings: Mapping[str, str]) -> SparkSession:
    if not has_context():
        prepare_environment(settings)
        _start_context(settings)
    builder = SparkSession.builder
    for name, value in settings.items():
        if not is_confidential(name):  # the context has them; queries do not need them
            builder = builder.config(name, value)
    return builder.getOrCreate()


def _refusal(master: str, text: str) -> ConfigError:
    """Return the error for a session that Java could not start; `text` is Java's error."""
    if any(phrase in text for phrase in _STOPPED):
        return SparkMasterError(
            f"spark.master {master} does not accept the pipeline: no connection, or another "
            "spark.authenticate.secret; check that it runs and can be reached from here"
        )
    cause = " ".join(text.partition("\n: ")[2].partition("\n\tat ")[0].split()) or text
    return SparkSettingError(
        f"Spark does not start with spark.master {master} and the settings of `spark`: {cause}"
    )


def _refuse_without_java() -> None:
    """Raise ConfigError if Java is missing, before PySpark's launcher reports an unclear error."""
    if java_command() is None:
        home = os.environ.get("JAVA_HOME")
        missing = f"JAVA_HOME is {home}, which has no bin/java" if home else "PATH has no java"
        raise ConfigError(
            f"Spark does not start, it needs a Java 17 runtime and {missing}: install one, or set "
            "JAVA_HOME to its folder"
        )


def _no_launch(master: str, error: Exception) -> ConfigError:
    """Return the error for a JVM that ended before PySpark could connect to it."""
    return SparkSettingError(
        f"Spark does not start with spark.master {master} and the settings of `spark`: correct the "
        f"setting that the lines above name, or use Java 17 or newer if they name none: {error}"
    )


def _start_context(settings: Mapping[str, str]) -> None:
    _refuse_without_java()
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    jvm = take_prestarted(settings) or start_jvm(settings)
    if jvm is not None and _start_in(jvm, conf):
        return
    shown = [(name, value) for name, value in settings.items() if not is_confidential(name)]
    command_line = SparkConf(loadDefaults=False).setAll(shown)
    errors = _filtered_stderr()
    try:
        gateway = launch_gateway(  # type: ignore[no-untyped-call]  # untyped in PySpark
            command_line,
            # Only the daemon handles signals that are sent to its process group.
            {"stderr": errors, "process_group": 0, "umask": PRIVATE_UMASK},
        )
        authenticate_callbacks(gateway)
        _start_in_gateway(conf, gateway)
    except (OSError, PySparkRuntimeError) as error:
        raise _no_launch(settings["spark.master"], error) from error
    finally:
        if errors is not None:
            os.close(errors)


def _start_in(jvm: Jvm, conf: SparkConf) -> bool:
    """Create the context in a JVM of ours; return False if the JVM ended or did not respond."""
    try:
        address = jvm.gateway()
    except RetryableError as error:
        _LOG.warning("jvm_started_again", extra={"ctx": {"error": error.message}})
        jvm.kill()
        return False
    keep(jvm)
    gateway = _connect(address)
    with _worker_python(jvm.python):
        _start_in_gateway(conf, gateway)
    return True


def _start_in_gateway(conf: SparkConf, gateway: Any) -> None:  # noqa: ANN401  (py4j has no types)
    """Create the context, with an accumulator socket that other users cannot open."""
    restrict_accumulator_socket(SparkContext(conf=conf, gateway=gateway))


@contextmanager
def _worker_python(program: str | None) -> Iterator[None]:
    """Set the Python of workers in the environment for the block that creates the context.

    PySpark reads the variable only then, and processes that are started later must not inherit it.
    With `program` None, the variable is not set.
    """
    previous = os.environ.get(_WORKER_PYTHON)
    if program is not None:
        os.environ[_WORKER_PYTHON] = program
    try:
        yield
    finally:
        if previous is None:
            os.environ.pop(_WORKER_PYTHON, None)
        else:
            os.environ[_WORKER_PYTHON] = previous


def _connect(address: Gateway) -> Any:  # noqa: ANN401  (py4j has no types)
    """Connect PySpark to a JVM and return the gateway.

    PySpark reads the address only from the environment, so it is set there during this call.
    """
    os.environ[_GATEWAY_PORT] = str(address.port)
    os.environ[_GATEWAY_SECRET] = address.secret
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]  # untyped in PySpark
    finally:
        del os.environ[_GATEWAY_PORT], os.environ[_GATEWAY_SECRET]
    authenticate_callbacks(gateway)
    return gateway


def _filtered_stderr() -> int | None:
    """Return a file descriptor that filters a known warning out of standard error.

    The launcher of the JVM prints the warning on each start, and no setting turns it off. The
    filter ends when the last process that writes to the descriptor ends. Returns None if the filter
    cannot be started.
    """
    reading, writing = os.pipe()
    try:
        subprocess.Popen(  # noqa: S603  (no external input)
            ["grep", "--line-buffered", "-v", "-F", _FILTERED_WARNING],  # noqa: S607  (found on the user's PATH)
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
