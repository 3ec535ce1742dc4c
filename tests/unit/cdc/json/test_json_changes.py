"""What all JSON formats have in common: groups, keys of the table, whole records, hidden fields."""

import json
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import (
    ChangeBatch,
    Decoded,
    FormatSettings,
    RecordChunk,
    SourceTable,
    load_data_format,
)
from ingestd.paimon.spec.data_types import DataType, RowKind
from tests.support.change_events import chunk, event, field, key, wrapped
from tests.support.decoded import in_python

UNNAMED = wrapped(event("c", {"id": 1}), [field("id", "int32"), {"field": None, "type": "int32"}])
ITEM = SourceTable("inv", None, "item")
TOPIC = "shop.inv.item"


def maxwell(kind: str, data: object, **more: Any) -> bytes:
    document = {"database": "inv", "table": "item", "type": kind, "ts": 1, "data": data}
    return json.dumps(document | {"primary_key_columns": ["id"]} | more).encode()


def canal(kind: str, data: object, old: object = None, **more: Any) -> bytes:
    document = {"database": "inv", "table": "item", "type": kind, "isDdl": False, "pkNames": ["id"]}
    return json.dumps(document | {"data": data, "old": old} | more).encode()


def decode(name: str, *values: bytes | None, keys: list[bytes | None] | None = None) -> Decoded:
    return load_data_format(name).decode(chunk(values, keys, topic=TOPIC), {}, {})


def only(decoded: Decoded) -> ChangeBatch:
    assert decoded.rejected == []
    [batch] = decoded.batches
    return batch


def kinds(batch: ChangeBatch) -> list[int]:
    return [int(kind) for kind in batch.row_kind]


def test_update_of_a_key_deletes_the_old_one_first() -> None:
    batch = only(
        decode(
            "maxwell-json",
            maxwell("update", {"id": 2, "v": "b"}, old={"id": 1}),
            maxwell("update", {"id": 2, "v": "c"}, old={"v": "b"}),
        )
    )
    assert kinds(batch) == [RowKind.DELETE, RowKind.UPDATE_AFTER, RowKind.UPDATE_AFTER]
    assert batch.columns.column("id").to_pylist() == [1, 2, 2]
    assert batch.offset.tolist() == [0, 0, 1]


def test_update_of_a_part_of_the_key_takes_the_rest_from_the_new_row() -> None:
    row = {"a": 1, "b": 2, "v": "x"}
    batch = only(
        decode("maxwell-json", maxwell("update", row, old={"b": 7}, primary_key_columns=["a", "b"]))
    )
    assert batch.columns.select(["a", "b"]).to_pylist() == [{"a": 1, "b": 7}, {"a": 1, "b": 2}]
    assert kinds(batch) == [RowKind.DELETE, RowKind.UPDATE_AFTER]


def test_key_that_no_message_names_is_that_of_the_target_table() -> None:
    known = {ITEM: {"id": DataType("BIGINT", nullable=False), "v": DataType("STRING")}}
    values = [
        maxwell("update", {"id": 2, "v": "b"}, old={"id": 1}, primary_key_columns=None),
        maxwell("delete", {"id": 2, "v": "b"}, primary_key_columns=None),
    ]
    decoded = load_data_format("maxwell-json").decode(chunk(values), known, {})
    batch = only(decoded)
    assert batch.primary_keys == ("id",)
    assert kinds(batch) == [RowKind.DELETE, RowKind.UPDATE_AFTER, RowKind.DELETE]
    assert batch.columns.column("v").to_pylist() == [None, "b", None]


def test_record_with_one_bad_row_is_rejected_whole_and_once() -> None:
    types = {"mysqlType": {"id": "int"}}
    decoded = decode(
        "canal-json",
        canal("INSERT", [{"id": "1"}, {"id": "x"}, {"id": "y"}], **types),
        canal("INSERT", [{"id": "4"}, {"id": "5"}], **types),
    )
    assert [
        (rejected_record.offset, rejected_record.stage) for rejected_record in decoded.rejected
    ] == [(0, "cast")]
    [batch] = decoded.batches
    assert batch.columns.column("id").to_pylist() == [4, 5]
    assert batch.offset.tolist() == [1, 1]


