"""The directory of the metadata: the hint leads to the newest document."""

from typing import Any

from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.io.file_io import MemoryFileIO


def document(version: int) -> Any:
    return {"current-snapshot-id": version, "snapshots": []}


def test_a_slower_process_does_not_take_the_hint_back() -> None:
    store = MetadataStore(MemoryFileIO(), "/m")
    for version in (3, 9, 4):  # one process goes on, another one has begun again at 9
        assert store.publish(document(version), {})
        assert store.newest_version() == max(version, 3 if version == 3 else 9)
    store.replace(document(4), {})
    assert store.newest_version() == 4, "after a rollback"
    assert store.versions() == [3, 4]
