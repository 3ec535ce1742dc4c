"""The demonstration is what a newcomer sees first, so it has to work."""

from pathlib import Path

import pytest

from tests.support.daemon import ingestd
from tests.support.readme import block, shape

pytestmark = pytest.mark.integration


def test_the_demo_ends_with_tables_that_hold_what_the_workload_ends_in(tmp_path: Path) -> None:
    done = ingestd("demo", "--folder", tmp_path / "demo", "--events", 2000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every row is what the workload ends in." in done.stdout
    assert "coupon" in done.stdout
    # What the README shows, with other numbers.
    shown = [shape(line) for line in block("Two commands", "text").splitlines() if line]
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert [one.pattern for one in shown if not any(map(one.fullmatch, printed))] == []
    read = ingestd("read", tmp_path / "demo" / "warehouse", "shop.orders")
    assert read.returncode == 0, read.stderr
    assert read.stdout.count("\n") > 100