def test_tables_and_keys_of_a_chunk_come_apart() -> None:
    decoded = decode(
        "maxwell-json",
        maxwell("insert", {"id": 1}),
        maxwell("insert", {"id": 2}, table="other"),
        maxwell("insert", {"id": 3}),
    )
    found = {batch.source.table: batch.offset.tolist() for batch in decoded.batches}
    assert found == {"item": [0, 2], "other": [1]}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("maxwell-json", maxwell("merge", {"id": 1}), "unknown-op"),
        ("maxwell-json", maxwell("insert", None), "missing-data"),
        ("maxwell-json", maxwell("insert", {"id": 1}, table=None), "missing-table"),
        ("canal-json", canal("INSERT", []), "missing-data"),
        ("canal-json", canal("UPDATE", [{"id": "1"}], [{}, {}]), "unpaired-rows"),
        ("canal-json", canal("INSERT", [{"id": "1"}], mysqlType=7), "invalid-schema"),
        ("canal-json", canal("INSERT", [{"id": "1"}], pkNames="id"), "invalid-keys"),
        ("canal-json", canal("ROW", [{}], mysqlType=None), "empty-row"),
        ("debezium-json", UNNAMED, "invalid-schema"),
        ("ogg-json", b'{"table":"T","op_type":"X"}', "unknown-op"),
        ("ogg-json", b'{"table":"T","op_type":"D","primary_keys":["id"]}', "missing-before"),
        (
            "aws-dms-json",
            b'{"data":{},"metadata":{"operation":"x","table-name":"t"}}',
            "unknown-op",
        ),
        ("aliyun-json", b'{"schema":{},"payload":{"op":"INSERT"}}', "invalid-schema"),
        ("json", b'{"id":1},"after":{"id":2}', "invalid-json"),
        ("json", b"[1]", "not-an-event"),
        ("debezium-flat-json", b'{"id":1,"__op":"x"}', "unknown-op"),
        (
            "debezium-bson",
            b'{"op":"c","source":{"collection":"c"},"after":"{"}',
            "invalid-document",
        ),
    ],
)
def test_record_that_cannot_be_used_says_why(name: str, value: bytes, reason: str) -> None:
    decoded = decode(name, value)
    assert [rejected_record.reason for rejected_record in decoded.rejected] == [reason]
    assert decoded.batches == []


def test_compressed_update_leaves_what_it_lacks_as_it_was() -> None:
    known = {
        SourceTable(None, "INV", "ITEM"): {
            "ID": DataType("BIGINT", nullable=False),
            "A": DataType("STRING"),
            "B": DataType("BIGINT"),
        }
    }
    document = {"table": "INV.ITEM", "op_type": "U", "primary_keys": ["ID"], "pos": "00000000012"}
    value = json.dumps(document | {"after": {"ID": 1, "A": "x"}}).encode()
    batch = only(load_data_format("ogg-json").decode(chunk([value]), known, {}))
    assert batch.position.tolist() == [12]
    assert {name: marks.tolist() for name, marks in batch.unavailable.items()} == {"B": [True]}
    assert batch.columns.to_pylist() == [{"ID": 1, "A": "x", "B": None}]


def test_message_with_a_key_and_without_a_value_deletes_the_row() -> None:
    for name in ("json", "debezium-flat-json"):
        keys: list[bytes | None] = [key(id=1), key(id=1), None]
        decoded = decode(name, b'{"id":1,"v":"x"}', None, None, keys=keys)
        batch = only(decoded)
        assert decoded.control == 1
        assert kinds(batch) == [RowKind.INSERT, RowKind.DELETE]
        assert batch.columns.to_pylist() == [{"id": 1, "v": "x"}, {"id": 1, "v": None}]


def test_added_fields_are_no_columns_but_say_what_happened() -> None:
    row = {"id": 1, "v": "x", "__op": "u", "__deleted": "false", "__lsn": 70, "__table": "item"}
    deleted = row | {"__op": "d", "__deleted": "true", "v": "", "__lsn": 71}
    values = [json.dumps(one).encode() for one in (row, deleted)]
    batch = only(decode("debezium-flat-json", *values, keys=[key(id=1), key(id=1)]))
    assert batch.source == SourceTable("shop", "inv", "item")
    assert batch.columns.to_pylist() == [{"id": 1, "v": "x"}, {"id": 1, "v": None}]
    assert list(batch.types) == ["id", "v"]
    assert batch.position.tolist() == [70, 71]


