"""The Spark session of this process, in a JVM of our own or of PySpark's launcher."""

import logging
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway
from pyspark.sql import SparkSession

from ingestd.errors import ConfigError, RetryableError
from ingestd.spark.startup.jvm import Gateway, Jvm, start_jvm
from ingestd.spark.startup.prestart import keep, take_prestarted
from ingestd.spark.startup.settings import (
    PRIVATE_UMASK,
    is_confidential,
    prepare_environment,
    session_settings,
)

_LOG = logging.getLogger(__name__)
_NOISE = "WARNING: Using incubator modules:"
_GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
_WORKER_PYTHON = "PYSPARK_PYTHON"
_GATEWAY_SECRET = "PYSPARK_GATEWAY_SECRET"  # noqa: S105  (the name of a variable)
# Objects of the JVM that take long to come into being and need no session.
_HEAVY = (
    "org.apache.spark.sql.internal.SQLConf$",
    "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$",
    "org.apache.spark.sql.execution.SparkOptimizer",
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
)
_EVERY_BATCH: Mapping[str, Sequence[str]] = {
    "PythonRDD": ("readRDDFromFile", "collectAndServe"),
    "PythonUtils": ("getBroadcastThreshold",),
    "SimplePythonFunction": (),
    "org.apache.spark.sql.classic.SparkSession": (),
    "org.apache.spark.sql.classic.SparkSession$": ("MODULE$",),
}
_starting = threading.Lock()


def build_session(pipeline: str, extra: Mapping[str, str]) -> SparkSession:
    """Start the session, or get this process's one; `extra` are Spark's own settings, on top.

    A local master binds to the loopback interface only and runs its workers with this Python.
    Raises ConfigError when Java is missing or Spark does not start.
    """
    settings = {**session_settings(extra), "spark.app.name": f"ingestd-{pipeline}"}
    with _starting:
        if SparkContext._active_spark_context is None:
            prepare_environment(settings)
            _start_context(settings)
        builder = SparkSession.builder
        for name, value in settings.items():
            if not is_confidential(name):  # the context has them; they are for no query
                builder = builder.config(name, value)
        session = builder.getOrCreate()
    _skip_packaged_sources(session)
    _remember_classes(session)
    return session


def _start_context(settings: Mapping[str, str]) -> None:
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    jvm = take_prestarted(settings) or start_jvm(settings)
    if jvm is not None and _start_in(jvm, conf):
        return
    shown = [(name, value) for name, value in settings.items() if not is_confidential(name)]
    command_line = SparkConf(loadDefaults=False).setAll(shown)
    errors = _quiet_errors()
    try:
        gateway = launch_gateway(  # type: ignore[no-untyped-call]  # untyped in PySpark
            command_line,
            # A signal to our group is for the daemon to obey.
            {"stderr": errors, "process_group": 0, "umask": PRIVATE_UMASK},
        )
        _authenticate_callbacks(gateway)
        _start_in_gateway(conf, gateway)
    except (OSError, PySparkRuntimeError) as error:
        raise ConfigError(
            f"Spark does not start; it needs a Java 17 runtime (JAVA_HOME or PATH): {error}"
        ) from error
    finally:
        if errors is not None:
            os.close(errors)


def _start_in(jvm: Jvm, conf: SparkConf) -> bool:
    """Make a context in a JVM that was started; False when it ended instead of answering."""
    try:
        address = jvm.gateway()
    except RetryableError as error:
        _LOG.warning("jvm_started_again", extra={"ctx": {"error": error.message}})
        jvm.kill()
        return False
    keep(jvm)
    gateway = _connected(address)
    prefetch = threading.Thread(
        target=_prepare_classes, args=(gateway,), name="classes", daemon=True
    )
    prefetch.start()
    with _python_of_workers(jvm.python):
        _start_in_gateway(conf, gateway)
    return True


def _start_in_gateway(conf: SparkConf, gateway: Any) -> None:  # noqa: ANN401  (py4j has no types)
    """Make a context, whose socket for accumulators is for this user alone."""
    context: Any = SparkContext(conf=conf, gateway=gateway)
    address = context._accumulatorServer.server_address
    if isinstance(address, str):  # of a Unix socket, which asks for no secret
        Path(address).chmod(0o600)


def _authenticate_callbacks(gateway: Any) -> None:  # noqa: ANN401  (py4j has no types)
    """Start the server of calls from the JVM so that it asks for the gateway's secret.

    PySpark would start it without one, and py4j's client in the JVM forgets its secret when it is
    given the server's address.
    """
    secret = gateway.java_parameters.auth_token
    gateway.python_parameters.auth_token = secret
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # untyped in PySpark
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    classes = gateway.jvm.java.lang.Class
    held = classes.forName("py4j.CallbackClient").getDeclaredField("authToken")
    held.setAccessible(True)
    held.set(client, secret)


@contextmanager
def _python_of_workers(program: str | None) -> Iterator[None]:
    """Where a context takes it from when it is made; it is of no use to processes begun later."""
    before = os.environ.get(_WORKER_PYTHON)
    if program is not None:
        os.environ[_WORKER_PYTHON] = program
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_WORKER_PYTHON, None)
        else:
            os.environ[_WORKER_PYTHON] = before


def _connected(address: Gateway) -> Any:  # noqa: ANN401  (py4j has no types)
    """PySpark's connection; it takes the address of a JVM from the environment alone."""
    os.environ[_GATEWAY_PORT] = str(address.port)
    os.environ[_GATEWAY_SECRET] = address.secret
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]  # untyped in PySpark
    finally:
        del os.environ[_GATEWAY_PORT], os.environ[_GATEWAY_SECRET]
    _authenticate_callbacks(gateway)
    return gateway


def _prepare_classes(gateway: Any) -> None:  # noqa: ANN401  (py4j has no types)
    """Let another core of the JVM do early what the session would do after the context."""
    for name in _HEAVY:
        try:
            gateway.jvm.java.lang.Class.forName(name)
        except Py4JError:
            return


def _skip_packaged_sources(session: SparkSession) -> None:
    """Keep Spark from starting a Python process to look for data sources in installed packages.

    It would do so at the first registration. A Spark that does not know the setting looks.
    """
    jvm: Any = session._jvm
    package = jvm.org.apache.spark.sql.execution.datasources
    try:
        manager = getattr(getattr(package, "DataSourceManager$"), "MODULE$")
        if manager.dataSourceBuilders().isEmpty():
            none = jvm.scala.Option.apply(jvm.PythonUtils.toScalaMap({}))
            getattr(manager, "dataSourceBuilders_$eq")(none)
    except (Py4JError, TypeError) as error:
        _LOG.debug("packaged_sources_not_skipped", extra={"ctx": {"error": str(error)}})


def _remember_classes(session: SparkSession) -> None:
    """Look up once what PySpark would ask the JVM for, by name, in the course of every batch.

    What Python finds as an attribute it does not ask for.
    """
    view: Any = session._jvm
    try:
        for name, members in _EVERY_BATCH.items():
            found = getattr(view, name)
            for member in members:
                vars(found)[member] = getattr(found, member)
            vars(view)[name] = found
    except (Py4JError, TypeError) as error:
        _LOG.debug("classes_not_remembered", extra={"ctx": {"error": str(error)}})


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
