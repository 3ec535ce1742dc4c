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


def test_nobody_is_told_of_rows_before_without_asking() -> None:
    assert told(False, *EVENTS[:2], ids=[1, 1]) == [(0, 0, A), (1, 2, B)]


def test_without_any_update_nothing_is_put_in_between() -> None:
    assert told(True, event("c", A), ids=[1]) == [(0, 0, A)]
    kept = {"id": 1, "label": TEXT}
    assert told(True, event("u", kept, A), ids=[1])[0] == (0, 1, A)
