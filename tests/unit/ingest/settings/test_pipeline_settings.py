"""Settings of a table are found by its name, those of a branch by the name of its table."""

from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.watermark_rules import WatermarkRules

RULES = WatermarkRules("source")


def settings(**tables: TableSettings) -> PipelineSettings:
    return PipelineSettings(
        name="shop",
        warehouse="/lake",
        metastore="filesystem",
        database="ods",
        sources={},
        routing=RoutingConfig(),
        defaults=TableSettings(),
        tables=tables,
        max_offsets_per_trigger={},
    )


def test_a_branch_has_the_settings_of_its_table() -> None:
    shop = settings(orders=TableSettings(partition_keys=("day",), watermark=RULES))
    for name in ("ods.orders", "ods.orders$branch_fix"):
        assert shop.settings_of(name).partition_keys == ("day",)
        assert shop.watermark_rules(name) == RULES
    assert shop.watermark_rules("ods.items") is None
