"""Warehouses, and the texts that name tables."""

from pathlib import Path

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.paimon.library.warehouse import split_path

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.list_(pa.string()))])


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("warehouse/db.table", ("warehouse", "db.table")),
        ("/lake/db.table", ("/lake", "db.table")),
        ("/db.table", ("/", "db.table")),
        ("db.table", (".", "db.table")),
        ("/lake/shop.db/orders", ("/lake", "shop.orders")),
        ("/lake/shop.db/orders.old/", ("/lake", "shop.orders.old")),
        ("/shop.db/orders", ("/", "shop.orders")),
        ("shop.db/orders", (".", "shop.orders")),
        ("s3://bucket/lake/db.table", ("s3://bucket/lake", "db.table")),
        ("s3://bucket/lake/db.db/table", ("s3://bucket/lake", "db.table")),
    ],
)
def test_a_path_shows_warehouse_and_table(path: str, place: tuple[str, str]) -> None:
    assert split_path(path) == place


@pytest.mark.parametrize("path", ["warehouse/orders", "", "a/..", "/lake/"])
def test_a_path_without_a_table_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"WAREHOUSE/DATABASE\.TABLE"):
        split_path(path)


def test_tables_are_made_listed_and_opened(tmp_path: Path) -> None:
    warehouse = paimon.open_warehouse(str(tmp_path))
    table = warehouse.create("db.t", SCHEMA, primary_keys=["id"], options={"bucket": "1"})
    assert (table.name, table.primary_keys, table.partition_keys) == ("db.t", ("id",), ())
    assert table.options["bucket"] == "1"
    assert table.schema.field("id") == pa.field("id", pa.int64(), nullable=False)
    warehouse.create("other.t", SCHEMA)
    assert warehouse.tables() == ["db.t", "other.t"]
    assert warehouse.tables("db") == ["db.t"]
    with pytest.raises(ConfigError, match="exists"):
        warehouse.create("db.t", SCHEMA)
    with pytest.raises(SchemaConflictError):
        warehouse.create("db.u", SCHEMA, primary_keys=["nope"])


def test_a_wrong_name_proposes_the_nearest(tmp_path: Path) -> None:
    paimon.open_warehouse(str(tmp_path)).create("db.orders", SCHEMA)
    with pytest.raises(ConfigError, match="did you mean 'orders'"):
        paimon.open(f"{tmp_path}/db.ordres")
    with pytest.raises(ConfigError, match="is a view"):
        paimon.open(f"{tmp_path}/db.orders$files")


def test_a_table_is_not_created_with_a_misspelt_option(tmp_path: Path) -> None:
    warehouse = paimon.open_warehouse(str(tmp_path))
    options = {"snapshot.num-retaned.max": "3"}
    with pytest.raises(ConfigError, match=r"did you mean 'snapshot\.num-retained\.max'"):
        warehouse.create("db.t", pa.schema([("id", pa.int32())]), options=options)
