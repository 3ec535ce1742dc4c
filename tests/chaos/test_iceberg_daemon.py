"""The daemon writes Iceberg metadata while it is killed, and on a disk without room for it."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ingestd.crash_points import VARIABLE
from ingestd.dev.broker import DevBroker
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.iceberg.iceberg_sync import repair_iceberg
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id
from tests.chaos.test_crash_daemon import await_death
from tests.support.change_events import event, key
from tests.support.daemon import catch_up, run_daemon
from tests.support.kafka_broker import fresh_topic, produce
from tests.support.pipelines import pipeline
from tests.support.pypaimon import PyIceberg

pytestmark = [
    pytest.mark.integration,
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]

PIECE = 50
EVERY = ("publish.prepared:8", "publish.linked:8", "publish.prepared:9", "publish.linked:9")
"""Before and after two publications in a row; those of snapshots and documents alternate."""
STEPS = EVERY if "INGESTD_LONG" in os.environ else EVERY[:1]
"""In short before metadata is published; test_iceberg_sync_killed has each write."""


def configured(folder: Path, broker: DevBroker, topic: str) -> dict[str, Any]:
    storage = {"bucket": "-1", "metadata.iceberg.storage": "hadoop-catalog"}
    orders = {"primary-keys": "none", "options": storage}
    return pipeline(folder, broker.bootstrap, topic, tables={"orders": orders}, batch_rows=PIECE)


def orders(folder: Path, config: Mapping[str, Any]) -> FileStoreTable:
    warehouse = config["warehouse"]
    catalog = load_catalog("filesystem", warehouse["path"])
    return catalog.get_table(Identifier(warehouse["database"], "orders"))


def metadata_of(table: FileStoreTable) -> Path:
    path = Path(table.path)
    return path.parents[1] / "iceberg" / path.parent.stem / path.name


def newest_whole(table: FileStoreTable) -> int:
    """The snapshot that the metadata shows, all of whose files are there; 0 without metadata."""
    store = MetadataStore(table.io, f"{metadata_of(table)}/metadata")
    version = store.newest_version()
    if version is None:
        return 0
    for snapshot in store.read(version)["snapshots"]:
        for manifest in store.read_list(snapshot["manifest-list"]):
            for entry in store.read_manifest(manifest):
                assert not entry.is_live or table.io.exists(str(entry.data_file["file_path"]))
    return version


def test_a_daemon_that_is_killed_leaves_whole_metadata_and_the_next_run_catches_up(
    tmp_path: Path, broker: DevBroker, pyiceberg: PyIceberg
) -> None:
    topic = fresh_topic(broker)
    config = configured(tmp_path, broker, topic)
    ids, behind = iter(range(10_000)), set[int]()

    def more() -> None:
        rows = [next(ids) for _ in range(8 * PIECE)]
        produce(broker, topic, [(key(id=n), event("c", {"id": n})) for n in rows])

    for step in STEPS:
        more()
        mark = tmp_path / f"killed-{step}"
        with run_daemon(config, tmp_path, environment={VARIABLE: f"{step}:{mark}"}) as daemon:
            await_death(daemon, mark)
        table = orders(tmp_path, config)
        newest = latest_snapshot_id(table.io, table.paths)
        assert newest is not None
        behind.add(newest - newest_whole(table))
    assert behind <= {0, 1, 2}
    assert behind - {0}, "each kill came after the metadata"
    before = newest_whole(table)
    result = repair_iceberg(table)
    assert (result.before, result.restarted) == (before, False)
    assert newest_whole(table) == latest_snapshot_id(table.io, table.paths)
    more()
    catch_up(config, tmp_path)
    assert newest_whole(table) == latest_snapshot_id(table.io, table.paths)
    rows = pyiceberg.read_folder(metadata_of(table))
    assert sorted(rows["id"].to_pylist()) == list(range(next(ids)))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 KiB where the metadata of Iceberg is stored."""
    folder = tmp_path / "warehouse" / "iceberg"
    folder.mkdir(parents=True)
    if not resized(folder, "size=16k"):
        pytest.skip("mounting is not allowed here; test_iceberg_sync has the same without a disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], capture_output=True, check=False)


def resized(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_disk_without_room_for_metadata_stops_no_commit_and_is_caught_up(
    small_disk: Path, tmp_path: Path, broker: DevBroker, pyiceberg: PyIceberg
) -> None:
    topic = fresh_topic(broker)
    config = configured(tmp_path, broker, topic)
    count = 12 * PIECE
    produce(broker, topic, [(key(id=n), event("c", {"id": n})) for n in range(count)])
    daemon = catch_up(config, tmp_path)
    assert "iceberg_metadata_failed" in daemon.log.read_text()
    assert "No space left" in daemon.log.read_text()
    table = orders(tmp_path, config)
    newest = latest_snapshot_id(table.io, table.paths)
    assert newest is not None
    assert newest >= 12
    assert newest_whole(table) < newest
    assert resized(small_disk, "remount,size=16m")
    repair_iceberg(table)
    assert newest_whole(table) == newest
    rows = pyiceberg.read_folder(metadata_of(table))
    assert sorted(rows["id"].to_pylist()) == list(range(count))
