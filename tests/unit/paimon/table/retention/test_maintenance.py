import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.time_travel import tag_names
from ingestd.paimon.table.retention.maintenance import MaintenanceResult, run_maintenance
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put

DAY = 86_400_000


def table(**options: str) -> FileStoreTable:
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    columns = [("id", "INT"), ("dt", "STRING")]
    made = native_table(
        "/w", columns, keys=["id", "dt"], partitions=["dt"], options=named, io=MemoryFileIO()
    )
    for number in range(4):
        put(made, [{"id": number, "dt": f"202{number}-01-01"}])
    return made


def test_what_the_options_ask_for_is_done_in_one_go() -> None:
    made = table(
        snapshot__num_retained__min="1",
        changelog__num_retained__min="3",
        tag__automatic_creation="process-time",
        sink__process_time_zone="UTC",
        partition__expiration_time="1000 d",
    )
    create_tag(made, "short", read_snapshot(made.io, made.paths, 2), retained_ms=1, now_ms=NOW_MS)
    done = run_maintenance(made, NOW_MS + DAY)
    assert done.expired_tags == ("short",)
    assert [one.name for one in done.tags.created] == ["2023-11-13"]
    assert len(done.partitions.partitions) == 2
    assert done.partitions.snapshots == (5,)
    # The partitions went just now: readers of snapshot 4 have not had the time to finish.
    assert snapshot_ids(made.io, made.paths) == [4, 5]
    assert done.snapshots.ids == done.snapshots.kept_as_changelogs == (1, 2, 3)
    assert done.changelogs.ids == (1, 2)
    assert tag_names(made.io, made.paths) == ["2023-11-13"]
    assert verify(made) == []


@pytest.mark.parametrize(
    "options",
    [
        {"tag__automatic_creation": "batch"},
        {"tag__automatic_creation": "process-time", "tag__creation_delay": "2 d"},
        {"partition__expiration_time": "1 d", "partition__timestamp_formatter": "HH"},
    ],
)
def test_an_option_that_is_not_supported_is_named_and_keeps_no_snapshot(
    options: dict[str, str],
) -> None:
    made = table(snapshot__num_retained__min="1", **options)
    create_tag(made, "short", read_snapshot(made.io, made.paths, 2), retained_ms=1, now_ms=NOW_MS)
    with pytest.raises((ConfigError, UnsupportedError), match="option '"):
        run_maintenance(made, NOW_MS + DAY)
    assert snapshot_ids(made.io, made.paths) == [4]
    assert tag_names(made.io, made.paths) == []


def test_all_snapshots_and_changes_that_are_due_expire_whatever_the_limit_of_an_expiry() -> None:
    made = table(
        snapshot__num_retained__min="1",
        snapshot__expire__limit="2",
        changelog__num_retained__min="3",
    )
    for number in range(4, 9):
        put(made, [{"id": number, "dt": "x"}])
    done = run_maintenance(made, NOW_MS + DAY)
    assert done.snapshots.ids == done.snapshots.kept_as_changelogs == tuple(range(1, 9))
    assert done.changelogs.ids == tuple(range(1, 7))
    assert len(set(done.snapshots.files)) == len(done.snapshots.files)
    assert snapshot_ids(made.io, made.paths) == [9]
    assert verify(made) == []


def test_a_table_that_asks_for_nothing_is_left_alone() -> None:
    made = table()
    done = run_maintenance(made, NOW_MS)
    assert (done.tags, done.expired_tags, done.partitions) == (
        MaintenanceResult().tags,
        (),
        MaintenanceResult().partitions,
    )
    assert done.snapshots.ids == done.changelogs.ids == ()
    assert snapshot_ids(made.io, made.paths) == [1, 2, 3, 4]
