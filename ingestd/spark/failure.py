"""Errors that come back from other processes as the text of a traceback."""

import errno
import os
import re

import ingestd.errors
from ingestd.errors import DiskFullError, IngestdError, RetryableError, WorkerLostError

_RAISED = re.compile(r"\bingestd\.errors\.(\w+): (.+)")
_CAUSE = re.compile(r"^\s*((?:[\w.$]+\.)?\w*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)
_ENDED_WITH = re.compile(r"terminated with exception: (.+)")
_WORKER_LOST = re.compile(r"Python worker exited unexpectedly|MemoryError\b|ExecutorLostFailure")
_LONGEST = 500
_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
"""What the system says of a full disk, to Java as well."""


def raised_error(text: str) -> IngestdError | None:
    """The error of this package that a traceback shows as raised last, None if there is none.

    Spark hands over an error of the source's process as the text of its traceback. A full disk
    that Spark has met itself is a DiskFullError.
    """
    found = _RAISED.findall(text)
    if not found:
        return DiskFullError(last_cause(text)) if any(one in text for one in _FULL) else None
    name, message = found[-1]
    kind = getattr(ingestd.errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, IngestdError)):
        return None
    return kind(message)


def task_error(text: str) -> IngestdError:
    """Return the error for a job whose tasks failed as often as Spark tries them."""
    if raised := raised_error(text):
        return raised
    if _WORKER_LOST.search(text):
        return WorkerLostError(
            "a worker was killed, or needed more memory than processing.worker-memory; no topic "
            "partition was found that cannot be read with as much"
        )
    return RetryableError(f"a task failed: {last_cause(text)}")


def last_cause(text: str) -> str:
    """The last line of a traceback that names an error: what happened, without where.

    Else what Spark says that its query ended with, behind which it shows a plan.
    """
    found = _CAUSE.findall(text) or _ENDED_WITH.findall(text)
    return (found[-1] if found else text.strip().rpartition("\n")[2])[:_LONGEST]
