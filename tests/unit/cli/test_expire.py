import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.retention.tags import create_tag
from tests.support.command_line import run_command
from tests.support.native_tables import NOW_MS, alter, native_table, open_native, put

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    columns = [("id", "INT"), ("dt", "STRING")]
    table = native_table(tmp_path, columns, keys=["id", "dt"], partitions=["dt"])
    for number in range(12):
        put(table, [{"id": number, "dt": f"20{number:02}-01-01"}])
    return tmp_path


def shown(capsys: Capture, what: str, warehouse: Path, *arguments: object) -> Any:
    done = run_command(capsys, "expire", what, warehouse, "db.t", *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def snapshots(warehouse: Path) -> list[int]:
    table = open_native(warehouse)
    return snapshot_ids(table.io, table.paths)


def test_snapshots_expire_by_the_options_of_the_table(warehouse: Path, capsys: Capture) -> None:
    planned = shown(capsys, "snapshots", warehouse, "--dry-run")
    assert (planned["snapshots"], planned["first_kept"], planned["dry_run"]) == ([1, 2], 3, True)
    assert len(snapshots(warehouse)) == 12
    done = shown(capsys, "snapshots", warehouse)
    assert done == {**planned, "dry_run": False}
    assert snapshots(warehouse) == list(range(3, 13))


def test_what_is_given_holds_instead(warehouse: Path, capsys: Capture) -> None:
    assert shown(capsys, "snapshots", warehouse, "--time-retained", "9999 d")["snapshots"] == []
    limited = shown(capsys, "snapshots", warehouse, "--retain-min", "1", "--limit", "2")
    assert limited["snapshots"] == [1, 2]
    shown(capsys, "snapshots", warehouse, "--retain-max", "3", "--time-retained", "9999 d")
    assert snapshots(warehouse) == [10, 11, 12]
    text = run_command(capsys, "expire", "snapshots", warehouse, "db.t", "--retain-max", "1").out
    assert "db.t: 2 snapshots expired (10 to 11)" in text
    bad = run_command(
        capsys, "expire", "snapshots", warehouse, "db.t", "--retain-max", "1", "--retain-min", "2"
    )
    assert bad.code == 2


def test_changelogs_expire_after_their_snapshots(warehouse: Path, capsys: Capture) -> None:
    alter(open_native(warehouse), SetOption("changelog.num-retained.min", "11"))
    assert shown(capsys, "snapshots", warehouse)["kept_as_changelogs"] == [1, 2]
    assert shown(capsys, "changelogs", warehouse, "--dry-run")["changelogs"] == [1]
    assert shown(capsys, "changelogs", warehouse)["changelogs"] == [1]
    assert shown(capsys, "changelogs", warehouse)["changelogs"] == []


def test_partitions_expire_by_their_time(warehouse: Path, capsys: Capture) -> None:
    assert shown(capsys, "partitions", warehouse)["partitions"] == []
    none = run_command(capsys, "expire", "partitions", warehouse, "db.t").out
    assert "0 partitions expired: the table has no option 'partition.expiration-time'" in none
    given = ("--expiration-time", "1 d")
    assert len(shown(capsys, "partitions", warehouse, *given, "--dry-run")["partitions"]) == 12
    assert shown(capsys, "partitions", warehouse, *given)["snapshots"] == [13]
    assert shown(capsys, "partitions", warehouse, *given)["partitions"] == []


def test_tags_expire_by_their_time(warehouse: Path, capsys: Capture) -> None:
    table = open_native(warehouse)
    one = read_snapshot(table.io, table.paths, 1)
    create_tag(table, "short", one, retained_ms=1, now_ms=NOW_MS)
    create_tag(table, "long", one, now_ms=NOW_MS)
    assert shown(capsys, "tags", warehouse, "--dry-run")["tags"] == ["short"]
    assert shown(capsys, "tags", warehouse)["tags"] == ["short"]
    assert shown(capsys, "tags", warehouse)["tags"] == []
