"""All uses of interfaces that PySpark, py4j and Spark do not publish.

No other module uses an underscore name of PySpark or classes of Spark's JVM: a new version of Spark
has to be checked against this module only. Two groups of functions:

    required   has_context, gateway_process, restrict_accumulator_socket, authenticate_callbacks,
               count_executors
               The daemon needs them for correct errors and states, and for channels closed to
               other users.
    optional   skip_packaged_sources, use_java_serializer, submit_map_stage, wait_for_stage
               They save a process, CPU of each batch, and run stage 1 of the next batch early.
               `INGESTD_SPARK_INTERNALS=off` disables them, together with ingestd's own start of
               the JVM (`startup.jvm`).

Two more unpublished interfaces are only names of modules and classes, not private members: the main
class of the JVM (`startup.jvm`), and Spark's Python modules (`startup.prefork_server`,
`startup.python_daemon`).
"""

import atexit
import logging
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import RDD, SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    import subprocess

_LOG = logging.getLogger(__name__)


def has_context() -> bool:
    """Return whether this process has an active Spark context."""
    return SparkContext._active_spark_context is not None


def gateway_process() -> "subprocess.Popen[bytes] | None":
    """Return the process of the JVM that PySpark's launcher started, or None if it started none."""
    gateway: Any = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    return process


def restrict_accumulator_socket(context: SparkContext) -> None:
    """Deny other users access to the accumulator socket, if it is a Unix socket.

    Over a Unix socket, unlike TCP, Spark's accumulator server asks clients for no secret. The
    socket's file is removed when this process ends, which PySpark does only if it stops the
    context.
    """
    internals: Any = context
    address = internals._accumulatorServer.server_address
    if isinstance(address, str):
        socket = Path(address)
        socket.chmod(0o600)
        atexit.register(socket.unlink, missing_ok=True)


def authenticate_callbacks(gateway: Any) -> None:  # noqa: ANN401  (py4j has no types)
    """Start the callback server of a gateway so that it requires the gateway's secret.

    PySpark would start the server without a secret. py4j's client in the JVM loses its own secret
    when it is given the address of the server, so the secret is set again.
    """
    secret = gateway.java_parameters.auth_token
    gateway.python_parameters.auth_token = secret
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # untyped in PySpark
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    classes = gateway.jvm.java.lang.Class
    token = classes.forName("py4j.CallbackClient").getDeclaredField("authToken")
    token.setAccessible(True)
    token.set(client, secret)


def skip_packaged_sources(session: SparkSession) -> None:
    """Prevent Spark from searching installed packages for data sources in a new Python process.

    Spark would search when the first source is registered, and the process would not end. A failure
    is only logged.
    """
    jvm: Any = session._jvm
    package = jvm.org.apache.spark.sql.execution.datasources
    try:
        manager = getattr(getattr(package, "DataSourceManager$"), "MODULE$")
        if manager.dataSourceBuilders().isEmpty():
            no_sources = jvm.scala.Option.apply(jvm.PythonUtils.toScalaMap({}))
            getattr(manager, "dataSourceBuilders_$eq")(no_sources)
    except (Py4JError, TypeError) as error:
        _LOG.debug("packaged_sources_not_skipped", extra={"ctx": {"error": str(error)}})


def use_java_serializer(spark: SparkContext, shuffled: RDD[Any]) -> None:
    """Set Java's serializer instead of Kryo for a shuffle whose blobs are file references.

    Spark chooses Kryo for numbers and bytes, and builds an instance with all of Scala's classes for
    each task. Kryo is better for large blobs: Java's serializer keeps references to all objects
    that it has written. If Spark does not have the expected interfaces, it keeps its choice.
    """
    java_rdd: Any = shuffled._jrdd
    with suppress(Py4JError):
        java_rdd.rdd().dependencies().head().rdd().setSerializer(_java_serializer(spark))


@cache
def _java_serializer(spark: SparkContext) -> Any:  # noqa: ANN401  (py4j has no types)
    """Return Java's serializer.

    Cached, since resolving a package makes the JVM search all of its jars.
    """
    jvm: Any = spark._jvm
    context: Any = spark._jsc
    return jvm.org.apache.spark.serializer.JavaSerializer(context.sc().conf())


def submit_map_stage(spark: SparkContext, shuffled: RDD[Any]) -> Any:  # noqa: ANN401  (py4j has no types)
    """Submit the stage before the shuffle of an RDD; return the JVM's future of the stage.

    Raises Py4JError if Spark does not accept the stage.
    """
    java_rdd: Any = shuffled._jrdd
    pairs = java_rdd.rdd().dependencies().head().rdd()
    context: Any = spark._jsc
    return context.sc().submitMapStage(pairs.dependencies().head())


def wait_for_stage(spark: SparkContext, stage: Any, seconds: float) -> bool:  # noqa: ANN401  (py4j has no types)
    """Wait up to `seconds` for a stage of `submit_map_stage`; return whether it has ended.

    The JVM waits: a poll would cost CPU in two processes. Raises Py4JError if the JVM has ended.
    """
    try:
        stage.ready(_duration(spark, int(seconds * 1e3)), None)
    except Py4JJavaError:  # Java's TimeoutException
        return bool(stage.isCompleted())
    return True


@cache
def _duration(spark: SparkContext, milliseconds: int) -> Any:  # noqa: ANN401  (py4j has no types)
    jvm: Any = spark._jvm
    return jvm.scala.concurrent.duration.Duration.apply(milliseconds, "ms")


def count_executors(spark: SparkContext) -> int | None:
    """Return the number of registered executors, 0 for a local master; None if unknown."""
    context: Any = spark._jsc
    try:
        return int(context.sc().getExecutorMemoryStatus().size()) - 1  # the driver is included
    except (AttributeError, OSError, Py4JError):
        return None  # the context has ended
