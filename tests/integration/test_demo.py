"""The demonstration is what a newcomer sees first, so it has to work."""

import json
from pathlib import Path

import pytest

from ingestd.cli import demo
from ingestd.cli.demo import Timings
from tests.support.command_line import run_command
from tests.support.daemon import ingestd
from tests.support.readme import block, shape

pytestmark = pytest.mark.integration


def test_the_demo_ends_with_tables_that_hold_what_the_workload_ends_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ingestd("demo", "--folder", tmp_path / "demo", "--events", 2000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every row is as expected from the workload." in done.stdout
    assert "coupon" in done.stdout
    # What the README shows, with other numbers.
    shown = [shape(line) for line in block("Quick start", "text").splitlines() if line]
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert [one.pattern for one in shown if not any(map(one.fullmatch, printed))] == []
    read = ingestd("read", tmp_path / "demo" / "warehouse", "shop.orders")
    assert read.returncode == 0, read.stderr
    assert read.stdout.count("\n") > 100
    # The same for programs, of the same tables.
    monkeypatch.setattr(demo, "prepared", lambda folder: folder)
    monkeypatch.setattr(demo, "worked", lambda *_: Timings(records=2100, ingested_seconds=1.5))
    words = ("demo", "--folder", tmp_path / "demo", "--events", 2000, "--json")
    told = run_command(capsys, *words)
    document = json.loads(told.out)
    assert (told.code, document["right"], document["records"]) == (0, True, 2100), told.err
    assert document["tables"].keys() == {"shop.customers", "shop.orders"}
    assert min(one["snapshots"] for one in document["tables"].values()) > 0
    assert (
        run_command(
            capsys, "truncate", tmp_path / "demo" / "warehouse", "shop.orders", "--yes"
        ).code
        == 0
    )
    wrong = run_command(capsys, *words)
    assert (wrong.code, json.loads(wrong.out)["right"]) == (1, False)
