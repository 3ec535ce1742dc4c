"""Before images in Avro."""

from typing import Any

from ingestd.cdc.base import FormatSettings, load_data_format
from ingestd.cdc.columns.unavailable import TEXT
from tests.support.registered import Registered, chunk_of, envelope, event, record

ID = {"name": "id", "type": "int"}
LABEL = {"name": "label", "type": ["null", "string"]}
KEY = record("Key", [ID])


def told(images: bool, *events: Any, ids: list[int]) -> list[tuple[int, int, dict[str, Any]]]:
    registry = Registered()
    settings = FormatSettings(schemas=registry, images=images)
    values = registry.avro(envelope([ID, LABEL]), *events)
    keys = registry.avro(KEY, *({"id": n} for n in ids))
    decoded = load_data_format("debezium-avro", settings).decode(chunk_of(values, keys), {}, {})
    (batch,) = decoded.batches
    assert decoded.rejected == [] and len(batch.position) == len(batch.offset)
    cells = batch.columns.to_pylist()
    return list(zip(batch.offset.tolist(), batch.row_kind.tolist(), cells, strict=True))


A, B = {"id": 1, "label": "a"}, {"id": 1, "label": "b"}
EVENTS = (
    event("c", A), event("u", B, A), event("u", A), event("u", {"id": 2, "label": None}, A),
    event("d", None, {"id": 2, "label": "z"}), event("d"),
)  # fmt: skip


def test_updates_are_two_rows_and_deletes_are_whole() -> None:
    assert told(True, *EVENTS, ids=[1, 1, 1, 2, 2, 3]) == [
        (0, 0, A),
        (1, 1, A), (1, 2, B),
        (2, 2, A),
        (3, 3, A), (3, 0, {"id": 2, "label": None}),
        (4, 3, {"id": 2, "label": "z"}),
        (5, 3, {"id": 3, "label": None}),
    ]  # fmt: skip


def test_before_images_are_left_out_unless_requested() -> None:
    assert told(False, *EVENTS[:2], ids=[1, 1]) == [(0, 0, A), (1, 2, B)]


def test_without_any_update_nothing_is_put_in_between() -> None:
    assert told(True, event("c", A), ids=[1]) == [(0, 0, A)]
    kept = {"id": 1, "label": TEXT}
    assert told(True, event("u", kept, A), ids=[1])[0] == (0, 1, A)


def test_a_key_that_rows_do_not_have_is_in_both_images_of_an_update() -> None:
    registry = Registered()
    settings = FormatSettings(schemas=registry, images=True)
    values = registry.avro(envelope([LABEL]), event("u", {"label": "b"}, {"label": "a"}))
    keys = registry.avro(KEY, {"id": 7})
    decoded = load_data_format("debezium-avro", settings).decode(chunk_of(values, keys), {}, {})
    (batch,) = decoded.batches
    assert batch.row_kind.tolist() == [1, 2]
    assert batch.columns.to_pylist() == [{"label": "a", "id": 7}, {"label": "b", "id": 7}]


def test_an_omitted_value_in_a_key_is_not_its_text() -> None:
    registry = Registered()
    key = record("Key", [{"name": "label", "type": "string"}])
    values = registry.avro(envelope([LABEL]), event("d"))
    decoded = load_data_format("debezium-avro", FormatSettings(schemas=registry)).decode(
        chunk_of(values, registry.avro(key, {"label": TEXT})), {}, {}
    )
    (batch,) = decoded.batches
    assert batch.columns.to_pylist() == [{"label": None}]
    assert batch.unavailable["label"].tolist() == [True]
