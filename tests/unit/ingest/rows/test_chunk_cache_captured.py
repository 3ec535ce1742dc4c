"""To know the types that were found changes nothing of what is decoded: kept chunks rest on it."""

import pytest

from ingestd.cdc.base import RecordChunk
from ingestd.cdc.formats.debezium_json import DebeziumJson
from ingestd.cdc.native.module import native_module
from tests.support.captured_chunks import mariadb, shop
from tests.support.decoded import outcome


def chunks() -> list[RecordChunk]:
    return [*shop("json-schema", 400), *shop("json", 400), *mariadb(400)]


@pytest.mark.parametrize("native", [True, False], ids=["native", "python"])
def test_known_types_change_nothing_if_they_are_those_that_were_found(native: bool) -> None:
    module = native_module() if native else None
    seen = 0
    for chunk in chunks():
        decoded = DebeziumJson(module).decode(chunk, {}, {})
        found = {
            batch.source: {
                name: one.not_null() if name in batch.primary_keys else one
                for name, one in batch.types.items()
            }
            for batch in decoded.batches
        }
        if len(found) == len(decoded.batches):
            seen += 1
            without = outcome(DebeziumJson(module), [chunk])
            assert outcome(DebeziumJson(module), [chunk], found) == without
    assert seen > 5
