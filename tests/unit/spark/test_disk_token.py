import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingestd.errors import StorageError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.spark.disk_token import DiskToken, disk_tokens
from ingestd.spark.stages import WriteTask
from tests.support.native_tables import native_table

CLUSTER: Any = SimpleNamespace(master="spark://host:7077")


def context(*tables: Any) -> Any:
    """What tells of a batch where its tables are."""
    named = {str(n): SimpleNamespace(table=table) for n, table in enumerate(tables)}
    return SimpleNamespace(pipeline="shop", tables=named, write_buffer_size=1000)


def test_a_cluster_proves_the_disk_of_the_warehouse(tmp_path: Path) -> None:
    on_disk = native_table(tmp_path, [("v", "INT")])
    in_store = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    (token,) = disk_tokens(CLUSTER, context(on_disk, in_store))
    assert token.path == f"{tmp_path}/.ingestd/shop/disk-token"
    pickle.loads(pickle.dumps(token)).prove()
    assert disk_tokens(CLUSTER, context(on_disk)) == (token,)
    assert disk_tokens(CLUSTER, context(in_store)) == ()
    here: Any = SimpleNamespace(master="local[2]")
    assert disk_tokens(here, context(on_disk)) == ()


def test_another_disk_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    missing = DiskToken(f"{tmp_path}/disk-token", b"1")
    with pytest.raises(UnsupportedError, match="is not on the disk of the executor on "):
        missing.prove()
    Path(missing.path).write_bytes(b"2")  # of a driver that had this disk before
    (answer,) = WriteTask(context(), (missing,))([(0, b"a blob that nobody reads")])
    assert isinstance(answer, UnsupportedError)


def test_a_disk_that_does_not_answer_may_answer_later(tmp_path: Path) -> None:
    folder = tmp_path / "disk-token"
    folder.mkdir()
    with pytest.raises(StorageError):
        DiskToken(str(folder), b"1").prove()
