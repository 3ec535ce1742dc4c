"""The folder of a batch: removed after the batch, at the latest with the process that made it."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from ingestd.errors import StorageError
from ingestd.ingest.rows.blobs import as_bytes
from ingestd.spark.exchange import shared_folder as module
from ingestd.spark.exchange.local_exchange import read_blobs, write_blobs
from ingestd.spark.exchange.shared_folder import shared_folder


def wait_for_removal() -> None:
    module._remover.submit(int).result(60)


def test_the_folder_of_a_batch_goes_while_its_mapped_files_stay(tmp_path: Path) -> None:
    with shared_folder(str(tmp_path)) as folder:
        pairs = list(write_blobs([(0, pa.py_buffer(b"a" * 50_000))], folder))
        (mapped,) = read_blobs(blob for _, blob in pairs)
    wait_for_removal()
    assert list(tmp_path.iterdir()) == []
    assert as_bytes(mapped) == b"a" * 50_000


def test_a_batch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), shared_folder(str(tmp_path)) as folder:
        Path(str(folder), "blobs").touch()
        raise KeyError
    wait_for_removal()
    assert list(tmp_path.iterdir()) == []


def test_without_a_parent_there_is_no_folder() -> None:
    with shared_folder(None) as folder:
        assert folder is None


def test_the_folder_goes_with_the_process(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from ingestd.spark.exchange.shared_folder import shared_folder\n"
        "for _ in range(2):\n"
        "    with shared_folder(sys.argv[1]): pass\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=180)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_driver_left_goes_and_what_is_in_use_stays(tmp_path: Path) -> None:
    left, new = tmp_path / "ingestd-blobs-left", tmp_path / "ingestd-blobs-new"
    for folder in (left, new):
        folder.mkdir()
        (folder / "blob").touch()
    with shared_folder(str(tmp_path)) as busy:
        assert busy is not None
        for old in (left, Path(busy)):
            os.utime(old, (0, 0))
        with shared_folder(str(tmp_path)):
            assert Path(busy).is_dir()
            assert new.is_dir()
            assert not left.exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    with pytest.raises(StorageError, match=r"gone.*spark\.local\.dir"), shared_folder(gone):
        pass
