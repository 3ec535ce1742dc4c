"""Before images in JSON: the rows of updates and deletes."""

import json
from typing import Any

import pytest

from ingestd.cdc.base import DataFormat, FormatSettings, load_data_format
from ingestd.paimon.spec.data_types import RowKind
from tests.support import captured_chunks
from tests.support.change_events import chunk, event, key
from tests.support.decoded import both_decoders

Row = tuple[int, str, dict[str, Any]]
A, B = {"id": 1, "v": "a"}, {"id": 1, "v": "b"}


def rows(decoder: DataFormat, values: list[bytes], keys: list[bytes | None]) -> list[Row]:
    """Offset, kind and cells of all rows."""
    decoded = decoder.decode(chunk(values, keys), {}, {})
    assert decoded.rejected == []
    return [
        (int(offset), RowKind(int(kind)).symbol, cells)
        for batch in decoded.batches
        for offset, kind, cells in zip(
            batch.offset, batch.row_kind, batch.columns.to_pylist(), strict=True
        )
    ]


def debezium(*values: bytes, ids: list[int]) -> list[Row]:
    native, pure = both_decoders(images=True)
    keys = [key(id=n) for n in ids]
    found = rows(native, list(values), [*keys])
    assert rows(pure, list(values), [*keys]) == found
    return found


def test_an_update_of_a_row_is_what_was_there_and_what_is() -> None:
    found = debezium(event("c", A), event("u", B, before=A), ids=[1, 1])
    assert found == [(0, "+I", A), (1, "-U", A), (1, "+U", B)]


def test_an_update_that_changes_the_key_is_a_delete_and_an_insert() -> None:
    moved = {"id": 2, "v": "b"}
    found = debezium(event("u", moved, before=A), ids=[2])
    assert found == [(0, "-D", A), (0, "+I", moved)]


def test_a_delete_is_the_whole_row_that_was_there() -> None:
    found = debezium(event("d", before=A), event("c", B), ids=[1, 1])
    assert found == [(0, "-D", A), (1, "+I", B)]


def test_changes_without_an_image_before_are_the_rows_that_they_are_otherwise() -> None:
    found = debezium(event("u", B), event("d", before={"id": 1, "v": None}), ids=[1, 1])
    assert found == [(0, "+U", B), (1, "-D", {"id": 1, "v": None})]
    native, pure = both_decoders(images=True)
    for decoder in (native, pure):
        only_key = rows(decoder, [event("c", A), event("d")], [key(id=1), key(id=1)])
        assert only_key == [(0, "+I", A), (1, "-D", {"id": 1, "v": None})]


def test_an_image_before_without_a_key_counts_for_nothing() -> None:
    found = debezium(event("u", B, before={"id": None, "v": "a"}), ids=[1])
    assert found == [(0, "+U", B)]


def test_a_null_in_a_key_of_mixed_values_is_no_key() -> None:
    """Such a key is text; the text `null` is not one of its values."""
    moved = event("u", {"id": "x", "v": "b"}, before={"id": None, "v": "a"})
    for decoder in both_decoders():
        found = rows(decoder, [event("c", A), moved], [key(id=1), key(id="x")])
        assert found == [(0, "+I", {"id": "1", "v": "a"}), (1, "+U", {"id": "x", "v": "b"})]


def test_a_field_that_only_the_image_before_has_is_a_column() -> None:
    found = debezium(event("u", {"id": 1}, before=A), ids=[1])
    assert found == [(0, "-U", A), (0, "+U", {"id": 1, "v": None})]


def test_before_images_are_left_out_unless_requested() -> None:
    native, pure = both_decoders()
    for decoder in (native, pure):
        keys: list[bytes | None] = [key(id=1)] * 2
        found = rows(decoder, [event("u", B, before=A), event("d", before=B)], keys)
        assert found == [(0, "+U", B), (1, "-D", {"id": 1, "v": None})]


CANAL = {"database": "d", "table": "t", "pkNames": ["id"], "isDdl": False, "es": 1}
MAXWELL = {"database": "d", "table": "t", "primary_key_columns": ["id"]}
OGG = {"table": "d.t", "primary_keys": ["id"], "pos": "1"}


@pytest.mark.parametrize(
    ("name", "update"),
    [
        ("canal-json", {**CANAL, "type": "UPDATE", "data": [B | {"n": 5}], "old": [{"v": "a"}]}),
        ("maxwell-json", {**MAXWELL, "type": "update", "data": B | {"n": 5}, "old": {"v": "a"}}),
        ("ogg-json", {**OGG, "op_type": "U", "before": {"v": "a"}, "after": B | {"n": 5}}),
    ],
)
def test_values_that_a_before_image_lacks_are_those_after_the_change(
    name: str, update: dict[str, Any]
) -> None:
    value = json.dumps(update).encode()
    found = rows(load_data_format(name, FormatSettings(images=True)), [value], [None])
    kinds = [(kind, row["v"], row["n"]) for _, kind, row in found]
    assert kinds == [("-U", "a", 5), ("+U", "b", 5)]
    found = rows(load_data_format(name), [value], [None])
    assert [(kind, row["v"]) for _, kind, row in found] == [("+U", "b")]


def test_captured_rows_before_changes_are_those_that_were_there() -> None:
    """The captured table `orders` sends whole rows."""
    decoder = load_data_format("debezium-json", FormatSettings(images=True))
    rows_now: dict[tuple[Any, ...], dict[str, Any]] = {}
    seen: list[str] = []
    for one in captured_chunks.shop("json", 300):
        for batch in decoder.decode(one, {}, {}).batches:
            if batch.source.table != "orders":
                continue
            for kind, row in zip(batch.row_kind, batch.columns.to_pylist(), strict=True):
                symbol = RowKind(int(kind)).symbol
                seen.append(symbol)
                where = tuple(row[name] for name in batch.primary_keys)
                if symbol in ("-U", "-D"):
                    assert rows_now.pop(where) == row
                else:
                    rows_now[where] = row
    assert (seen.count("-U"), seen.count("+U"), seen.count("-D")) == (47, 47, 34)
