"""Clients of clusters: their settings, and one client for each cluster."""

from pathlib import Path

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.io.hdfs_client import client_of, forget_client, hadoop_settings

NOBODY = "hdfs://127.0.0.1:1"
NAMENODES = {
    "hadoop.dfs.ha.namenodes.lake": "a,b",
    "hadoop.dfs.namenode.rpc-address.lake.a": "127.0.0.1:1",
    "hadoop.dfs.namenode.rpc-address.lake.b": "127.0.0.1:2",
    "hadoop.dfs.client.failover.sleep.base.millis": "1",
    "hadoop.dfs.client.failover.sleep.max.millis": "1",
}


def test_a_cluster_has_one_client_until_it_keeps_silent() -> None:
    first = client_of(NOBODY, frozenset())
    assert client_of(NOBODY, frozenset()) is first
    assert client_of("hdfs://127.0.0.1:2", frozenset()) is not first
    forget_client(NOBODY)
    assert client_of(NOBODY, frozenset()) is not first


def test_a_nameservice_is_known_by_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(ConfigError, match=r"hdfs://lake: .*name host and port"):
        client_of("hdfs://lake", frozenset())
    with pytest.raises(OSError, match="refused"):
        client_of("hdfs://lake", frozenset(NAMENODES.items())).get_file_info("/")


def test_a_nameservice_is_known_by_files(tmp_path: Path) -> None:
    properties = (
        f"<property><name>{name.removeprefix('hadoop.')}</name><value>{value}</value></property>"
        for name, value in NAMENODES.items()
    )
    text = f"<configuration>{''.join(properties)}</configuration>"
    (tmp_path / "hdfs-site.xml").write_text(text)
    options = frozenset({("hadoop-conf-dir", str(tmp_path))})
    with pytest.raises(OSError, match="refused"):
        client_of("hdfs://lake", options).get_file_info("/")


def test_settings_lose_their_prefix_and_a_silent_cluster_is_asked_in_any_order() -> None:
    given = {**NAMENODES, "hadoop-conf-dir": "/etc/hadoop"}
    found = hadoop_settings(given)
    attempts = {"dfs.client.failover.max.attempts": "4"}
    assert found == attempts | {
        name.removeprefix("hadoop."): value for name, value in NAMENODES.items()
    }
    shuffled = {"dfs.client.failover.random.order.lake": "true"}
    assert hadoop_settings(given, "hdfs://lake") == {**found, **shuffled}
