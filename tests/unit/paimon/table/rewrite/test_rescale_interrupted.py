"""A signal while a snapshot lands: nothing that may be live is deleted."""

from collections.abc import Callable
from typing import Any

import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.schema import SetOption
from ingestd.paimon.table.buckets.hash_index import CACHE
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite import index_repair, postpone_move, rescale, sort_compact
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, alter, native_table, put


def filled(keys: list[str], **options: str) -> FileStoreTable:
    table = native_table("/w", [("id", "INT")], keys=keys, options=options, io=MemoryFileIO())
    put(table, [{"id": n} for n in range(30)])
    return table


def rescaled() -> Callable[[], Any]:
    table = alter(filled(["id"], bucket="2"), SetOption("bucket", "3"))
    return lambda: list(rescale.rescale(table, 3, clock_ms=lambda: NOW_MS))


def repaired() -> Callable[[], Any]:
    table = filled(["id"], bucket="-1")
    for entry in load_state(table).index_entries.values():
        table.io.delete_quietly(table.paths.index(entry.file_name))
        CACHE.discard(table.paths.index(entry.file_name))
    return lambda: index_repair.repair_hash_index(table, now_ms=NOW_MS)


def ordered() -> Callable[[], Any]:
    table = filled([])
    return lambda: list(sort_compact.sort_compact(table, ["id"], clock_ms=lambda: NOW_MS))


def moved() -> Callable[[], Any]:
    table = filled(["id"], bucket="-2")
    state = load_state(table)
    return lambda: postpone_move.move_waiting(table, "u", state=state, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("module", "made"),
    [(rescale, rescaled), (index_repair, repaired), (sort_compact, ordered),
     (postpone_move, moved)],
)  # fmt: skip
def test_what_has_landed_stays_whole(
    module: Any, made: Callable[[], Callable[[], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, tables = made(), list[FileStoreTable]()

    def lands_and_is_interrupted(table: FileStoreTable, *rest: Any, **more: Any) -> None:
        commit(table, *rest, **more)
        tables.append(table)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "commit", lands_and_is_interrupted)
    with pytest.raises(KeyboardInterrupt):
        work()
    (table,) = tables
    assert verify(table) == []
    assert read_table(table).num_rows == 30
