"""Settings of a table complete themselves with those of all tables."""

from ingestd.ingest.settings.context import QualifiedSourceTable, TableSettings
from ingestd.paimon.spec.data_types import DataType
from tests.support.ingest_rig import Rig


def test_own_settings_win_over_defaults_key_by_key() -> None:
    defaults = TableSettings(
        primary_keys=("id",),
        partition_keys=("day",),
        options={"bucket": "4", "file.format": "parquet"},
        column_types={"n": DataType("INT"), "m": DataType("INT")},
    )
    own = TableSettings(options={"bucket": "1"}, column_types={"n": DataType("DATE")})
    done = own.over(defaults)
    assert done.primary_keys == ("id",)
    assert done.partition_keys == ("day",)
    assert done.options == {"bucket": "1", "file.format": "parquet"}
    assert done.column_types == {"n": DataType("DATE"), "m": DataType("INT")}


def test_empty_key_is_a_setting_of_its_own() -> None:
    assert (
        TableSettings(primary_keys=()).over(TableSettings(primary_keys=("id",))).primary_keys == ()
    )


def test_settings_are_found_by_the_name_without_the_database() -> None:
    rig = Rig(settings={"a.b": TableSettings(partition_keys=("day",))})
    assert rig.context().settings_of("lake.a.b").partition_keys == ("day",)
    assert rig.context().settings_of("lake.other").partition_keys == ()


def test_feed_is_named_in_full() -> None:
    assert str(QualifiedSourceTable("src", "db", "shop", "orders")) == "src:db.shop.orders"
    assert str(QualifiedSourceTable("src", None, None, "orders")) == "src:orders"
