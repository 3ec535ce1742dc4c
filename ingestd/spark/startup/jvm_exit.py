"""Report how the JVM of a running query ended, instead of a broken connection."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError

from ingestd.errors import FatalError
from ingestd.spark.pyspark_internals import gateway_process
from ingestd.spark.startup.jvm import session_jvm

_EXIT_SECONDS = 5.0
"""A connection may break shortly before the exit of the process can be seen."""


@contextmanager
def reported_jvm_exit() -> Iterator[None]:
    """Turn connection errors in the block into a FatalError if the JVM has ended.

    PySpark supports one JVM per process, so only a new process can continue.
    """
    try:
        yield
    except (Py4JError, OSError, EOFError) as error:
        code = _exit_code()
        if code is None:
            raise
        raise FatalError(jvm_exit_message(code)) from error


def jvm_exit_message(code: int) -> str:
    """Return the message for an exit code; a negative one is the number of a signal."""
    names = {member.value: member.name for member in signal.Signals}
    how = f"ended with {code}"
    if code < 0:
        how = f"was killed by {names.get(-code, f'signal {-code}')}"
    hint = ", as the kernel does when memory is short" if code == -signal.SIGKILL else ""
    return (
        f"Spark's JVM {how}{hint}; committed data is complete, and the next start continues "
        "from there: start ingestd again"
    )


def _exit_code() -> int | None:
    jvm = session_jvm()
    if jvm is not None:
        return jvm.wait(_EXIT_SECONDS)
    process = gateway_process()
    if process is None:
        return None
    with suppress(subprocess.TimeoutExpired):
        return process.wait(_EXIT_SECONDS)
    return None
