import io

import obstore
import pytest
from obstore.store import MemoryStore

from ingestd.errors import StorageError
from ingestd.paimon.io.object_store import ObjectReader


@pytest.fixture
def reader() -> ObjectReader:
    store = MemoryStore()
    obstore.put(store, "k", bytes(range(100)))
    return ObjectReader(lambda: (store, "k"), "s3://b/k", 100)


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


def test_an_object_that_is_gone_is_reported_by_its_path() -> None:
    gone = ObjectReader(lambda: (MemoryStore(), "k"), "s3://b/k", 100)
    with pytest.raises(StorageError, match="s3://b/k"):
        gone.read(1)
