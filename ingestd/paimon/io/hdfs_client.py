"""Clients of HDFS: one for each cluster, set of options and process, by Paimon's option names.

The library speaks HDFS's own protocol, without a JVM. It reads core-site.xml and hdfs-site.xml of
HADOOP_CONF_DIR, and takes the user from HADOOP_USER_NAME or the system, as Hadoop's tools do.
"""

import functools
import os
import threading
from collections import Counter
from collections.abc import Mapping

from hdfs_native import Client
from hdfs_native._internal import RawClient

from ingestd.errors import ConfigError

_DIRECTORY = "hadoop-conf-dir"
_PRINCIPAL = "security.kerberos.login.principal"
_KEYTAB = "security.kerberos.login.keytab"
_HADOOP = "hadoop."
_ATTEMPTS = {"dfs.client.failover.max.attempts": "4"}
"""The library's own patience with a nameservice, a minute by itself; who asks has patience, too."""
_NAMENODES = "dfs.ha.namenodes."
_silences: Counter[str] = Counter()
_lock = threading.Lock()


def client_of(cluster: str, options: frozenset[tuple[str, str]]) -> RawClient:
    """The client of a cluster, `hdfs://NAMESERVICE` or `hdfs://HOST:PORT`; one for each process.

    No connection is made yet. ConfigError if the options do not say where its namenodes are.
    """
    return _opened(cluster, options, os.getpid(), _silences[cluster])


def forget_client(cluster: str) -> None:
    """Open another client the next time: a namenode kept silent, its connection is of no use.

    Of several namenodes the next client asks any first, since the one that keeps silent may be
    the first in the configuration for ever.
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
    """Hadoop's settings among the options, which win over those in files.

    The namenodes of `shuffled`, a cluster, are asked in any order.
    """
    found = _ATTEMPTS | {
        name.removeprefix(_HADOOP): value
        for name, value in options.items()
        if name.startswith(_HADOOP)
    }
    if shuffled:
        host = shuffled.removeprefix("hdfs://")
        found[f"dfs.client.failover.random.order.{host}"] = "true"
    return found
