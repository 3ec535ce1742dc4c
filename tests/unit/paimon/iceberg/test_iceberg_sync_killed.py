"""A process may be killed at any write of Iceberg metadata."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from ingestd.paimon.iceberg.iceberg_sync import repair_iceberg, sync_iceberg
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.iceberg.orphan_metadata import iceberg_orphans
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.orphans import Orphans, remove_orphans
from tests.support.native_tables import NOW_MS, native_table, open_native, put
from tests.unit.paimon.iceberg import killed_syncs

OPTIONS = {
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.compaction.min.file-num": "2",
    "metadata.iceberg.compaction.max.file-num": "2",
    "snapshot.num-retained.min": "2",
    "snapshot.num-retained.max": "2",
    "bucket": "-1",
}


def write(table: FileStoreTable, *ids: int) -> None:
    put(table, [{"id": number, "dt": "ab"[number % 2]} for number in ids])


def newest(table: FileStoreTable) -> tuple[int, int]:
    """The newest snapshot and its rows; every manifest and data file of every snapshot is there."""
    store = MetadataStore(table.io, f"{table.path}/metadata")
    version, rows = store.newest_version(), 0
    assert version is not None
    for snapshot in store.read(version)["snapshots"]:
        live = [
            entry.data_file
            for manifest in store.read_list(snapshot["manifest-list"])
            for entry in store.read_manifest(manifest)
            if entry.is_live
        ]
        rows = sum(file["record_count"] for file in live)
    return version, rows


@pytest.mark.parametrize("begins", [False, True], ids=["adds", "begins again"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_any_write_leaves_whole_metadata_that_the_next_commit_continues(
    when: str, begins: bool, tmp_path: Path
) -> None:
    table = native_table(
        tmp_path / "w", [("id", "INT"), ("dt", "STRING")], partitions=["dt"], options=OPTIONS
    )
    for number in (1, 2, 3):
        write(table, number)
        sync_iceberg(table)
    if begins:
        for number in range(4, 15):
            write(table, number)
    else:
        truncate_table(table, now_ms=NOW_MS)
        write(table, 5, 6)
    command = [sys.executable, "-m", killed_syncs.__name__, tmp_path / "w", tmp_path / "c", when]
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *killed, complete = sorted((tmp_path / "c").iterdir())
    assert len(killed) > 5
    states = [(3, 3), (14, 14)] if begins else [(3, 3), (4, 0), (5, 2)]
    assert newest(open_native(complete)) == states[-1]
    seen = set()
    leftovers = 0
    for number, folder in enumerate(killed):
        copy = open_native(folder)
        seen.add(newest(copy))
        if number % 2:
            write(copy, 100)
            sync_iceberg(copy)
            assert newest(copy) == (states[-1][0] + 1, states[-1][1] + 1)
        else:
            repair_iceberg(copy)
            assert newest(copy) == states[-1]
        now, day = int(time.time() * 1000), 86_400_000
        later = now + day
        assert not iceberg_orphans(copy, now - day), "young files may be in use"
        orphans = iceberg_orphans(copy, later)
        leftovers += len(orphans)
        before = newest(copy)
        remove_orphans(copy, Orphans(orphans, ()))
        assert newest(copy) == before
        assert not repair_iceberg(copy).restarted
    assert seen <= set(states)
    assert len(seen) > 1
    assert leftovers
