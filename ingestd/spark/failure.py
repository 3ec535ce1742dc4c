"""Rebuild errors from tracebacks that Spark reports from other processes as text."""

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
"""The messages of the system for a full disk, in Java as well."""


def raised_error(text: str) -> IngestdError | None:
    """Return the last ingestd error in a traceback; None if it contains none.

    A full disk that Spark itself reports is a DiskFullError.
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
    """Return the error for a job that failed after all of Spark's task attempts."""
    if raised := raised_error(text):
        return raised
    if _WORKER_LOST.search(text):
        return WorkerLostError(
            "a worker was killed, or needed more memory than processing.worker-memory; no topic "
            "partition was found that cannot be read with as much"
        )
    return RetryableError(f"a task failed: {last_cause(text)}")


def last_cause(text: str) -> str:
    """Return the last line of a traceback that names an error.

    Without one, the reason that Spark gives for the end of its query.
    """
    causes = _CAUSE.findall(text) or _ENDED_WITH.findall(text)
    return (causes[-1] if causes else text.strip().rpartition("\n")[2])[:_LONGEST]
