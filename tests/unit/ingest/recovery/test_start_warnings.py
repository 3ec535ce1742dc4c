"""Keys and options that are declared otherwise than an existing table has them."""

import pytest

from ingestd.ingest.recovery.start_warnings import declared_differences, unused_warnings
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema

COLUMNS = [("id", DataType("INT")), ("dt", DataType("STRING"))]
KEYED = new_schema(COLUMNS, ("id", "dt"), ("dt",), {"bucket": "2", "target-file-size": "64 mb"}, 1)
APPEND = new_schema(COLUMNS, (), (), {"bucket": "-1"}, 1)


def keys(settings: TableSettings, schema: object = KEYED) -> list[str]:
    return [difference.key for difference in declared_differences(schema, settings)]  # type: ignore[arg-type]


def test_what_the_table_has_or_nobody_declares_is_no_difference() -> None:
    assert keys(TableSettings()) == []
    same = {
        "bucket": "2",
        "target-file-size": "64mb",
        "file.format": "parquet",
        "sink.parallelism": "9",
    }
    declared = TableSettings(primary_keys=("id", "dt"), partition_keys=("dt",), options=same)
    assert keys(declared) == []


def test_keys_buckets_and_options_are_named_with_the_way_out() -> None:
    declared = TableSettings(
        primary_keys=("id",),
        partition_keys=("id",),
        options={
            "bucket": "4",
            "merge-engine": "first-row",
            "fields.a.aggregate-function": "sum",
            "snapshot.time-retained": "2 h",
        },
    )
    differences = {str(difference) for difference in declared_differences(KEYED, declared)}
    assert differences == {
        "primary-keys = [id] has no effect, the table exists with [id, dt]; correct the setting, "
        "or move the table away and let it be created again",
        "partition-keys = [id] has no effect, the table exists with [dt]; correct the setting, or "
        "move the table away and let it be created again",
        "options.bucket = 4 has no effect, the table exists with 2; correct the setting, or "
        "run `ingestd rescale WAREHOUSE TABLE --buckets 4`",
        "options.merge-engine = first-row has no effect, the table exists with the default "
        "deduplicate; correct the setting, or move the table away and let it be created again",
        "options.snapshot.time-retained = 2 h has no effect, the table exists with the default "
        "1 h; correct the setting, or change the option of the table (ALTER TABLE in Spark or "
        "Flink)",
        "options.fields.a.aggregate-function = sum has no effect, the table exists with no value; "
        "correct the setting, or change the option of the table (ALTER TABLE in Spark or Flink)",
    }


@pytest.mark.parametrize(("exists", "declared"), [
    ({"bucket": "-1"}, {"bucket": "4"}),
    ({"bucket": "-2"}, {"bucket": "4"}),
    ({"bucket": "4"}, {"bucket": "-1"}),
    ({"deletion-vectors.enabled": "true"}, {"deletion-vectors.enabled": "false"}),
])  # fmt: skip
def test_a_table_that_cannot_be_altered_so_is_to_be_created_again(
    exists: dict[str, str], declared: dict[str, str]
) -> None:
    schema = new_schema(COLUMNS, ("id",), (), exists, 1)
    (difference,) = declared_differences(schema, TableSettings(options=declared))
    assert difference.way_out == "move the table away and let it be created again"


@pytest.mark.parametrize(("options", "wanted"), [
    ({"bucket": "4"}, []),
    ({"bucket": "4", "bucket-key": "id"}, ["options.bucket", "options.bucket-key"]),
])  # fmt: skip
def test_a_bucket_count_of_the_defaults_is_not_meant_for_append_tables(
    options: dict[str, str], wanted: list[str]
) -> None:
    assert keys(TableSettings(options=options), APPEND) == wanted


def test_sections_and_mappings_that_no_table_has_are_named() -> None:
    settings = PipelineSettings(
        name="shop",
        warehouse="/lake",
        metastore="filesystem",
        database="ods",
        sources={},
        routing=RoutingConfig(table_mapping={"shop.a": "items", "shop.b": "orders$branch_fix"}),
        defaults=TableSettings(),
        tables={"orders": TableSettings(), "cutsomers": TableSettings(), "x": TableSettings()},
        max_offsets_per_trigger={},
    )
    warnings = list(unused_warnings(settings, {"ods.orders$branch_fix", "ods.customers"}))
    assert [warning.partition(" applies to no table")[0] for warning in warnings] == [
        "tables.cutsomers",
        "tables.x",
        "routing.table-mapping.shop.a",
    ]
    assert warnings[0].endswith("; did you mean customers?")
    assert "did you mean" not in warnings[1]
