"""What was written stays if it may be live, and goes if it cannot be."""

from collections.abc import Callable
from typing import Any

import pytest

from ingestd.errors import CommitConflictError, CommitUnknownError, IngestdError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite import (
    delete_rows,
    index_repair,
    postpone_move,
    rescale,
    rewrite_commit,
    sort_compact,
)
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
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
        HASH_CACHE.discard(table.paths.index(entry.file_name))
    return lambda: index_repair.repair_hash_index(table, now_ms=NOW_MS)


def ordered() -> Callable[[], Any]:
    table = filled([])
    return lambda: list(sort_compact.sort_compact(table, ["id"], clock_ms=lambda: NOW_MS))


def moved() -> Callable[[], Any]:
    table = filled(["id"], bucket="-2")
    state = load_state(table)
    return lambda: postpone_move.move_postponed(table, "u", state=state, now_ms=NOW_MS)


def deleted() -> Callable[[], Any]:
    table = filled([])
    marks = lambda rows: rows.column("id").to_numpy() == 7  # noqa: E731
    return lambda: delete_rows.delete_rows(table, marks, ["id"], now_ms=NOW_MS)


@pytest.mark.parametrize("made", [rescaled, repaired, ordered, moved, deleted])
def test_what_has_landed_stays_whole_when_a_signal_comes(
    made: Callable[[], Callable[[], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, tables = made(), list[FileStoreTable]()

    def lands_and_is_interrupted(table: FileStoreTable, *rest: Any, **more: Any) -> None:
        commit(table, *rest, **more)
        tables.append(table)
        raise KeyboardInterrupt

    monkeypatch.setattr(rewrite_commit, "commit", lands_and_is_interrupted)
    with pytest.raises(KeyboardInterrupt):
        work()
    (table,) = tables
    assert verify(table) == []
    assert read_table(table).num_rows == (29 if made is deleted else 30)


@pytest.mark.parametrize(
    ("error", "taken_back"), [(CommitConflictError("lost"), 1), (CommitUnknownError("?"), 0)]
)
def test_files_are_taken_back_only_if_nothing_can_have_landed(
    error: IngestdError, taken_back: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(rewrite_commit, "commit", fails)
    table, calls = filled([]), list[None]()
    with pytest.raises(type(error)):
        rewrite_commit.commit_rewrite(
            table,
            ManifestCommittable(BATCH_COMMIT_IDENTIFIER, ()),
            state=load_state(table),
            now_ms=NOW_MS,
            abort_files=lambda: calls.append(None),
        )
    assert len(calls) == taken_back
