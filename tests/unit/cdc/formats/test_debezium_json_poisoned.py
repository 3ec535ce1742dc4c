"""Records that cannot be used are named one by one; their neighbours arrive."""

import json
from decimal import Decimal
from typing import Any

import pytest

from ingestd.cdc.base import KnownColumns, load_data_format
from ingestd.paimon.spec.data_types import DataType
from tests.support.change_events import (
    TABLE,
    TOPIC,
    chunk,
    event,
    field,
    key,
    raw_event,
    wrapped,
    wrapped_key,
)
from tests.support.decoded import both_decoders

KNOWN: KnownColumns = {TABLE: {"id": DataType("BIGINT"), "qty": DataType("INT")}}
GOOD = event("c", {"id": 1, "qty": 5})
BAD_VALUES = {
    "empty": (b"", "decode", "invalid-json"),
    "truncated": (GOOD[:-20], "decode", "invalid-json"),
    "trailing": (GOOD + b"]", "decode", "invalid-json"),
    "two objects": (GOOD + b" " + GOOD, "decode", "invalid-json"),
    "garbage": (b"\xff\xfe\x00", "decode", "invalid-json"),
    "nan": (raw_event('{"id": NaN}'), "decode", "invalid-json"),
    "array": (b"[1]", "decode", "not-an-object"),
    "scalar": (b'"x"', "decode", "not-an-object"),
    "no op, and a name that is not UTF-8": (
        b'{"ts_ms":1,"\xff":2}', "decode", "missing-op"
    ),
    "no op": (b'{"after":{"id":1},"source":{"table":"t"}}', "decode", "missing-op"),
    "strange op": (event("x", {"id": 1}), "decode", "unknown-op"),
    "number op": (GOOD.replace(b'"op": "c"', b'"op": 1'), "decode", "unknown-op"),
    "no source": (b'{"op":"c","after":{"id":1}}', "decode", "invalid-source"),
    "no table": (event("c", {"id": 1}, table=TABLE._replace(table="")), "decode", "missing-source"),
    "no after": (event("c"), "decode", "missing-after"),
    "after is text": (raw_event('"x"'), "decode", "wrong-type"),
    "deep": (raw_event('{"id": 1, "j": ' + "[" * 2000 + "]" * 2000 + "}"), "decode", "too-deep"),
    "invalid utf-8": (
        event("c", {"id": 1, "note": "@@"}).replace(b"@@", b"\xff\xff"), "decode", "invalid-utf8"
    ),
    "text in a number": (event("c", {"id": "abc"}), "cast", "wrong-type"),
    "fraction in a key": (event("c", {"id": 1.5}), "cast", "wrong-type"),
    "boolean in a number": (event("c", {"id": 1, "qty": True}), "cast", "wrong-type"),
    "too large": (event("c", {"id": 2**63}), "cast", "out-of-range"),
    "blank name": (event("c", {"id": 1, " ": 1}), "schema", "unsupported-column-name"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_VALUES)
@pytest.mark.parametrize("warm", [False, True])
def test_bad_value_is_named_and_neighbours_arrive(name: str, warm: bool) -> None:
    value, stage, reason = BAD_VALUES[name]
    data_format = load_data_format("debezium-json")
    if warm:
        data_format.decode(chunk([GOOD], [key(id=1)]), KNOWN, {})
    ids = [key(id=n) for n in range(40)]
    values = [event("c", {"id": n, "qty": n, "note": "x"}) for n in range(40)]
    values[20] = value
    decoded = data_format.decode(chunk(values, ids, first=100), KNOWN, {})
    [bad] = decoded.rejected
    assert (bad.stage, bad.reason) == (stage, reason)
    assert (bad.topic, bad.partition, bad.offset, bad.timestamp) == (TOPIC, 0, 120, 5120)
    assert (bad.key, bad.value) == (ids[20], value)
    rows = [row for batch in decoded.batches for row in batch.columns.to_pylist()]
    assert rows == [{"id": n, "qty": n, "note": "x"} for n in range(40) if n != 20]


@pytest.mark.parametrize(
    ("bad_key", "reason"),
    [
        (b"", "invalid-json"),
        (b"{", "invalid-json"),
        (b"[1]", "not-an-object"),
        (b'"7"', "not-an-object"),
        (b'{"\xff":1}', "invalid-utf8"),
    ],
)
def test_bad_key_is_named_and_neighbours_arrive(bad_key: bytes, reason: str) -> None:
    values = [event("c", {"id": n}) for n in range(3)]
    data_format = load_data_format("debezium-json")
    decoded = data_format.decode(chunk(values, [key(id=0), bad_key, key(id=2)]), KNOWN, {})
    [bad] = decoded.rejected
    assert (bad.offset, bad.reason) == (1, reason)
    assert [batch.offset.tolist() for batch in decoded.batches] == [[0, 2]]


def test_delete_by_a_key_that_is_no_key_is_refused() -> None:
    decoded = load_data_format("debezium-json").decode(
        chunk([GOOD, event("d")], [key(id=1), key(id="abc")]), KNOWN, {}
    )
    assert [(bad.offset, bad.stage, bad.reason) for bad in decoded.rejected] == [
        (1, "cast", "wrong-type")
    ]


def test_messages_name_the_column() -> None:
    values = [event("c", {"id": 1, "qty": "many"}), event("c", {"id": 1, "qty": 2**31})]
    decoded = load_data_format("debezium-json").decode(
        chunk(values), {}, {TABLE: {"qty": DataType("INT")}}
    )
    assert [bad.message.startswith("column qty: ") for bad in decoded.rejected] == [True, True]
    assert [bad.reason for bad in decoded.rejected] == ["wrong-type", "out-of-range"]
    assert "INT" in decoded.rejected[1].message


def test_a_delete_of_nobody_is_refused() -> None:
    decoded = load_data_format("debezium-json").decode(chunk([event("d"), GOOD]), {}, {})
    assert [(bad.stage, bad.reason) for bad in decoded.rejected] == [("key", "missing-key")]
    assert len(decoded.batches) == 1


def test_value_that_contradicts_its_own_schema_is_refused() -> None:
    columns = [field("id", "int64"), field("qty", "int32")]
    after = [{"id": 1, "qty": "12"}, {"id": 2, "qty": 2}, {"id": 3, "qty": 2**31}]
    after += [{"id": 4, "qty": 4, "extra": 1}]
    values = [wrapped(event("c", row), columns) for row in after]
    keys = [wrapped_key(key(id=row["id"]), columns[:1]) for row in after]
    decoded = load_data_format("debezium-json").decode(chunk(values, keys), {}, {})
    assert [(bad.offset, bad.reason) for bad in decoded.rejected] == [
        (2, "out-of-range"),
        (3, "unknown-column"),
    ]


def test_schema_that_cannot_be_read_costs_its_message() -> None:
    broken = wrapped(GOOD, [{"type": "intt", "field": "id"}])
    decoded = load_data_format("debezium-json").decode(chunk([broken, GOOD]), {}, {})
    assert [(bad.offset, bad.reason) for bad in decoded.rejected] == [(0, "invalid-schema")]
    assert len(decoded.batches) == 1


def test_all_bad_is_all_rejected() -> None:
    values = [b"{", event("c"), b"[]"] * 400
    decoded = load_data_format("debezium-json").decode(chunk(values), {}, {})
    assert [bad.offset for bad in decoded.rejected] == list(range(1200))
    assert decoded.batches == []


def test_a_huge_message_is_read() -> None:
    text = "x" * 5_000_000
    value = event("c", {"id": 1, "text": text})
    decoded = load_data_format("debezium-json").decode(chunk([GOOD, value]), {}, {})
    assert decoded.batches[0].columns.column("text").to_pylist() == [None, text]


def test_nesting_that_json_readers_take_is_kept() -> None:
    nested = json.dumps({"a": [{"b": [1, [2, [3]]]}]})
    value = raw_event('{"id": 1, "doc": ' + nested + "}")
    decoded = load_data_format("debezium-json").decode(chunk([value]), {}, {})
    assert decoded.batches[0].columns.column("doc").to_pylist() == [nested]


DECIMAL = {
    "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "optional": True,
    "parameters": {"scale": "2", "connect.decimal.precision": "9"},
}  # fmt: skip
VARIABLE = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "optional": True}
BITS = {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "12"}}
LISTS: dict[str, tuple[Any, str, list[Any]]] = {
    "decimals": (DECIMAL, '["AAEC", null]', [Decimal("2.58"), None]),
    "decimals of digits only": (DECIMAL, '["1234"]', [Decimal("-26588.24")]),
    "numbers as decimals": (DECIMAL, "[2.5, null]", [Decimal("2.50"), None]),
    "decimals with a scale": (VARIABLE, '[{"scale": 1, "value": "MDk="}]', ["1234.5"]),
    "bit strings": (BITS, '["AQg="]', [b"\x08\x01"]),
}


