"""Ranges that tables hold are left out, and a gap before them is no silent one."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ingestd.errors import OffsetGapError
from ingestd.ingest.settings.context import RoutingConfig, SourceSettings, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.lake import Lake
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from ingestd.spark.new_ranges import new_ranges

ONE = OffsetRange("s", "t", 0, 10, 20)


def lake(finished: bool, *held: int) -> Lake:
    """Tables that hold the topic up to these offsets."""
    tables = {
        str(number): SimpleNamespace(coverage={"s": {"t": {0: until}}})
        for number, until in enumerate(held)
    }
    one = SimpleNamespace(tables=tables, fed_by=lambda *_: tables, has_finished=lambda _: finished)
    return cast("Lake", one)


def settings(policy: Any = "fail") -> PipelineSettings:
    """A source with a policy for what is lost."""
    kafka = KafkaSource("s", ("t",), on_offset_out_of_range=policy)
    return PipelineSettings(
        name="p",
        warehouse=str(Path()),
        metastore="filesystem",
        database="d",
        checkpoint="c",
        sources={"s": SourceSettings(kafka, "json")},
        routing=RoutingConfig(),
        defaults=TableSettings(),
        tables={},
        max_offsets_per_trigger={},
    )


@pytest.mark.parametrize(
    ("finished", "held", "is_new"),
    [
        (True, (20, 25), False),
        (False, (20, 25), True),  # a table that it was the first to feed may be missing
        (True, (20, 15), True),
        (True, (20, 10), True),
        (True, (), True),
    ],
)
def test_a_range_is_left_out_if_all_tables_have_it_and_its_batch_was_finished(
    finished: bool, held: tuple[int, ...], is_new: bool
) -> None:
    assert new_ranges(lake(finished, *held), settings(), [ONE]) == ([ONE] if is_new else [])


def test_a_range_that_starts_above_what_a_table_has_stops_the_pipeline() -> None:
    with pytest.raises(OffsetGapError, match=r"table 1 holds t/0 of source s up to offset 9"):
        new_ranges(lake(True, 20, 9), settings(), [ONE])


def test_a_source_that_goes_on_past_losses_goes_on_past_a_gap() -> None:
    assert new_ranges(lake(True, 9), settings("earliest"), [ONE]) == [ONE]
