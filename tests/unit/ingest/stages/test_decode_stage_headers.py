"""Headers are fetched where the messages name their schemas in them, and nowhere else."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ingestd.cdc.base import FormatSettings, RecordChunk
from ingestd.cdc.schema_lookup import Framing, IdLocation
from ingestd.ingest.stages import decode_stage
from ingestd.kafka.offset_ranges import OffsetRange
from tests.support.ingest_rig import Rig


@pytest.mark.parametrize(
    ("location", "wanted"), [("prefix", False), ("header", True), ("auto", True)]
)
def test_headers_are_fetched_when_the_schemas_are_named_there(
    location: IdLocation, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def fetch(*_: Any, headers: bool, **__: Any) -> Iterator[RecordChunk]:
        asked.append(headers)
        return iter(())

    monkeypatch.setattr(decode_stage, "fetch_readable", fetch)
    context = Rig().context()
    source = replace(
        context.sources["src"],
        data_format="debezium-json",
        format_settings=FormatSettings(framing=Framing(location)),
    )
    context = replace(context, sources={"src": source})
    list(decode_stage.decode_ranges(context, [OffsetRange("src", "orders", 0, 0, 1)]))
    assert asked == [wanted]
