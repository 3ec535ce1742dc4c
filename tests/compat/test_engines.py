"""What the README says to engines and packages is said to them, and they show the table's rows."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from tests.compat.engines import flink_sql, paimon_connector, spark_sql
from tests.support.code_blocks import shown
from tests.support.pypaimon import environment

pytestmark = pytest.mark.compat
LAKE = "/data/warehouse"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("status", pa.string()),
        ("amount", pa.float64()),
    ]
)
WANTED = [(n, "open", 8.0 + n) for n in (0, 2, 3, 4, 5, 6, 7, 8)]


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """A warehouse as the README speaks of: ods.orders, several snapshots, a row deleted."""
    folder = tmp_path / "lake"
    table = paimon.open_warehouse(str(folder)).create("ods.orders", SCHEMA, primary_keys=["id"])
    for turn in range(5):
        table.write([{"id": n, "status": "open", "amount": 8.0 + n} for n in range(turn, turn + 5)])
    with table.writer() as writer:
        writer.delete([{"id": 1}])
    return str(folder)


def program(page: str, first: str, lake: str) -> str:
    text = shown(page, first).text
    assert LAKE in text
    return text.replace(LAKE, lake)


def printed(python: str, text: str) -> list[list[object]]:
    done = subprocess.run([python, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows: list[list[object]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def test_spark_sql_of_the_readme_reads_the_table(lake: str) -> None:
    text = program("README.md", "-- spark-sql", lake)
    settings = dict(re.findall(r"--conf (\S+)=(\S+)", text))
    assert len(settings) == 2
    (statement,) = re.findall(r"^([A-Z].*);$", text, re.MULTILINE)
    (rows,) = spark_sql([statement], settings, paimon_connector())
    assert sorted((row["id"], row["status"], row["amount"]) for row in rows) == WANTED


def test_flink_sql_of_the_readme_reads_the_table(lake: str, tmp_path: Path) -> None:
    rows = flink_sql(program("README.md", "SET 'execution.runtime-mode'", lake), tmp_path)
    assert sorted((int(a), b, float(c)) for a, b, c in rows) == WANTED


def test_pypaimon_of_the_readme_reads_the_table(lake: str) -> None:
    lines = program("README.md", "from pypaimon import", lake).strip().split("\n")
    shows = f"import json\nprint(json.dumps([list(r.values()) for r in ({lines[-1]}).to_pylist()]))"
    rows = printed(str(environment("pypaimon")), "\n".join([*lines[:-1], shows]))
    assert sorted(map(tuple, rows)) == WANTED


def test_the_program_of_the_readme_runs_with_pandas_polars_and_duckdb(lake: str) -> None:
    (packages,) = environment("frames").parent.parent.glob("lib/python*/site-packages")
    begin = f"import json, sys\nsys.path.append({str(packages)!r})\n"
    text = program("README.md", "import ingestd.paimon as paimon", lake)
    kept, wrote = text.split("with orders.writer()")
    for name, method in (
        ("frame", "to_pandas()"),
        ("other", "to_polars()"),
        ("duck", 'to_duckdb().filter("id > 1")'),
    ):
        assert f"\norders.{method}" in kept
        kept = kept.replace(f"\norders.{method}", f"\n{name} = orders.{method}")
    ids = "sorted(frame['id']), sorted(other['id']), sorted(r[0] for r in duck.fetchall())"
    after = "sorted(orders.to_arrow(columns=['id'])['id'].to_pylist())"
    text = f"{begin}{kept}ids = [{ids}]\nwith orders.writer(){wrote}ids.append({after})\n"
    found = printed(sys.executable, f"{text}print(json.dumps(ids, default=int))")
    all_of_them = [row[0] for row in WANTED]
    assert found == [all_of_them, all_of_them, all_of_them[1:], all_of_them]
