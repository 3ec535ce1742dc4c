"""An HDFS of this process, in place of a namenode."""

import pytest

from ingestd.paimon.io import hdfs_client
from tests.support.fake_hdfs import FakeHdfs


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> FakeHdfs:
    fake = FakeHdfs()
    monkeypatch.setattr(hdfs_client, "client_of", lambda *_: fake)
    monkeypatch.setattr(hdfs_client, "_FIRST_WAIT", 0.0)
    return fake
