"""The library with the oldest pandas, Polars and DuckDB that its extras allow."""

import os
import re
import subprocess
import tomllib

import pytest

from tests.support.code_blocks import ROOT
from tests.support.pypaimon import HERE, environment

PROGRAM = """
import datetime, decimal, sys, tempfile
import pyarrow as pa
import ingestd.paimon as paimon

fields = {"id": pa.int64(), "text": pa.string(), "price": pa.decimal128(12, 2),
    "at": pa.timestamp("us"), "zoned": pa.timestamp("us", "UTC"), "day": pa.date32(),
    "time": pa.time32("ms"), "flag": pa.bool_(), "small": pa.int8(), "real": pa.float64(),
    "blob": pa.binary(), "list": pa.list_(pa.int32()), "row": pa.struct({"x": pa.int32()})}
at = datetime.datetime(2024, 2, 29, 1, 2, 3, 456)
row = {"text": "a", "price": decimal.Decimal("1.50"), "at": at,
    "zoned": at.replace(tzinfo=datetime.timezone.utc), "day": at.date(),
    "time": datetime.time(1, 2), "flag": True, "small": -3, "real": 1.5, "blob": bytes([0, 255]),
    "list": [1, 2], "row": {"x": 1}}
lake = tempfile.mkdtemp()
schema = pa.schema(fields)
rows = [{"id": 1, **row}, {"id": 2, **row, "text": None}]
table, copy, empty = (paimon.create(f"{lake}/db.{name}", schema, primary_keys=["id"])
    for name in "abc")
table.write(rows)
"""
EXTRAS = {
    "pandas": """
import pandas as package
copy.write(table.to_pandas())
assert empty.to_pandas().shape == (0, len(fields))
assert list(table.scan(where="id > 1").to_pandas()["text"]) == [None]
""",
    "polars": """
import polars as package
copy.write(table.to_polars())
assert empty.to_polars().shape == (0, len(fields))
assert list(table.scan(where="id > 1").to_polars()["text"]) == [None]
""",
    "duckdb": """
import duckdb as package
copy.write(table.to_duckdb().arrow())
assert empty.to_duckdb().fetchall() == []
connection = package.connect()
(found,) = table.scan(where="id > 1").to_duckdb(connection).fetchall()
assert found[1] is None and found[4] == row["zoned"]
""",
}
END = """
assert sorted(copy.to_arrow().to_pylist(), key=lambda row: row["id"]) == rows
print(package.__version__, "pytz" in sys.modules)
"""


@pytest.mark.parametrize("extra", EXTRAS)
def test_rows_of_all_types_go_there_and_back_with_the_oldest_version(extra: str) -> None:
    project = tomllib.loads((ROOT / "paimon" / "pyproject.toml").read_text())["project"]
    first, *others = project["optional-dependencies"][extra]
    bounds = re.match(rf"{extra}>=([\d.]+),<", first)
    assert bounds is not None
    assert re.search(rf"^{extra}=={re.escape(bounds[1])}(\.0)* ", lock(), re.MULTILINE)
    outside = {**os.environ, "PYTHONPATH": str(ROOT / "paimon")}
    command = [str(environment("frames_lowest")), "-c", PROGRAM + EXTRAS[extra] + END]
    done = subprocess.run(command, capture_output=True, text=True, env=outside, check=False)
    assert done.returncode == 0, done.stderr
    version, needed_pytz = done.stdout.split()
    assert version.startswith(bounds[1])
    if extra == "duckdb":
        assert (needed_pytz == "True") == any(one.startswith("pytz") for one in others)


def lock() -> str:
    return (HERE / "frames_lowest.lock").read_text()
