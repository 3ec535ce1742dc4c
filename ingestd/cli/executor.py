"""`ingestd executor`: a Spark executor in a pod."""

import os
from typing import NoReturn

from ingestd.spark.startup.executor import executor_command


def executor() -> NoReturn:
    """Run a Spark executor in a pod that Spark created.

    Spark on Kubernetes starts the image with this argument and sets the environment variables
    (SPARK_DRIVER_URL and others). The command is of no use elsewhere.

    **Examples**

    docker run -e SPARK_DRIVER_URL=... ingestd executor
    """
    command = executor_command(os.environ)
    os.execv(command[0], command)  # noqa: S606  (Spark's signals and exit codes are the JVM's)
