import pytest

from ingestd.cdc.base import load_data_format
from ingestd.ingest.rows.decoded_rows import DecodedTable, decoded_tables, rejected_documents
from tests.support.cdc_samples import Sample, decoded, samples
from tests.support.change_events import chunk, event, key


def shown(*records: tuple[bytes | None, bytes | None]) -> list[DecodedTable]:
    values, keys = [record[1] for record in records], [record[0] for record in records]
    decoder = load_data_format("debezium-json")
    return decoded_tables(decoder.decode(chunk(values, keys, first=7), {}, {}))


def test_rows_have_kind_place_and_cells() -> None:
    (table,) = shown(
        (key(id=1), event("c", {"id": 1, "a": "x", "b": 1.5}, lsn=5)),
        (key(id=1), event("d", before={"id": 1, "a": "x", "b": 1.5}, lsn=6)),
    )
    assert table.name == "shopdb.public.orders"
    assert table.primary_keys == ("id",)
    assert table.types == {"id": "BIGINT", "a": "STRING", "b": "DOUBLE"}
    first, second = table.rows
    assert (first.offset, first.rowkind, first.values) == (7, "+I", {"id": 1, "a": "x", "b": 1.5})
    assert (second.offset, second.rowkind, second.values["id"]) == (8, "-D", 1)
    assert first.position is not None
    assert second.position is not None
    assert first.position < second.position


def test_a_snapshot_row_has_no_position() -> None:
    (table,) = shown((key(id=1), event("r", {"id": 1}, snapshot="true", lsn=None)))
    assert table.rows[0].snapshot
    assert table.rows[0].position is None


def test_what_the_source_left_out_is_marked() -> None:
    placeholder = "__debezium_unavailable_value"
    (table,) = shown((key(id=1), event("u", {"id": 1, "big": placeholder, "a": None})))
    assert table.rows[0].unavailable == ("big",)
    assert table.rows[0].values["big"] is None


def test_rejected_records_come_in_order() -> None:
    decoder = load_data_format("debezium-json")
    found = decoder.decode(chunk([b"{", event("c", {"id": 1}), b"[]"]), {}, {})
    documents = rejected_documents(found)
    assert [document["offset"] for document in documents] == [0, 2]
    assert documents[0]["stage"] == "decode"
    assert documents[0]["reason"] == "invalid-json"


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)
def test_every_sample_of_every_format_can_be_shown(sample: Sample) -> None:
    found = decoded(sample)
    tables = decoded_tables(found)
    assert sum(len(table.rows) for table in tables) == sum(
        len(batch.offset) for batch in found.batches
    )
    for table in tables:
        assert all(row.values.keys() == table.types.keys() for row in table.rows)
