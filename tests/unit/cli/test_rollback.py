import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.ingest.tables.log_positions import Position, TopicName
from ingestd.ingest.tables.progress import (
    PipelineProgress,
    TableProgress,
    encode_pipeline,
    encode_properties,
)
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.command_line import run_command
from tests.support.native_tables import NOW_MS, native_table, open_native, put

Capture = pytest.CaptureFixture[str]
HOUR = 3_600_000


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Snapshot 1 by someone, then 2 to 4 of a pipeline, an hour apart."""
    table = native_table(tmp_path, [("id", "INT")], keys=["id"])
    put(table, [{"id": 1}])
    for number in range(1, 4):
        shared = PipelineProgress(
            end={"x": {0: Position(number * 10, 0)}}, topics={"x": TopicName("orders", "mysql")}
        )
        properties = encode_properties("shop", TableProgress(shared), encode_pipeline(shared))
        record = ManifestCommittable(number, (), properties=properties)
        time = NOW_MS + number * HOUR
        commit(table, "shop", record, state=load_state(table), now_ms=time, allow_empty=True)
    create_tag(table, "a", read_snapshot(table.io, table.paths, 2), now_ms=NOW_MS)
    return tmp_path


def shown(capsys: Capture, warehouse: Path, *arguments: object) -> Any:
    done = run_command(capsys, "rollback", warehouse, "db.t", *arguments, "--yes", "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def snapshots(warehouse: Path) -> list[int]:
    table = open_native(warehouse)
    return snapshot_ids(table.io, table.paths)


def test_table_and_offsets_go_back_together(warehouse: Path, capsys: Capture) -> None:
    planned = shown(capsys, warehouse, "--snapshot", 3, "--dry-run")
    assert planned["deleted_snapshots"] == [4]
    assert snapshots(warehouse) == [1, 2, 3, 4]
    done = shown(capsys, warehouse, "--snapshot", 3)
    assert done["offsets"] == [
        {"pipeline": "shop", "topic": "orders", "partition": 0, "next_offset": 20}
    ]
    assert snapshots(warehouse) == [1, 2, 3]


def test_tags_and_times_name_a_snapshot_too(warehouse: Path, capsys: Capture) -> None:
    assert shown(capsys, warehouse, "--as-of", "2023-11-15T00:30:00Z")["snapshot"] == 3
    done = run_command(capsys, "rollback", warehouse, "db.t", "--tag", "a", "--yes")
    assert "back at snapshot 2, without 1 snapshot" in done.out
    assert "orders" in done.out
    assert snapshots(warehouse) == [1, 2]


def test_offsets_are_not_forgotten_by_mistake(warehouse: Path, capsys: Capture) -> None:
    assert shown(capsys, warehouse, "--snapshot", 1, "--dry-run")["forgets_record"] is True
    done = run_command(capsys, "rollback", warehouse, "db.t", "--snapshot", 1)
    assert done.code == 2
    assert "--force" in done.err
    assert snapshots(warehouse) == [1, 2, 3, 4]
    assert shown(capsys, warehouse, "--snapshot", 1, "--force", "--delete-tags")[
        "deleted_tags"
    ] == ["a"]
    assert snapshots(warehouse) == [1]


def test_one_target_has_to_be_named(warehouse: Path, capsys: Capture) -> None:
    for given in ([], ["--snapshot", 1, "--tag", "a"]):
        done = run_command(capsys, "rollback", warehouse, "db.t", *given)
        assert done.code == 2
        assert "specify the target" in done.err
    assert run_command(capsys, "rollback", warehouse, "db.t", "--snapshot", 9).code == 2


def test_the_rows_of_a_later_tag_are_kept_as_the_refusal_says(
    warehouse: Path, capsys: Capture
) -> None:
    back = ["rollback", warehouse, "db.t", "--snapshot", 1, "--force", "--yes"]
    refused = run_command(capsys, *back)
    assert refused.code == 2
    assert "add --delete-tags, if need be after `ingestd branch create WAREHOUSE" in refused.err
    branch = ["branch", "create", warehouse, "db.t", "kept", "--tag", "a"]
    assert run_command(capsys, *branch).code == 0
    assert run_command(capsys, *back, "--delete-tags").code == 0
    rows = run_command(capsys, "read", warehouse, "db.t$branch_kept")
    assert json.loads(rows.out) == {"id": 1}
