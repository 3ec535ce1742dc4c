import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingestd.errors import StorageError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.io.local import LocalFileIO
from ingestd.spark.stages import WriteTask
from ingestd.spark.warehouse_token import WarehouseToken, warehouse_tokens
from tests.support.native_tables import native_table

CLUSTER: Any = SimpleNamespace(master="spark://host:7077")


def context(*tables: Any) -> Any:
    """The parts of a batch's context that name its tables."""
    named = {str(n): SimpleNamespace(table=table) for n, table in enumerate(tables)}
    return SimpleNamespace(pipeline="shop", tables=named, write_buffer_size=1000)


def test_a_cluster_proves_every_warehouse(tmp_path: Path) -> None:
    on_disk = native_table(tmp_path, [("v", "INT")])
    in_store = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    tokens = warehouse_tokens(CLUSTER, context(on_disk, in_store))
    assert {token.path for token in tokens} == {
        f"{tmp_path}/.ingestd/shop/warehouse-token",
        "/w/.ingestd/shop/warehouse-token",
    }
    [token] = warehouse_tokens(CLUSTER, context(on_disk))
    pickle.loads(pickle.dumps(token)).prove()
    assert token in tokens, "written once in a process"
    here: Any = SimpleNamespace(master="local[2]")
    assert warehouse_tokens(here, context(on_disk)) == ()


def test_another_warehouse_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    missing = WarehouseToken(LocalFileIO(), f"{tmp_path}/warehouse-token", b"1")
    with pytest.raises(UnsupportedError, match="is not in the warehouse of the executor on "):
        missing.prove()
    Path(missing.path).write_bytes(b"2")  # of a driver that had this warehouse before
    (answer,) = WriteTask(context(), (missing,))([(0, b"a blob that no task reads")])
    assert isinstance(answer, UnsupportedError)


def test_another_store_under_the_same_path_is_refused() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    [token] = warehouse_tokens(CLUSTER, context(table))
    token.prove()
    elsewhere = WarehouseToken(MemoryFileIO(), token.path, b"another process's")
    with pytest.raises(UnsupportedError, match=r"^/w/\.ingestd/shop/warehouse-token"):
        elsewhere.prove()


def test_a_disk_that_does_not_answer_may_answer_later(tmp_path: Path) -> None:
    folder = tmp_path / "warehouse-token"
    folder.mkdir()
    with pytest.raises(StorageError):
        WarehouseToken(LocalFileIO(), str(folder), b"3").prove()
