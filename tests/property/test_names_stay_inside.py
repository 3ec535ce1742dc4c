"""Whatever names and values messages bring, every file is below the table that it belongs to."""

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ingestd.paimon as paimon
from ingestd.errors import ConfigError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("part", pa.string())])
PARTS = st.lists(
    st.sampled_from(["..", ".", "/", "\\", "a", "%2e%2e", "\0", "\n", "~", ":", "file:", "é", " "]),
    max_size=6,
).map("".join)


def below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@settings(max_examples=25)
@given(database=PARTS, table=PARTS, value=PARTS)
@example(database="db", table="..", value="x")
@example(database="db", table="../../outside", value="x")
@example(database="../outside", table="t", value="x")
@example(database="db", table="/etc/outside", value="x")
@example(database="db", table="t", value="../../../outside")
@example(database="db", table="t", value="/etc/outside")
def test_names_and_partition_values_lead_nowhere_else(
    database: str, table: str, value: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        warehouse = paimon.open_warehouse(str(root / "w" / "lake"))
        try:
            made = warehouse.create(
                f"{database}.{table}", SCHEMA, partition_keys=["part"], options={"bucket": "-1"}
            )
        except ConfigError:
            assert below(root) == set()
            return
        made.write([{"id": 1, "part": value}])
        home = Path(made.files.path).resolve()
        assert home.parent.parent == root / "w" / "lake"
        assert {path for path in below(root) if home not in path.parents} == set()
        assert made.to_arrow().to_pylist() == [{"id": 1, "part": value}]
