"""A compaction that is interrupted by a signal, at whatever moment."""

from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.table.compact import table_compact as compact
from ingestd.paimon.table.compact.compact_bucket import TreePlan
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put


@pytest.fixture
def table(tmp_path: Path) -> FileStoreTable:
    one = native_table(tmp_path, [("k", "INT")], keys=["k"], options={"bucket": "2"})
    for _ in range(6):
        put(one, [{"k": k} for k in range(20)])
    return one


def data_files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("bucket-*/*")}


def test_before_the_commit_its_files_are_taken_back(
    tmp_path: Path, table: FileStoreTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, run, runs = data_files(tmp_path), TreePlan.run, []

    def interrupted(plan: TreePlan) -> Any:
        runs.append(plan)
        if len(runs) == 2:
            raise SystemExit(143)
        return run(plan)

    monkeypatch.setattr(TreePlan, "run", interrupted)
    with pytest.raises(SystemExit):
        compact_table(table, now_ms=NOW_MS)
    assert data_files(tmp_path) == known


def test_after_the_snapshot_nothing_is_taken_back(
    table: FileStoreTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, commit = read_table(table), compact.commit

    def interrupted(*arguments: Any, **options: Any) -> Any:
        commit(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(compact, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compact_table(table, now_ms=NOW_MS)
    assert verify(table) == []
    assert read_table(table).sort_by("k").equals(before.sort_by("k"))
