"""A newcomer copies what the README says of reading and of programs, and it works."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from ingestd.paimon.library import scan
from tests.support.command_line import run_command
from tests.support.readme import block, commands, shape

Capture = pytest.CaptureFixture[str]
LAKE = "/data/warehouse"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("status", pa.string()),
        ("amount", pa.float64()),
    ]
)
SHOWN = {
    "tables": "ods.orders",
    "read": "open",
    "get": "open",
    "snapshots": "APPEND",
    "schema": "status",
    "files": "data-",
    "expire": "snapshots expired",
    "verify": "the table is sound",
}
"""What the answer of a command is known by."""


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """A warehouse as the README speaks of: ods.orders with five snapshots."""
    warehouse = paimon.open_warehouse(str(tmp_path))
    table = warehouse.create("ods.orders", SCHEMA, primary_keys=["id"])
    for turn in range(5):
        table.write([{"id": n, "status": "open", "amount": 8.0 + n} for n in range(turn, turn + 5)])
    return str(tmp_path)


@pytest.mark.parametrize("words", commands("Reading tables"), ids=" ".join)
def test_every_command_of_the_readme_reads_the_table(
    words: list[str], lake: str, capsys: Capture
) -> None:
    assert LAKE in words
    done = run_command(capsys, *[lake if word == LAKE else word for word in words])
    assert done.code == 0, done.err
    shown = "file_path" if "ods.orders$files" in words else SHOWN[words[0]]
    assert shown in done.out


def test_the_program_of_the_readme_runs(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for the packages that need not be installed; the real ones are in compat."""

    class Relation:
        def filter(self, condition: str) -> None:
            assert condition == "id > 1"

    names = []

    def given(name: str) -> object:
        names.append(name)
        return SimpleNamespace(from_arrow=lambda rows: Relation())

    monkeypatch.setattr(scan, "import_module", given)
    program = block("Reading tables", "python").replace(LAKE, lake)
    lines = [line for line in program.splitlines() if "to_pandas" not in line]
    space: dict[str, paimon.Table] = {}
    exec("\n".join(lines), space)
    assert names == ["polars", "duckdb"]
    ids = space["orders"].to_arrow(columns=["id"]).column("id").to_pylist()
    assert sorted(ids) == [0, 2, 3, 4, 5, 6, 7, 8]


def test_a_shape_has_any_numbers_and_any_folder_and_nothing_else() -> None:
    found = shape("21,378 records in 10.9 s: read DEMO/warehouse")
    assert found.fullmatch("5 records in 1.25 s: read /tmp/x/demo/warehouse")
    assert not found.fullmatch("no records in 1.25 s: read /tmp/x/demo/warehouse")
