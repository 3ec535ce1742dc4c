"""What a JVM that ended under a running query ended with, said instead of a broken connection."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from ingestd.errors import FatalError
from ingestd.spark.startup.prestart import session_jvm

_SECONDS = 5.0
"""A connection may break a moment before the system says that the process has ended."""


@contextmanager
def named_jvm_end() -> Iterator[None]:
    """Let errors of the connection to a JVM that is no more be a FatalError that says so.

    A process holds one JVM in its life, so nothing but another process can go on.
    """
    try:
        yield
    except (Py4JError, OSError, EOFError) as error:
        code = _exit_code()
        if code is None:
            raise
        raise FatalError(jvm_end_message(code)) from error


def jvm_end_message(code: int) -> str:
    """What to say of a JVM with this exit code, a signal's being negative."""
    names = {one.value: one.name for one in signal.Signals}
    how = f"ended with {code}"
    if code < 0:
        how = f"was killed by {names.get(-code, f'signal {-code}')}"
    hint = ", as by the system when memory is short" if code == -signal.SIGKILL else ""
    return (
        f"Spark's JVM {how}{hint}; what is committed stays sound, and the next start goes on "
        "from there: start ingestd again"
    )


def _exit_code() -> int | None:
    jvm = session_jvm()
    if jvm is not None:
        return jvm.ended_with(_SECONDS)
    gateway: Any = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return None
    with suppress(subprocess.TimeoutExpired):
        return process.wait(_SECONDS)
    return None
