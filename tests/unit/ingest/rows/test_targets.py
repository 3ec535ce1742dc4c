"""Decoders receive the column types of the tables that source tables are routed to."""

from ingestd.cdc.base import SourceTable
from ingestd.ingest.rows.targets import TargetColumns, Targets
from ingestd.ingest.settings.context import QualifiedSourceTable, RoutingConfig, TableSettings
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from tests.support.ingest_rig import Rig

ORDERS = SourceTable("db", "shop", "orders")


def test_columns_are_those_of_the_target_and_its_key_is_not_null() -> None:
    rig = Rig(routing=RoutingConfig(table_mapping={"orders": "sales"}))
    columns = [("id", DataType("INT")), ("n", DataType("INT", nullable=False))]
    rig.create("lake.sales", new_schema(columns, ("id",), (), {}, 0))
    context = rig.context(
        table_changes={
            "lake.sales": {"source_tables": frozenset({QualifiedSourceTable("s", *ORDERS)})}
        }
    )
    known = TargetColumns(context, Targets(context), "s", "topic")
    assert known[ORDERS] == {"id": DataType("INT").not_null(), "n": DataType("INT")}
    assert known.get(SourceTable("db", "shop", "unknown")) is None
    assert list(known) == [ORDERS]
    assert len(known) == 1


def test_excluded_tables_have_no_columns() -> None:
    rig = Rig(routing=RoutingConfig(excluding_tables="orders"))
    context = rig.context()
    known = TargetColumns(context, Targets(context), "s", "topic")
    assert ORDERS not in known


def test_declared_types_are_those_of_the_target_and_of_all_tables() -> None:
    rig = Rig(
        defaults=TableSettings(column_types={"at": DataType("DATE"), "n": DataType("INT")}),
        settings={"orders": TableSettings(column_types={"n": DataType("BIGINT")})},
    )
    context = rig.context()
    declared = TargetColumns(context, Targets(context), "s", "topic", only_declared=True)
    assert declared[ORDERS] == {"at": DataType("DATE"), "n": DataType("BIGINT")}
    assert declared[SourceTable("db", "shop", "other")]["n"] == DataType("INT")
