from dataclasses import dataclass, replace

import pytest

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import DirectoryEntry, LocalFileIO
from ingestd.paimon.io.probes import store_now_ms


@dataclass(frozen=True)
class FarStore(LocalFileIO):
    """A store whose clock is fixed, or which never lists what was just written."""

    now_ms: int | None = None

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        found = super().list_entries(directory)
        now_ms = self.now_ms
        return [] if now_ms is None else [replace(one, modified_ms=now_ms) for one in found]


def test_the_time_is_that_of_a_file_just_written(tmp_path: object) -> None:
    assert store_now_ms(FarStore(now_ms=77), f"{tmp_path}/a/snapshot") == 77
    assert LocalFileIO().list_names(f"{tmp_path}/a/snapshot") == []


def test_a_store_that_does_not_list_the_file_has_no_time(tmp_path: object) -> None:
    with pytest.raises(StorageError, match="does not list a file that was just written"):
        store_now_ms(FarStore(), f"{tmp_path}/a")
    assert LocalFileIO().list_names(f"{tmp_path}/a") == []
