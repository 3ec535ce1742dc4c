"""The state of a table beside processes that commit and expire."""

from pathlib import Path

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.table.metadata import table_state
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.maintenance import run_maintenance
from tests.support.native_tables import NOW_MS, native_table, put

COLUMNS = [("k", "INT"), ("v", "STRING")]
ONE_STAYS = {"bucket": "1", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}


def test_a_snapshot_that_expires_while_it_is_read_is_followed_by_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = native_table(tmp_path, COLUMNS, keys=["k"], options=ONE_STAYS)
    put(table, [{"k": 1, "v": "a"}])
    slow_reader = read_snapshot(table.io, table.paths, 1)
    put(table, [{"k": 2, "v": "b"}])
    run_maintenance(table, NOW_MS + 86_400_000)
    newest = [read_snapshot(table.io, table.paths, 2), slow_reader]
    monkeypatch.setattr(table_state, "latest_snapshot", lambda io, paths: newest.pop())
    assert load_state(table).snapshot == read_snapshot(table.io, table.paths, 2)


def test_a_newest_snapshot_without_its_manifests_is_damage(tmp_path: Path) -> None:
    table = native_table(tmp_path, COLUMNS, keys=["k"], options=ONE_STAYS)
    put(table, [{"k": 1, "v": "a"}])
    for path in Path(table.path, "manifest").glob("manifest-list-*"):
        path.unlink()
    with pytest.raises(FormatError, match="manifest-list"):
        load_state(table)
