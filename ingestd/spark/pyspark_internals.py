"""All uses of interfaces that PySpark, py4j and Spark do not publish.

No other module uses an underscore name of PySpark or classes of Spark's JVM: a new version of Spark
has to be checked against this module only. Two groups of functions:

    required   has_context, gateway_process, restrict_accumulator_socket, authenticate_callbacks
               The daemon needs them for correct errors and for channels closed to other users.
    optional   skip_packaged_sources, cache_classes, use_java_serializer, translate_task,
               submit_map_stage, count_executors
               They only save time, or watch the cluster. `INGESTD_SPARK_INTERNALS=off` disables all
               of them, and each one has no effect if Spark lacks the members that it uses.

Two more unpublished interfaces are only names of modules and classes, not private members: the main
class of the JVM (`startup.jvm`), and Spark's Python modules (`startup.prefork_server`,
`startup.python_daemon`).
"""

import atexit
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    import subprocess

_LOG = logging.getLogger(__name__)
SWITCH = "INGESTD_SPARK_INTERNALS"
OFF = "off"
# Classes and members that PySpark looks up by name in every batch.
_CACHED_CLASSES: Mapping[str, Sequence[str]] = {
    "PythonRDD": ("readRDDFromFile", "collectAndServe"),
    "PythonUtils": ("getBroadcastThreshold",),
    "SimplePythonFunction": (),
    "org.apache.spark.sql.classic.SparkSession": (),
    "org.apache.spark.sql.classic.SparkSession$": ("MODULE$",),
}


def uses_optional_internals() -> bool:
    """Return whether the optional functions are enabled."""
    return os.environ.get(SWITCH, "").lower() != OFF


def has_context() -> bool:
    """Return whether this process has an active Spark context."""
    return SparkContext._active_spark_context is not None


def gateway_process() -> "subprocess.Popen[bytes] | None":
    """Return the process of the JVM that PySpark's launcher started; None without such a JVM."""
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
    when it is given the address of the server, so it is set again.
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
    """Keep Spark from searching installed packages for data sources in a new Python process.

    The search would run when the first source is registered.
    """
    if not uses_optional_internals():
        return
    jvm: Any = session._jvm
    package = jvm.org.apache.spark.sql.execution.datasources
    try:
        manager = getattr(getattr(package, "DataSourceManager$"), "MODULE$")
        if manager.dataSourceBuilders().isEmpty():
            no_sources = jvm.scala.Option.apply(jvm.PythonUtils.toScalaMap({}))
            getattr(manager, "dataSourceBuilders_$eq")(no_sources)
    except (Py4JError, TypeError) as error:
        _LOG.debug("packaged_sources_not_skipped", extra={"ctx": {"error": str(error)}})


def cache_classes(session: SparkSession) -> None:
    """Look up once the JVM classes that PySpark would look up by name in every batch.

    The classes become attributes of py4j's view of the JVM, which asks the JVM only for names that
    are not attributes.
    """
    if not uses_optional_internals():
        return
    view: Any = session._jvm
    try:
        for name, members in _CACHED_CLASSES.items():
            cached = getattr(view, name)
            for member in members:
                vars(cached)[member] = getattr(cached, member)
            vars(view)[name] = cached
    except (Py4JError, TypeError) as error:
        _LOG.debug("classes_not_cached", extra={"ctx": {"error": str(error)}})


def use_java_serializer(spark: SparkContext, shuffled: RDD[Any]) -> None:
    """Set Java's serializer instead of Kryo for a shuffle whose blobs are file references.

    Spark chooses Kryo for numbers and bytes, and builds an instance with all of Scala's classes for
    each task. Kryo is better for large blobs: Java's serializer keeps references to all objects
    that it has written.
    """
    if not uses_optional_internals():
        return
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


def translate_task(rdd: RDD[Any]) -> None:
    """Create the JVM's counterpart of an RDD in advance, which takes longer than its submission."""
    if uses_optional_internals():
        _ = rdd._jrdd


def submit_map_stage(spark: SparkContext, shuffled: RDD[Any]) -> Any:  # noqa: ANN401  (py4j has no types)
    """Submit the stage before the shuffle of an RDD; return the JVM's future of the stage."""
    java_rdd: Any = shuffled._jrdd
    pairs = java_rdd.rdd().dependencies().head().rdd()
    context: Any = spark._jsc
    return context.sc().submitMapStage(pairs.dependencies().head())


def count_executors(spark: SparkContext) -> int | None:
    """Return the number of registered executors, 0 for a local master; None if unknown."""
    if not uses_optional_internals():
        return None
    context: Any = spark._jsc
    try:
        return int(context.sc().getExecutorMemoryStatus().size()) - 1  # the driver is included
    except (AttributeError, OSError, Py4JError):
        return None  # the context has ended
