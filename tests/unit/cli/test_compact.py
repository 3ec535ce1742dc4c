import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id
from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    columns = [("p", "INT"), ("k", "INT"), ("v", "STRING")]
    options = {"bucket": "1"}
    table = native_table(tmp_path, columns, keys=["p", "k"], partitions=["p"], options=options)
    for n in range(5):
        put(table, [{"p": 0, "k": 1, "v": f"{n}"}, {"p": 1, "k": n, "v": "x"}])
    return tmp_path


def told(capture: Capture, *arguments: Any) -> Any:
    done = run_command(capture, "compact", *arguments, "--json")
    assert done.code == 0, done
    return json.loads(done.out)


def test_a_table_is_compacted_and_its_result_reported(lake: Path, capsys: Capture) -> None:
    found = told(capsys, lake, "db.t")
    assert (found["status"], found["snapshot"], found["table"]) == ("compacted", 6, "db.t")
    rows = {
        (bucket["partition"], bucket["files_before"], bucket["rows_after"])
        for bucket in found["buckets"]
    }
    assert rows == {("p=0", 5, 1), ("p=1", 5, 5)}
    again = told(capsys, lake, "db.t")
    assert (again["status"], again["snapshot"], again["buckets"]) == ("nothing", None, [])


def test_a_dry_run_changes_nothing(lake: Path, capsys: Capture) -> None:
    found = told(capsys, lake, "db.t", "--dry-run")
    assert found["dry_run"] is True
    assert [bucket["reason"] for bucket in found["buckets"]] == ["amplification"] * 2
    done = run_command(capsys, "compact", lake, "db.t", "--dry-run")
    assert "It would be: db.t: 10 files of 2 buckets compacted." in done.out
    from_table = native_table(lake / "other", [("k", "INT")], keys=["k"], options={"bucket": "1"})
    assert latest_snapshot_id(from_table.io, from_table.paths) is None
    assert told(capsys, lake, "db.t")["snapshot"] == 6


def test_partitions_are_chosen_and_full_is_full(lake: Path, capsys: Capture) -> None:
    done = run_command(capsys, "compact", lake, "db.t", "--full", "--partition", "p=1")
    assert done.code == 0
    assert "5 files became 1 by snapshot 6" in done.out
    assert "p=0" not in done.out
    assert told(capsys, lake, "db.t", "--full")["buckets"][0]["partition"] == "p=0"
    assert "nothing to compact" in run_command(capsys, "compact", lake, "db.t", "--full").out


def test_a_partition_that_cannot_be_is_named(lake: Path, capsys: Capture) -> None:
    done = run_command(capsys, "compact", lake, "db.t", "--partition", "x=1")
    assert done.code == 2
    assert "partition columns are p" in done.err