@pytest.mark.parametrize("bad", ["true", "7", '"AAEC"', '{"a": 1}', '{"a": "AAEC"}'])
@pytest.mark.parametrize("name", LISTS)
def test_a_value_that_is_no_list_does_not_change_how_other_lists_are_read(
    name: str, bad: str
) -> None:
    items, good, wanted = LISTS[name]
    columns = [field("id", "int32"), field("v", "array", items=items)]
    values = [
        wrapped(raw_event(f'{{"id": {number}, "v": {value}}}'), columns)
        for number, value in enumerate([good, bad, good])
    ]
    for decoder in both_decoders():
        decoded = decoder.decode(chunk(values), {}, {})
        assert [(one.offset, one.reason) for one in decoded.rejected] == [(1, "wrong-type")]
        rows = decoded.batches[0].columns.to_pylist()
        assert rows == [{"id": 0, "v": wanted}, {"id": 2, "v": wanted}]


@pytest.mark.parametrize("bad", ["true", "7", '["AAEC"]'])
def test_a_value_that_is_no_map_does_not_change_how_other_maps_are_read(bad: str) -> None:
    columns = [
        field("id", "int32"), field("v", "map", keys={"type": "string"}, values=DECIMAL)
    ]  # fmt: skip
    values = [
        wrapped(raw_event(f'{{"id": {number}, "v": {value}}}'), columns)
        for number, value in enumerate(['{"k": "1234"}', bad, '{"k": "1234"}'])
    ]
    for decoder in both_decoders():
        decoded = decoder.decode(chunk(values), {}, {})
        assert [(one.offset, one.reason) for one in decoded.rejected] == [(1, "wrong-type")]
        found = decoded.batches[0].columns.column("v").to_pylist()
        assert found == [[("k", Decimal("-26588.24"))]] * 2
