"""Clients of HDFS clusters, and calls to them with deadlines, retries and readable errors.

The library (hdfs-native) speaks HDFS's own protocol, without a JVM. It reads core-site.xml and
hdfs-site.xml of HADOOP_CONF_DIR, and takes the user from HADOOP_USER_NAME or the system, as
Hadoop's tools do. It waits for a response as long as the connection exists, so a namenode that is
frozen or cut off would block its callers for ever; here each call runs in a thread that can be
abandoned.
"""

import functools
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from hdfs_native import Client
from hdfs_native._internal import RawClient

from ingestd.errors import ConfigError, StorageError, UnsupportedError

_DIRECTORY = "hadoop-conf-dir"
_PRINCIPAL = "security.kerberos.login.principal"
_KEYTAB = "security.kerberos.login.keytab"
_HADOOP = "hadoop."
_ATTEMPTS = {"dfs.client.failover.max.attempts": "4"}
"""Number of attempts; the library's default takes a minute, and `Hdfs.again` retries as well."""
_NAMENODES = "dfs.ha.namenodes."
_silences: Counter[str] = Counter()
_lock = threading.Lock()
RESPONSE_SECONDS = 60.0
"""Timeout of one call, in seconds."""
PATIENCE_SECONDS = 60.0
"""How long a failing call is repeated, in seconds."""
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
"""Temporary failures: a namenode that starts or fails over, datanodes that are not up yet."""
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
"""Errors that a repeated call would raise again."""
FAILURES = (OSError, RuntimeError)
"""All errors of the library, and TimeoutError (an OSError) for a missing response."""
_T = TypeVar("_T")


def client_of(cluster: str, options: frozenset[tuple[str, str]]) -> RawClient:
    """Return this process's client of a cluster, `hdfs://NAMESERVICE` or `hdfs://HOST:PORT`.

    No connection is opened yet. Raises ConfigError if neither the options nor Hadoop's
    configuration files name its namenodes.
    """
    return _opened(cluster, options, os.getpid(), _silences[cluster])


def forget_client(cluster: str) -> None:
    """Drop the client of a cluster after a namenode did not respond; the next call opens a new one.

    The new client tries the namenodes in random order, since the unresponsive one may be the first
    in the configuration.
    """
    with _lock:
        _silences[cluster] += 1


@functools.lru_cache(maxsize=64)
def _opened(
    cluster: str, options: frozenset[tuple[str, str]], _process: int, silences: int
) -> RawClient:
    given = dict(options)
    try:
        return Client(
            f"{cluster}/",
            hadoop_settings(given, cluster if silences else ""),
            given.get(_DIRECTORY),
            kerberos_principal=given.get(_PRINCIPAL),
            kerberos_keytab=given.get(_KEYTAB),
        ).inner
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"{cluster}: {error}; name host and port (hdfs://HOST:8020/...), or the nameservice "
            f"that HADOOP_CONF_DIR, the option {_DIRECTORY} or hadoop.{_NAMENODES}... describe"
        ) from error


def hadoop_settings(options: Mapping[str, str], shuffled: str = "") -> dict[str, str]:
    """Return the Hadoop settings among the options, by Hadoop's names, for the library.

    They override the configuration files, and include this module's limit of attempts. The
    namenodes of the cluster `shuffled`, if it is given, are tried in random order.
    """
    settings = _ATTEMPTS | {
        name.removeprefix(_HADOOP): value
        for name, value in options.items()
        if name.startswith(_HADOOP)
    }
    if shuffled:
        host = shuffled.removeprefix("hdfs://")
        settings[f"dfs.client.failover.random.order.{host}"] = "true"
    return settings


@dataclass(frozen=True, slots=True)
class Hdfs:
    """A cluster, `hdfs://NAMESERVICE` or `hdfs://HOST:PORT`, and the options of its client."""

    cluster: str
    options: frozenset[tuple[str, str]]

    def once(self, work: Callable[[RawClient], _T]) -> _T:
        """Call `work` once with the client of the cluster, and return its result.

        Raises TimeoutError after 60 seconds, and the library's errors. After a TimeoutError, the
        request may still take effect.
        """
        client = client_of(self.cluster, self.options)
        try:
            return _within(RESPONSE_SECONDS, lambda: work(client))
        except TimeoutError:
            forget_client(self.cluster)
            raise

    def with_retries(self, work: Callable[[RawClient], _T]) -> _T:
        """Call `work` with the client of the cluster, and repeat it after temporary failures.

        Returns the result. Raises the last error when `work` has been failing for 60 seconds; a
        timeout or a lasting failure is raised at once.
        """
        return self.again(lambda: self.once(work))

    def again(self, work: Callable[[], _T]) -> _T:
        """Call `work`, and repeat it after temporary failures; return its result.

        Raises the last error when `work` has been failing for 60 seconds; a timeout or a lasting
        failure is raised at once.
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
    """Return whether a failure is temporary, so that the request can be repeated."""
    if isinstance(error, DEFINITE):
        return False
    if isinstance(error, OSError):
        return True  # a connection, refused or lost
    kind, text = _parts(error)
    return kind in _PASSING or _FEW_DATANODES in text


def is_unknown(error: Exception) -> bool:
    """Return whether an error means that the library does not support a request.

    The library raises such errors as instances of a subclass of RuntimeError.
    """
    return isinstance(error, RuntimeError) and type(error) is not RuntimeError


def hdfs_error(action: str, path: str, error: Exception) -> StorageError | UnsupportedError:
    """Return the error to raise in place of an error of the library.

    It is an UnsupportedError if the library does not support the request, else a StorageError. The
    message begins "cannot", followed by `action`, a verb such as "read", and by the path.
    """
    if is_unknown(error):
        return UnsupportedError(
            f"cannot {action} {path}: {failure_text(error)}: ingestd's client of HDFS does not "
            "support this; put the warehouse into a directory that does not use it"
        )
    return StorageError(f"cannot {action} {path}: {failure_text(error)}")


def failure_text(error: Exception) -> str:
    """Return a readable text of an error: its reason, and its message without Java stack trace."""
    if isinstance(error, TimeoutError):
        return f"no response from the cluster within {RESPONSE_SECONDS:g} seconds"
    kind, text = _parts(error)
    if isinstance(error, OSError):
        text = f"no connection: {text}" if not isinstance(error, DEFINITE) else text
    reason = _REASONS.get(kind, kind)
    return ": ".join(phrase for phrase in (reason, text) if phrase)


def _parts(error: Exception) -> tuple[str, str]:
    """Return the kind of an error (Java class, kind of the library, or empty), and its message."""
    text = str(error)
    if isinstance(error, RuntimeError) and (match := _EXCEPTION.match(text)):
        return match[1], _TRACE.sub("", match[2]).strip()
    if isinstance(error, RuntimeError) and (match := _PLAIN.match(text)):
        return match[1], match[2].strip()
    if isinstance(error, RuntimeError) and text in _REASONS:
        return text, ""
    return "", _TRACE.sub("", text).strip()


def _within(seconds: float, work: Callable[[], _T]) -> _T:
    """Run `work` in a thread and return its result.

    Raises its error, or TimeoutError while it still runs.
    """
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
