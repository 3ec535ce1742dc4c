"""To know the types that were found changes nothing of what is decoded: kept chunks rest on it."""

import pytest

from ingestd.cdc.base import DataFormat, RecordChunk, load_data_format
from tests.support.captured_chunks import mariadb, shop
from tests.support.decoded import both_decoders, outcome


def chunks() -> list[RecordChunk]:
    return [*shop("json-schema", 400), *shop("json", 400), *mariadb(400)]


@pytest.mark.parametrize("native", [True, False], ids=["native", "python"])
def test_known_types_change_nothing_if_they_are_those_that_were_found(native: bool) -> None:
    def decoder() -> DataFormat:
        return load_data_format("debezium-json") if native else both_decoders()[1]

    seen = 0
    for chunk in chunks():
        decoded = decoder().decode(chunk, {}, {})
        found = {
            batch.source: {
                name: one.not_null() if name in batch.primary_keys else one
                for name, one in batch.types.items()
            }
            for batch in decoded.batches
        }
        if len(found) == len(decoded.batches):
            seen += 1
            without = outcome(decoder(), [chunk])
            assert outcome(decoder(), [chunk], found) == without
    assert seen > 5
