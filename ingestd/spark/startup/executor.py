"""Compose the command line of an executor that Spark starts as a pod.

Spark's scheduler for Kubernetes starts the image of executors with the argument `executor` and
passes everything else in environment variables; the image has to start the JVM. The command line
uses Java, class path and class archive in the same way as the JVM of a driver, and the flags of
`spark.executor.extraJavaOptions`, as the driver completed them.
"""

import os
import re
from collections.abc import Mapping

from ingestd.errors import ConfigError
from ingestd.spark.startup.class_archive import archive_file, archive_flags
from ingestd.spark.startup.jvm import class_path, java_command, spark_home

_MAIN = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_JVM_OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)")
_MEMORY = "SPARK_EXECUTOR_MEMORY"
_EXTRA_CLASSES = "SPARK_CLASSPATH"
_ARGUMENTS: Mapping[str, str] = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
"""Arguments of the executor's main class, and the variables that Spark sets for them."""


def executor_command(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command line of the executor that the variables in `environ` describe.

    Raises ConfigError if Java, PySpark or a variable that Spark sets for executors is missing.
    """
    java, home = java_command(), spark_home()
    if java is None or home is None:
        raise ConfigError("an executor needs a Java 17 runtime (JAVA_HOME or PATH) and PySpark")
    missing = [name for name in (*_ARGUMENTS.values(), _MEMORY) if not environ.get(name)]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)} is not set: Spark sets it in the pods of executors that it "
            "creates (spark.master k8s://...); `ingestd executor` is for those only"
        )
    jars = class_path(home)
    more = [environ[_EXTRA_CLASSES]] if environ.get(_EXTRA_CLASSES) else []
    return (
        java,
        # The archive is valid for every class path that begins with its own.
        *("-cp", os.pathsep.join([*jars, *more])),
        *archive_flags(archive_file(java, jars)),
        *_jvm_options(environ),
        f"-Xms{environ[_MEMORY]}",
        f"-Xmx{environ[_MEMORY]}",
        _MAIN,
        *(part for name, variable in _ARGUMENTS.items() for part in (name, environ[variable])),
    )


def _jvm_options(environ: Mapping[str, str]) -> list[str]:
    """Return the JVM options of the variables `SPARK_JAVA_OPT_N`, in the order of N."""
    options = [(match, environ[match[0]]) for match in map(_JVM_OPTION.fullmatch, environ) if match]
    return [option for match, option in sorted(options, key=lambda item: int(item[0][1]))]
