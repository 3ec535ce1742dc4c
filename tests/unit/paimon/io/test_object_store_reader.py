import io

import obstore
import pytest
from obstore.store import MemoryStore

from ingestd.errors import StorageError
from ingestd.paimon.io import object_store
from ingestd.paimon.io.object_store import ObjectFileIO, ObjectReader, RenewedClient


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    store = MemoryStore()
    monkeypatch.setattr(object_store, "open_store", lambda *_: store)
    return store


@pytest.fixture
def reader(store: MemoryStore) -> ObjectReader:
    obstore.put(store, "k", bytes(range(100)))
    return ObjectReader(ObjectFileIO(), "s3://b/k", 100)


def test_it_reads_like_a_file(reader: ObjectReader) -> None:
    assert reader.read(3) == b"\x00\x01\x02"
    assert reader.tell() == 3
    assert reader.seek(-2, io.SEEK_END) == 98
    assert reader.read() == b"\x62\x63"
    assert reader.read(5) == b""
    assert reader.seek(10) == 10
    assert reader.seek(5, io.SEEK_CUR) == 15
    assert reader.read(1) == b"\x0f"
    assert reader.seek(95) == 95
    assert len(reader.read(50)) == 5


@pytest.mark.usefixtures("store")
def test_an_object_that_is_gone_is_reported_by_its_path() -> None:
    gone = ObjectReader(ObjectFileIO(), "s3://b/k", 100)
    with pytest.raises(StorageError, match="s3://b/k"):
        gone.read(1)


class Changing:
    """Credentials that a test changes."""

    def __init__(self) -> None:
        self.key = "first"

    def current(self) -> frozenset[tuple[str, str]]:
        return frozenset({("s3.access-key", self.key), ("s3.secret-key", "s")})

    def discard(self) -> None:
        raise AssertionError


def test_a_client_is_kept_until_its_credentials_change() -> None:
    credentials = Changing()
    client = RenewedClient("s3", "bucket", credentials)
    first = client.current()
    assert client.current() is first
    credentials.key = "second"
    second = client.current()
    assert second is not first
    assert client.current() is second
