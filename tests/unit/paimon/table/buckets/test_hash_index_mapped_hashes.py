"""Hashes on the local disk: the same values, no file left, and no harm where there is no room."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

from ingestd.paimon.table.buckets.hash_index import memory_mapped


def test_mapped_hashes_are_the_same_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    hashes = np.array([-(2**31), -1, 0, 5, 2**31 - 1], np.int32)
    kept = memory_mapped(hashes)
    assert kept is not None
    assert kept.tolist() == hashes.tolist()
    assert not kept.flags.writeable
    assert list(tmp_path.iterdir()) == []


def test_without_room_nothing_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    assert memory_mapped(np.zeros(3, np.int32)) is None
