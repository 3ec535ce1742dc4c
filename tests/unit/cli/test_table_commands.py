import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import run_command
from tests.support.native_tables import native_table, open_native, put
from tests.support.stored_rows import stored_rows

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    columns = [("id", "INT"), ("dt", "STRING")]
    table = native_table(tmp_path, columns, keys=["id", "dt"], partitions=["dt"])
    put(table, [{"id": n, "dt": "ab"[n % 2]} for n in range(6)])
    return tmp_path


def shown(capsys: Capture, *arguments: object) -> Any:
    done = run_command(capsys, *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def left(warehouse: Path) -> set[str]:
    return {row["dt"] for row in stored_rows(open_native(warehouse))}


def test_a_dry_run_shows_what_would_go_and_takes_nothing(warehouse: Path, capsys: Capture) -> None:
    for command in (
        ["truncate", warehouse, "db.t"],
        ["drop-partition", warehouse, "db.t", "--partition", "dt=a"],
    ):
        found = shown(capsys, *command, "--dry-run")
        assert (found["dry_run"], found["snapshot"]) == (True, None)
        assert {partition["partition"]: partition["rows"] for partition in found["partitions"]}[
            "dt=a"
        ] == 3
    assert left(warehouse) == {"a", "b"}
    assert "Nothing is done" in run_command(capsys, *command, "--dry-run").out


def test_a_dropped_partition_is_gone(warehouse: Path, capsys: Capture) -> None:
    found = shown(capsys, "drop-partition", warehouse, "db.t", "--partition", "dt=a", "--yes")
    assert (found["snapshot"], len(found["partitions"])) == (2, 1)
    assert left(warehouse) == {"b"}


def test_truncating_takes_the_named_partition_or_all(warehouse: Path, capsys: Capture) -> None:
    done = run_command(capsys, "truncate", warehouse, "db.t", "--partition", "dt=b", "--yes")
    assert "1 file with 3 stored rows taken out by snapshot 2" in done.out
    assert left(warehouse) == {"a"}
    assert run_command(capsys, "truncate", warehouse, "db.t", "--yes").code == 0
    assert left(warehouse) == set()


def test_a_partition_that_cannot_be_is_a_mistake_of_usage(warehouse: Path, capsys: Capture) -> None:
    done = run_command(capsys, "drop-partition", warehouse, "db.t", "--partition", "day=a")
    assert done.code == 2
    assert "partition columns are dt" in done.err


def test_statistics_are_printed_and_kept(warehouse: Path, capsys: Capture) -> None:
    found = shown(capsys, "analyze", warehouse, "db.t")
    assert (found["mergedRecordCount"], found["snapshot"]) == (6, 2)
    assert found["colStats"]["id"]["max"] == "5"
    done = run_command(capsys, "read", warehouse, "db.t$statistics")
    assert json.loads(json.loads(done.out)["colstat"]) == found["colStats"]
    assert "distinctCount" in run_command(capsys, "analyze", warehouse, "db.t").out
    assert shown(capsys, "analyze", warehouse, "db.t", "--no-columns")["colStats"] == {}
    assert list(shown(capsys, "analyze", warehouse, "db.t", "--columns", "dt")["colStats"]) == [
        "dt"
    ]
