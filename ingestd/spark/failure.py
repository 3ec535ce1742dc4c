"""Find the error of a query in the text of a traceback, or by the exit of Spark's JVM."""

import errno
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError

import ingestd.errors
from ingestd.errors import (
    DiskFullError,
    IngestdError,
    JvmLostError,
    RetryableError,
    WorkerLostError,
)
from ingestd.spark.pyspark_internals import gateway_process
from ingestd.spark.startup.jvm import session_jvm

_RAISED = re.compile(r"\bingestd\.errors\.(\w+): (.+)")
_CAUSE = re.compile(r"^\s*((?:[\w.$]+\.)?\w*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)
_ENDED_WITH = re.compile(r"terminated with exception: (.+)")
_WORKER_LOST = re.compile(r"Python worker exited unexpectedly|MemoryError\b|ExecutorLostFailure")
_LONGEST = 500
_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
"""The system's messages for a full disk and an exhausted quota, which Java repeats."""
_EXIT_SECONDS = 5.0
"""Time to wait for the exit of the JVM, which may follow shortly after a broken connection."""


def raised_error(text: str) -> IngestdError | None:
    """Return the last error of `ingestd.errors` in a traceback, or None without one.

    If the traceback has none, but Spark itself reports a full disk in it, the result is a
    DiskFullError.
    """
    raised = _RAISED.findall(text)
    if not raised:
        return DiskFullError(last_cause(text)) if any(phrase in text for phrase in _FULL) else None
    name, message = raised[-1]
    kind = getattr(ingestd.errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, IngestdError)):
        return None
    return kind(message)


def task_error(text: str) -> IngestdError:
    """Return the error for a job whose task has failed in all of Spark's attempts.

    `text` is the traceback that Spark reports. The result is that of `raised_error`; without it, a
    WorkerLostError if a worker was killed or ran out of memory, or else a RetryableError.
    """
    if raised := raised_error(text):
        return raised
    if _WORKER_LOST.search(text):
        return WorkerLostError(
            "a worker was killed, or needed more memory than processing.worker-memory; no topic "
            "partition was found that cannot be read with this limit"
        )
    return RetryableError(f"a task failed: {last_cause(text)}")


def last_cause(text: str) -> str:
    """Return the last line of a traceback that names an error, shortened to 500 characters.

    Without such a line, returns the reason that Spark states for the end of its query, or else the
    last line.
    """
    causes = _CAUSE.findall(text) or _ENDED_WITH.findall(text)
    return (causes[-1] if causes else text.strip().rpartition("\n")[2])[:_LONGEST]


@contextmanager
def reported_jvm_exit() -> Iterator[None]:
    """Raise JvmLostError instead of a connection error in the block if the JVM has ended.

    The JVM may end up to five seconds after the error. PySpark supports one JVM per process, so
    only a new process can continue.
    """
    try:
        yield
    except (Py4JError, OSError, EOFError) as error:
        code = _exit_code()
        if code is None:
            raise
        raise JvmLostError(jvm_exit_message(code)) from error


def jvm_exit_message(code: int) -> str:
    """Return the error message for an exit code of the JVM; -N means that signal N ended it."""
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
