from pathlib import Path

import pytest

from ingestd.errors import ConfigError, IngestdError
from ingestd.paimon.catalog.hive_client import Address
from ingestd.paimon.catalog.hive_options import hive_options

URI = "thrift://h:1"


@pytest.fixture(autouse=True)
def _no_hive_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIVE_CONF_DIR", raising=False)
    monkeypatch.setenv("HADOOP_USER_NAME", "paimon")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'uri'"),
        ({"uri": "http://h"}, "'http://h': write thrift://HOST:PORT"),
        ({"uri": "thrift://h:x"}, "Port"),
        ({"uri": URI, "client-pool-size": "5"}, "no option client-pool-size; it has uri"),
        ({"uri": URI, "table.type": "view"}, "write managed or external"),
        ({"uri": URI, "lock-acquire-timeout": "soon"}, "lock-acquire-timeout"),
        ({"uri": URI, "hive.metastore.sasl.enabled": "true"}, "SASL, with which Kerberos"),
        ({"uri": URI, "metastore.use.SSL": "true"}, "TLS is not supported"),
        ({"uri": URI, "metastore.client.thrift.transport.mode": "http"}, "Thrift over HTTP"),
        ({"uri": URI, "hive-conf-dir": "/nowhere"}, "/nowhere/hive-site.xml cannot be read"),
    ],
)
def test_unsupported_options_are_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(IngestdError, match=message):
        hive_options("/lake", options)


def test_options_have_the_defaults_of_paimon() -> None:
    options = hive_options("/lake", {"uri": "thrift://a, thrift://b:2"})
    assert list(options.metastore.addresses) == [Address("a", 9083), Address("b", 2)]
    assert options.metastore.user == "paimon"
    assert options.lock is None
    assert options.sync_properties
    assert (options.external, options.location_in_properties) == (False, False)
    lock = hive_options("s3://b/lake", {"uri": URI}).lock
    assert lock is not None
    assert (lock.acquire_timeout_ms, lock.check_max_sleep_ms) == (480_000, 8_000)


def test_options_are_read_from_hive_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "hive.metastore.uris": "thrift://site:7",
        "table.type": "EXTERNAL",
        "hive.exec.scratchdir": "/tmp/hive",
    }
    entries = (
        f"<property><name>{name}</name><value> {value} </value></property>"
        for name, value in settings.items()
    )
    site = tmp_path / "hive-site.xml"
    site.write_text(f"<configuration>{''.join(entries)}</configuration>")
    options = hive_options("/lake", {"hive-conf-dir": str(tmp_path)})
    assert list(options.metastore.addresses) == [Address("site", 7)]
    assert options.external
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    options = hive_options("/lake", {"uri": URI, "table.type": "managed"})
    assert list(options.metastore.addresses) == [Address("h", 1)]
    assert not options.external
    site.write_text("<configuration>")
    with pytest.raises(ConfigError, match="cannot be read"):
        hive_options("/lake", {})
    site.write_text(
        "<c><property><name>hive.metastore.sasl.enabled</name><value>true</value></property></c>"
    )
    with pytest.raises(IngestdError, match=r"'hive\.metastore\.sasl\.enabled' = 'true'"):
        hive_options("/lake", {"uri": URI})
