"""The messages of the format benchmark are read without a rejection, all to the same changes."""

import numpy as np
import pytest

from bench.format_messages import FORMATS, MIXED, changes, messages, mixed, variants
from bench.formats import decode_seconds
from ingestd.cdc.base import DATA_FORMATS, RecordChunk, load_data_format


@pytest.mark.parametrize("name", FORMATS)
def test_every_change_is_a_row(name: str) -> None:
    found = changes(60)
    texts = messages(name, found)
    offsets = np.arange(len(texts), dtype=np.int64)
    keys, values = [key for key, _ in texts], [value for _, value in texts]
    chunk = RecordChunk("shop.inv.item", 0, offsets, offsets, [*keys], [*values], None)
    [batch] = load_data_format(name).decode(chunk, {}, {}).batches
    wanted = {"c": 0, "u": 2, "d": 3}
    if name not in ("json", "raw"):
        assert batch.row_kind.tolist() == [wanted[operation] for _, operation, _, _ in found]
    assert batch.offset.tolist() == offsets.tolist()


def test_all_json_formats_are_measured() -> None:
    assert set(FORMATS) == {
        name for name in DATA_FORMATS if name.endswith(("json", "bson")) or name == "raw"
    }


@pytest.mark.parametrize("name", MIXED)
def test_mixed_messages_are_rows_of_four_tables_and_tombstones(name: str) -> None:
    texts = mixed(messages(name, changes(1000)))
    assert [number for number, (_, value) in enumerate(texts) if value is None] == [999]
    offsets = np.arange(len(texts), dtype=np.int64)
    keys, values = [key for key, _ in texts], [value for _, value in texts]
    chunk = RecordChunk("shop.inv.item", 0, offsets, offsets, [*keys], values, None)
    found = load_data_format(name).decode(chunk, {}, {})
    assert sorted({batch.source.table.lower() for batch in found.batches}) == [
        f"item{number}" for number in range(4)
    ]
    assert sum(len(batch.offset) for batch in found.batches) + found.control == 1000


def test_messages_with_schemas_have_types_and_tombstones_are_deletes() -> None:
    found = {}
    for name in ("debezium-json", "json", "debezium-flat-json"):
        for title, texts in variants(name, messages(name, changes(20))).items():
            offsets = np.arange(len(texts), dtype=np.int64)
            keys, values = [key for key, _ in texts], [value for _, value in texts]
            chunk = RecordChunk("shop.inv.item", 0, offsets, offsets, [*keys], values, None)
            found[name, title] = load_data_format(name).decode(chunk, {}, {})
    [batch] = found["debezium-json", "schemas"].batches
    assert {name: batch.types[name].root for name in ("tenant", "total")} == {
        "tenant": "INT",
        "total": "DOUBLE",
    }
    for name in ("json", "debezium-flat-json"):
        [batch] = found[name, "tombstones"].batches
        assert [batch.row_kind[index] for index in (9, 19)] == [3, 3]


def test_rejected_records_are_no_figure() -> None:
    with pytest.raises(ValueError, match="maxwell-json"):
        decode_seconds("maxwell-json", [(b"{}", b"{")], 1)
