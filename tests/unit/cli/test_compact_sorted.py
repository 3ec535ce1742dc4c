import json
from pathlib import Path

import pytest

from ingestd.paimon.table.read.table_read import read_table
from tests.support.command_line import Done, run_command
from tests.support.native_tables import native_table, open_native, put

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    table = native_table(tmp_path, [("p", "INT"), ("k", "INT")], partitions=["p"])
    for turn in range(2):
        put(table, [{"p": n % 2, "k": (7 * n + turn) % 10} for n in range(10)])
    return tmp_path


def compact(capsys: Capture, lake: Path, *more: object) -> Done:
    return run_command(capsys, "compact", lake, "db.t", *more)


def test_files_become_sorted_ones(lake: Path, capsys: Capture) -> None:
    done = compact(capsys, lake, "--order-by", "k", "--json")
    told = json.loads(done.out)
    assert (done.code, told["order_by"], told["order_strategy"]) == (0, ["k"], "order")
    rows = [
        (row["partition"], row["files_before"], row["files_after"], row["snapshot"])
        for row in told["partitions"]
    ]
    assert rows == [("p=0", 2, 1, 3), ("p=1", 2, 1, 4)]
    found = read_table(open_native(lake)).to_pylist()
    keys = [row["k"] for row in found if row["p"] == 0]
    assert keys == sorted(keys)


def test_a_dry_run_changes_nothing(lake: Path, capsys: Capture) -> None:
    asked = ("--order-by", "k, p", "--order-strategy", "zorder", "--partition", "p=1", "--dry-run")
    done = compact(capsys, lake, *asked)
    assert "It would be: db.t: 2 files of 1 partition sorted by k, p (zorder)." in done.out
    assert json.loads(compact(capsys, lake, "--order-by", "k", "--json").out)["partitions"][0][
        "snapshot"
    ] == 3  # fmt: skip


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--order-strategy", "zorder"], "--order-by"),
        (["--order-by", "k", "--full"], "leave --full out"),
        (["--order-by", "k", "--order-strategy", "hilbert"], "'hilbert' is not supported"),
        (["--order-by", "x"], "has no column x"),
        (["--order-by", " , "], "name the columns"),
    ],
)
def test_what_does_not_fit_is_refused(
    options: list[str], problem: str, lake: Path, capsys: Capture
) -> None:
    done = compact(capsys, lake, *options)
    assert done.code != 0
    assert problem in done.err


def test_an_empty_table_has_nothing_to_sort(tmp_path: Path, capsys: Capture) -> None:
    native_table(tmp_path, [("k", "INT")])
    assert "there are no files to sort" in compact(capsys, tmp_path, "--order-by", "k").out
