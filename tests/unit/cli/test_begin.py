"""`ingestd begin` names what it cannot do before it takes the lead from a running daemon."""

from pathlib import Path

import pytest

from ingestd.ingest.tables.pipeline_warehouse import pipeline_folder
from tests.support.command_line import run_command

CONFIG = """
pipeline: {{name: shop}}
warehouse: {{path: {warehouse}, database: ods}}
sources: {{shop: {{kafka: {{bootstrap.servers: 'localhost:1'}}, topics: [t], format: json}}}}
"""


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("ods.orders", "table ods.orders does not exist"),
        ("other.orders", "pipeline shop writes only tables of database ods (warehouse.database)"),
        ("orders", "orders"),
    ],
)
def test_a_table_that_the_pipeline_cannot_write_leaves_the_daemon_alone(
    table: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "ingestd.yaml"
    config.write_text(CONFIG.format(warehouse=tmp_path / "lake"))
    done = run_command(capsys, "begin", "-c", config, table, "--at", "origin", "--yes")
    assert done.code == 2
    assert problem in " ".join(done.err.split())
    assert not Path(pipeline_folder(str(tmp_path / "lake"), "shop")).exists()
