"""Questions to HDFS: each with a deadline, tried again while it may help, its failure named.

The library waits for an answer as long as the connection lives, so a namenode that is frozen or
cut off would stop its callers for ever; here they wait in threads that can be left behind.
"""

import random
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from hdfs_native._internal import RawClient

from ingestd.errors import StorageError, UnsupportedError
from ingestd.paimon.io.hdfs_client import client_of, forget_client

ANSWER_SECONDS = 60.0
"""How long one answer may take."""
PATIENCE_SECONDS = 60.0
"""How long a question is asked again that fails."""
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_EXCEPTION = re.compile(r'^\w+\("(?:[\w$]+\.)*([\w$]+)", "(.*)"\)$', re.DOTALL)
_TRACE = re.compile(r"(\\n|\n)\s*(\\t|\t)at .*", re.DOTALL)
_PLAIN = re.compile(r'^(\w+)\("(.*)"\)$', re.DOTALL)
_PASSING = (
    "SafeModeException",
    "RetriableException",
    "StandbyException",
    "ObserverRetryOnActiveException",
    "RpcServerException",
    "FatalRpcServerException",
    "NotReplicatedYetException",
    "DataTransferError",
    "BlocksNotFound",
    "ChecksumError",
    "OperationFailed",
)
"""Failures that time heals: of a namenode that starts or hands over, of datanodes that come."""
_FEW_DATANODES = "could only be written to"
_REASONS = {
    "SafeModeException": "the namenode is in safe mode, nothing can be written",
    "StandbyException": "no namenode of the cluster is active",
    "AccessControlException": "permission denied",
    "NSQuotaExceededException": "the quota of names is exceeded",
    "DSQuotaExceededException": "the quota of space is exceeded",
    "QuotaByStorageTypeExceededException": "the quota of space is exceeded",
    "InvalidToken": "the cluster refused the login",
    "SASLError": "the cluster refused the login",
    "GSSAPIError": "Kerberos refused the login",
    "NoSASLMechanism": "the cluster wants a login that this client does not know",
}
DEFINITE = (FileNotFoundError, FileExistsError, IsADirectoryError)
"""Answers, not failures: asking again does not change them."""
FAILURES = (OSError, RuntimeError)
"""All that the library raises; TimeoutError for an answer that did not come."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Hdfs:
    """A cluster, `hdfs://NAMESERVICE` or `hdfs://HOST:PORT`, asked with these options."""

    cluster: str
    options: frozenset[tuple[str, str]]

    def once(self, work: Callable[[RawClient], _T]) -> _T:
        """An answer within `ANSWER_SECONDS`, else TimeoutError; the library's errors pass.

        The question may still reach the cluster after a TimeoutError.
        """
        client = client_of(self.cluster, self.options)
        try:
            return _within(ANSWER_SECONDS, lambda: work(client))
        except TimeoutError:
            forget_client(self.cluster)
            raise

    def with_retries(self, work: Callable[[RawClient], _T]) -> _T:
        """As `once`, tried again as by `again`."""
        return self.again(lambda: self.once(work))

    def again(self, work: Callable[[], _T]) -> _T:
        """What `work` returns; it is done again after failures that may pass.

        It goes on until it failed for `PATIENCE_SECONDS`, then the last error passes.
        """
        end = None
        wait = _FIRST_WAIT
        while True:
            try:
                return work()
            except FAILURES as error:
                end = end or time.monotonic() + PATIENCE_SECONDS
                silent = isinstance(error, TimeoutError)
                if silent or not may_pass(error) or time.monotonic() + wait > end:
                    raise
            time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311  # no secret
            wait = min(2 * wait, _LONGEST_WAIT)


def may_pass(error: Exception) -> bool:
    """Whether the same question may have another answer soon."""
    if isinstance(error, DEFINITE):
        return False
    if isinstance(error, OSError):
        return True  # a connection, refused or lost
    kind, text = _parts(error)
    return kind in _PASSING or _FEW_DATANODES in text


def is_unknown(error: Exception) -> bool:
    """Whether the library says that it does not know how, by a RuntimeError of its own kind."""
    return isinstance(error, RuntimeError) and type(error) is not RuntimeError


def told(what: str, path: str, error: Exception) -> StorageError | UnsupportedError:
    """What went wrong, in words: `cannot WHAT PATH: reason`."""
    if is_unknown(error):
        return UnsupportedError(
            f"cannot {what} {path}: {said(error)}: ingestd's client of HDFS does not know this; "
            "put the warehouse into a directory without it"
        )
    return StorageError(f"cannot {what} {path}: {said(error)}")


def said(error: Exception) -> str:
    """The cluster's own sentence without Java's stack trace, with a reason before it if known."""
    if isinstance(error, TimeoutError):
        return f"no answer from the cluster within {ANSWER_SECONDS:g} seconds"
    kind, text = _parts(error)
    if isinstance(error, OSError):
        text = f"no connection: {text}" if not isinstance(error, DEFINITE) else text
    reason = _REASONS.get(kind, kind)
    return ": ".join(part for part in (reason, text) if part)


def _parts(error: Exception) -> tuple[str, str]:
    """Java's class or the library's kind of error, and its text."""
    text = str(error)
    if isinstance(error, RuntimeError) and (found := _EXCEPTION.match(text)):
        return found[1], _TRACE.sub("", found[2]).strip()
    if isinstance(error, RuntimeError) and (found := _PLAIN.match(text)):
        return found[1], found[2].strip()
    if isinstance(error, RuntimeError) and text in _REASONS:
        return text, ""
    return "", _TRACE.sub("", text).strip()


def _within(seconds: float, work: Callable[[], _T]) -> _T:
    """What `work` returns or raises; TimeoutError, and it goes on alone, if it takes longer."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except FAILURES as error:
            future.set_exception(error)
        finally:
            if not future.done():
                future.set_exception(RuntimeError("InternalError"))

    threading.Thread(target=run, name="hdfs", daemon=True).start()
    return future.result(seconds)
