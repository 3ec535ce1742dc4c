"""The demonstration is what a newcomer sees first, so it has to work."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.cli import demo
from ingestd.cli.demo import Timings
from tests.support.command_line import run_command
from tests.support.daemon import ingestd
from tests.support.readme import block, shape

pytestmark = pytest.mark.integration


@pytest.fixture
def scratch() -> Iterator[Path]:
    """An empty temporary folder, with a path that is short enough for Unix sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_the_demo_ends_with_tables_that_hold_what_the_workload_ends_in(
    tmp_path: Path,
    scratch: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.io.tmpdir={scratch}")
    done = ingestd("demo", "--folder", tmp_path / "demo", "--events", 2000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    lines = (tmp_path / "demo" / "ingestd.log").read_text().splitlines()
    picked_up = "Picked up JAVA_TOOL_OPTIONS"  # by this test alone
    assert [line for line in lines if line[:1] != "{" and picked_up not in line] == []
    assert [line for line in lines if '"level":"WARNING"' in line] == []
    assert list(scratch.iterdir()) == []
    assert "Every row is as expected from the workload." in done.stdout
    assert "coupon" in done.stdout
    # What the README shows, with other numbers.
    shown = [shape(line) for line in block("Quick start", "text").splitlines() if line]
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert [one.pattern for one in shown if not any(map(one.fullmatch, printed))] == []
    read = run_command(capsys, "read", tmp_path / "demo" / "warehouse", "shop.orders")
    assert read.code == 0, read.err
    assert read.out.count("\n") > 100
    # The same for programs, of the same tables.
    monkeypatch.setattr(demo, "prepared", lambda folder: folder)
    monkeypatch.setattr(demo, "worked", lambda *_: Timings(records=2100, ingested_seconds=1.5))
    words = ("demo", "--folder", tmp_path / "demo", "--events", 2000, "--json")
    told = run_command(capsys, *words)
    document = json.loads(told.out)
    assert (told.code, document["right"], document["records"]) == (0, True, 2100), told.err
    assert document["tables"].keys() == {"shop.customers", "shop.orders"}
    assert min(table["snapshots"] for table in document["tables"].values()) > 0
    assert (
        run_command(
            capsys, "truncate", tmp_path / "demo" / "warehouse", "shop.orders", "--yes"
        ).code
        == 0
    )
    wrong = run_command(capsys, *words)
    assert (wrong.code, json.loads(wrong.out)["right"]) == (1, False)
