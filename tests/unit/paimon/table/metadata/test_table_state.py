"""The state of a table beside processes that commit and expire."""

from pathlib import Path

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata import table_state
from ingestd.paimon.table.metadata.file_store_scan import delta_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.table_state import load_state, refresh_state
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


@pytest.mark.parametrize("commits_meanwhile", [0, 1], ids=["middle", "newest"])
def test_a_refresh_goes_on_to_the_newest_when_a_snapshot_expires_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits_meanwhile: int
) -> None:
    table = native_table(tmp_path, COLUMNS, keys=["k"], options=ONE_STAYS)
    put(table, [{"k": 1, "v": "a"}])
    state = load_state(table)
    put(table, [{"k": 2, "v": "b"}])
    put(table, [{"k": 3, "v": "c"}])

    def expire_first(table: FileStoreTable, snapshot: Snapshot) -> list[ManifestEntry]:
        monkeypatch.undo()
        for key in range(commits_meanwhile):
            put(table, [{"k": key, "v": "d"}])
        run_maintenance(table, NOW_MS + 86_400_000)
        return delta_entries(table, snapshot)

    monkeypatch.setattr(table_state, "delta_entries", expire_first)
    assert refresh_state(table, state) == load_state(table)


@pytest.mark.parametrize("lost", [2, 3])
def test_a_refresh_over_lost_manifests_is_damage(tmp_path: Path, lost: int) -> None:
    table = native_table(tmp_path, COLUMNS, keys=["k"], options={"bucket": "1"})
    put(table, [{"k": 1, "v": "a"}])
    state = load_state(table)
    put(table, [{"k": 2, "v": "b"}])
    put(table, [{"k": 3, "v": "c"}])
    snapshot = read_snapshot(table.io, table.paths, lost)
    Path(table.paths.manifest(snapshot.delta_manifest_list)).unlink()
    with pytest.raises(FormatError, match="manifest-list"):
        refresh_state(table, state)


def test_a_newest_snapshot_without_its_manifests_is_damage(tmp_path: Path) -> None:
    table = native_table(tmp_path, COLUMNS, keys=["k"], options=ONE_STAYS)
    put(table, [{"k": 1, "v": "a"}])
    for path in Path(table.path, "manifest").glob("manifest-list-*"):
        path.unlink()
    with pytest.raises(FormatError, match="manifest-list"):
        load_state(table)
