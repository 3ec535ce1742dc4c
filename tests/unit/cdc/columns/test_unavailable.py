"""Placeholders of values that the source left out, in every form they have."""

import json
from typing import Any

import pyarrow as pa
import pytest

from ingestd.cdc.base import load_data_format
from ingestd.cdc.columns import unavailable
from ingestd.paimon.spec.data_types import parse_type
from tests.support.change_events import TABLE, chunk, event, field, wrapped

FORMS: list[tuple[dict[str, Any], Any, Any]] = [
    (field("v", "string"), unavailable.TEXT, "x"),
    (field("v", "string"), unavailable.TEXT, "y" * len(unavailable.TEXT)),
    (field("v", "string"), unavailable.BASE64, "x"),
    (field("v", "string", "io.debezium.data.Json"),
     '{"__debezium_unavailable_value":"__debezium_unavailable_value"}', '{"k":"v"}'),
    (field("v", "bytes"), unavailable.BASE64, "/w=="),
    (field("v", "array", items={"type": "string"}), [unavailable.TEXT], ["x", unavailable.TEXT]),
    (field("v", "array", items={"type": "int32"}), unavailable.CODES, [95]),
    (field("v", "array", items={"type": "int64", "name": "io.debezium.time.MicroTimestamp"}),
     unavailable.CODES, [95]),
    (field("v", "array", items={"type": "string", "name": "io.debezium.data.Uuid"}),
     [unavailable.UUID], ["x"]),
    (field("v", "array", items={"type": "bytes", "parameters": {"scale": "2"},
           "name": "org.apache.kafka.connect.data.Decimal"}), [unavailable.BASE64], ["AQ=="]),
    (field("v", "bytes", "org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"}),
     unavailable.BASE64, "AQ=="),
    (field("v", "map", keys={"type": "string"}, values={"type": "string"}),
     {unavailable.TEXT: unavailable.TEXT}, {"k": "v"}),
    (field("v", "struct", fields=[]), unavailable.TEXT, {"x": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("column", "placeholder", "other"), FORMS)
@pytest.mark.parametrize("bare", [False, True])
def test_placeholder_is_marked(
    column: dict[str, Any], placeholder: Any, other: Any, bare: bool
) -> None:
    events = [event("u", {"id": n, "v": v}) for n, v in enumerate((other, placeholder, None))]
    events = [json.dumps(json.loads(e), separators=(",", ":")).encode() for e in events]
    values = events if bare else [wrapped(e, [field("id", "int32"), column]) for e in events]
    decoded = load_data_format("debezium-json").decode(chunk(values), {}, {})
    assert decoded.rejected == []
    [batch] = decoded.batches
    assert batch.unavailable["v"].tolist() == [False, True, False]
    cells = batch.columns.column("v")
    assert cells.is_null().to_pylist() == [False, True, True]
    assert batch.unavailable.keys() == {"v"}


def test_longer_text_with_the_placeholder_inside_is_data() -> None:
    text = unavailable.TEXT + "!"
    decoded = load_data_format("debezium-json").decode(chunk([event("u", {"v": text})]), {}, {})
    assert decoded.batches[0].unavailable == {}
    assert decoded.batches[0].columns.column("v").to_pylist() == [text]


def test_placeholder_in_a_declared_column_is_marked() -> None:
    declared = {TABLE: {"v": parse_type("BYTES")}}
    decoded = load_data_format("debezium-json").decode(
        chunk([event("u", {"v": unavailable.BASE64})]), {}, declared
    )
    assert decoded.batches[0].unavailable["v"].tolist() == [True]


def test_marks_of_long_chunks_stay_with_their_rows() -> None:
    values = [event("u", {"v": "x", "n": n}) for n in range(9000)]
    values[5000] = event("u", {"v": unavailable.TEXT, "n": 5000})
    decoded = load_data_format("debezium-json").decode(chunk(values), {}, {})
    [batch] = decoded.batches
    assert batch.unavailable["v"].nonzero()[0].tolist() == [5000]
    assert batch.columns.column("n")[5000].as_py() == 5000


@pytest.mark.parametrize(
    ("text", "expected"),
    [(unavailable.TEXT, True), (unavailable.BASE64, True), (unavailable.TEXT + "!", False)],
)
def test_only_texts_as_long_as_a_placeholder_are_looked_at(text: str, expected: bool) -> None:
    texts = pa.array(["cut off", "x", text, None])
    assert unavailable.may_hold_text(texts.slice(1)) is expected


@pytest.mark.parametrize("placeholder", [unavailable.TEXT, unavailable.BASE64])
@pytest.mark.parametrize("kind", ["DATE", "TIME(3)", "TIMESTAMP(6)", "DOUBLE", "BIGINT", "BOOLEAN"])
def test_columns_without_placeholders_have_none_among_values_of_all_kinds(
    kind: str, placeholder: str
) -> None:
    """Values of these types are never stored out of line, so that no update leaves them out."""
    declared = {TABLE: {"v": parse_type(kind)}}
    for others in ([], [5, "x", True, [1], 1.5]):
        events = [event("c", {"id": n, "v": v}) for n, v in enumerate([placeholder, *others])]
        decoded = load_data_format("debezium-json").decode(chunk(events), {}, declared)
        assert 0 in {bad.offset for bad in decoded.rejected}
        assert not any(batch.unavailable for batch in decoded.batches)
