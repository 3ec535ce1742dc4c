"""The views of a table's own rows, `ro` and `binlog`, beside what Java shows of them."""

from pathlib import Path

import pytest

from tests.support.command_line import run_command
from tests.support.java_fixtures import JavaFixture, unpack
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

VIEWED = (
    "pk_fixed_levels", "changelog_full_compaction", "dv_pk", "append_compacted", "first_row",
    "evolution_pk_parquet", "partial_update",
)  # fmt: skip


@pytest.fixture(params=VIEWED)
def fixture(request: pytest.FixtureRequest, tmp_path: Path) -> JavaFixture:
    return unpack(request.param, tmp_path)


@pytest.mark.parametrize("view", ["ro", "binlog"])
def test_views_are_those_of_java(
    fixture: JavaFixture, view: str, oracle: Oracle, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run_command(capsys, "read", fixture.warehouse, f"db.t${view}")
    assert done.code == 0, done.err
    wanted = oracle.read_lines(fixture.warehouse, "db", f"t${view}")
    assert sorted(done.out.splitlines()) == sorted(wanted)