def test_rows_in_the_wrapper_of_the_converter_have_its_types() -> None:
    fields = [{"type": "int32", "field": "id"}, {"type": "int32", "field": "d", "name": DATE}]
    schema = {"type": "struct", "fields": fields}
    value = json.dumps({"schema": schema, "payload": {"id": 1, "d": 20255}}).encode()
    batch = only(decode("json", value))
    assert [str(type_) for type_ in batch.types.values()] == ["INT", "DATE"]


DATE = "io.debezium.time.Date"


def test_to_string_makes_every_column_text() -> None:
    settings = FormatSettings(frozenset({"to-string"}))
    value = b'{"id":1,"f":1.50,"b":true,"o":{"k":[1]}}'
    decoded = load_data_format("json", settings).decode(chunk([value]), {}, {})
    batch = only(decoded)
    assert {str(type_) for type_ in batch.types.values()} == {"STRING"}
    assert batch.columns.to_pylist() == [{"id": "1", "f": "1.50", "b": "true", "o": '{"k":[1]}'}]


def test_places_in_the_binary_log_of_a_transaction_distinguish_its_rows() -> None:
    place = {"position": "mysql-bin.000003:100"}
    batch = only(
        decode(
            "maxwell-json",
            maxwell("insert", {"id": 1}, xoffset=0, **place),
            maxwell("insert", {"id": 2}, xoffset=1, **place),
            maxwell("insert", {"id": 3}, commit=True, **place),
            maxwell("bootstrap-insert", {"id": 4}),
        )
    )
    first = (3 << 32 | 100) << 12
    assert batch.position.tolist() == [first, first + 1, first + 4095, -1]
    assert batch.snapshot_row.tolist() == [False, False, False, True]


def test_raw_records_are_rows_of_bytes() -> None:
    offsets = np.arange(2, dtype=np.int64)
    records = RecordChunk("a.b", 0, offsets, offsets, [None, b"k"], [b"\xff", None], None)
    batch = only(load_data_format("raw").decode(records, {}, {}))
    assert batch.source == SourceTable(None, "a", "b")
    assert batch.columns.to_pylist() == [
        {"key": None, "value": b"\xff"},
        {"key": b"k", "value": None},
    ]


EMPTY = {
    "json": lambda row: row,
    "debezium-flat-json": lambda row: {"__op": "c", **row},
    "debezium-json": lambda row: {"op": "c", "after": row, "source": {"table": "item"}},
    "maxwell-json": lambda row: json.loads(maxwell("insert", row, primary_key_columns=None)),
    "canal-json": lambda row: json.loads(canal("INSERT", [row], pkNames=None)),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("native", [True, False])
def test_a_row_without_columns_is_rejected_whatever_is_beside_it(name: str, native: bool) -> None:
    decoder = load_data_format(name)
    decoder = decoder if native else in_python(decoder)
    empty, null, other = (
        json.dumps(EMPTY[name](row)).encode() for row in ({}, {"a": None}, {"a": 1})
    )
    for others in ([], [other], [null, other]):
        decoded = decoder.decode(chunk([empty, *others], topic=TOPIC), {}, {})
        assert [(bad.offset, bad.reason) for bad in decoded.rejected] == [(0, "empty-row")]
        assert [batch.columns.num_rows for batch in decoded.batches] == [len(others)][: len(others)]


@pytest.mark.parametrize("native", [True, False])
def test_a_table_that_is_created_again_has_the_types_and_columns_of_its_new_values(
    native: bool,
) -> None:
    decoder = load_data_format("json")
    decoder = decoder if native else in_python(decoder)
    old = {"id": DataType("BIGINT").not_null(), "v": DataType("STRING"), "old": DataType("STRING")}
    first = [b'{"id":1,"v":"x","old":"y"}'] * 3
    decoder.decode(chunk(first, [b'{"id":1}'] * 3, topic=TOPIC), {}, {})
    source = SourceTable("shop", "inv", "item")
    decoder.decode(chunk(first, [b'{"id":1}'] * 3, topic=TOPIC), {source: old}, {})
    values = [b'{"id":2,"v":5}', None]
    decoded = decoder.decode(chunk(values, [b'{"id":2}', b'{"id":3}'], topic=TOPIC), {}, {})
    types = {name: kind for batch in decoded.batches for name, kind in batch.types.items()}
    assert types == {"id": DataType("BIGINT"), "v": DataType("BIGINT")}
