"""Columns whose names JSON has to escape are columns like others."""

import json
from typing import Any

import pytest

from ingestd.cdc.base import DataFormat, load_data_format
from ingestd.paimon.spec.data_types import DataType
from tests.support.change_events import TABLE, chunk, event, field, key, wrapped, wrapped_key
from tests.support.decoded import both_decoders, outcome

ODD = ['a"b', "c\\d", "e\nf", "\x00g", "h\x7f22", 'h"', '"', "\\"]
NAME = ODD[0]


def rows_of(decoder: DataFormat, values: list[bytes | None], keys: Any = None) -> list[Any]:
    decoded = decoder.decode(chunk(values, keys), {}, {})
    assert decoded.rejected == []
    return [row for batch in decoded.batches for row in batch.columns.to_pylist()]


@pytest.mark.parametrize("decoder", both_decoders(), ids=["native", "python"])
@pytest.mark.parametrize("schema", [False, True], ids=["bare", "with schemas"])
def test_odd_names_arrive(decoder: DataFormat, schema: bool) -> None:
    rows = [{"id": n, **{name: f"{name}{n}" for name in ODD}} for n in range(5)]
    columns = [field("id", "int64"), *(field(name, "string") for name in ODD)]
    values: list[bytes | None] = [event("c", row) for row in rows]
    keys = [key(id=n) for n in range(5)]
    if schema:
        values = [wrapped(event("c", row), columns) for row in rows]
        keys = [wrapped_key(key, columns[:1]) for key in keys]
    assert rows_of(decoder, values, keys) == rows
    assert rows_of(decoder, values, keys) == rows


def test_native_and_python_decoders_agree_on_odd_names() -> None:
    rows = [{NAME: n, "\\": {"x": n}, "plain": None if n % 2 else "p"} for n in range(20)]
    values: list[bytes | None] = [event("c", row) for row in rows]
    values += [event("u", {NAME: 30, "\\": 1}, before=rows[0]), event("d", before=rows[1])]
    keys = [key(**{NAME: row[NAME]}) for row in rows]
    chunks = [chunk(values, [*keys, key(**{NAME: 30}), keys[1]])] * 2
    native, pure = both_decoders()
    assert outcome(native, chunks) == outcome(pure, chunks)


@pytest.mark.parametrize("decoder", both_decoders(), ids=["native", "python"])
def test_an_odd_key_is_a_key(decoder: DataFormat) -> None:
    values: list[bytes | None] = [
        event("c", {NAME: 1, "v": 1}),
        event("u", {NAME: 2, "v": 2}, before={NAME: 1, "v": 1}),
        event("d", before={NAME: 2}),
    ]
    keys = [key(**{NAME: number}) for number in (1, 2, 2)]
    [batch] = decoder.decode(chunk(values, keys), {}, {}).batches
    assert batch.primary_keys == (NAME,)
    assert batch.row_kind.tolist() == [0, 3, 2, 3]
    assert batch.columns.column(NAME).to_pylist() == [1, 1, 2, 2]


@pytest.mark.parametrize("decoder", both_decoders(), ids=["native", "python"])
def test_a_bad_value_names_the_odd_column_and_neighbours_arrive(decoder: DataFormat) -> None:
    values: list[bytes | None] = [event("c", {"id": n, NAME: n}) for n in range(3)]
    values[1] = event("c", {"id": 1, NAME: "x"})
    declared = {TABLE: {NAME: DataType("INT")}}
    decoded = decoder.decode(chunk(values, [key(id=n) for n in range(3)]), {}, declared)
    [bad] = decoded.rejected
    assert (bad.offset, bad.stage, bad.reason) == (1, "cast", "wrong-type")
    assert bad.message.startswith(f"column {NAME}: ")
    [batch] = decoded.batches
    assert batch.columns.column(NAME).to_pylist() == [0, 2]


def test_an_odd_field_beside_the_schema_is_named() -> None:
    columns = [field("id", "int64"), field(NAME, "string")]
    value = wrapped(event("c", {"id": 1, NAME: "x", 'z"': 1}), columns)
    decoded = load_data_format("debezium-json").decode(chunk([value]), {}, {})
    [bad] = decoded.rejected
    assert bad.reason == "unknown-column"
    assert repr('z"') in bad.message


def test_a_column_gets_its_odd_name_later() -> None:
    decoder = load_data_format("debezium-json")
    assert rows_of(decoder, [event("c", {"id": 1})]) == [{"id": 1}]
    rows = rows_of(decoder, [event("c", {"id": 1}), event("c", {"id": 2, NAME: 3})])
    assert rows == [{"id": 1, NAME: None}, {"id": 2, NAME: 3}]


_CANAL = {"database": "d", "table": "t", "isDdl": False, "es": 1, "ts": 1, "id": 1}
_SOURCE = {"dbType": "MySQL", "dbName": "d", "tableName": "t"}
_COLUMNS = [{"name": "id", "type": "LONG"}, {"name": NAME, "type": "STRING"}]
_TIME = {"eventTime": 1, "systemTime": 2}
_DMS = {"record-type": "data", "operation": "insert", "schema-name": "s", "table-name": "t"}
_OGG = {"table": "D.T", "op_type": "I", "op_ts": "2020-01-01 00:00:00", "pos": "143"}
ROW = {"id": 1, NAME: "x"}
MESSAGES: dict[str, Any] = {
    "aliyun-json": {
        "schema": {"dataColumn": _COLUMNS, "primaryKey": ["id"], "source": _SOURCE},
        "payload": {
            "before": None, "after": {"dataColumn": ROW}, "op": "INSERT", "sequenceId": "1",
            "timestamp": _TIME,
        },
    },
    "aws-dms-json": {"data": ROW, "metadata": _DMS},
    "canal-json": _CANAL | {
        "type": "INSERT", "pkNames": ["id"], "mysqlType": {"id": "int", NAME: "varchar(5)"},
        "data": [{"id": "1", NAME: "x"}], "old": None,
    },
    "debezium-flat-json": ROW | {"__op": "c", "__table": "t"},
    "json": ROW,
    "maxwell-json": {
        "database": "d", "table": "t", "type": "insert", "ts": 1, "xid": 1, "data": ROW,
        "primary_key_columns": ["id"],
    },
    "ogg-json": _OGG | {"primary_keys": ["id"], "after": ROW},
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_odd_names_arrive_in_every_format(name: str) -> None:
    message = json.dumps(MESSAGES[name]).encode()
    assert rows_of(load_data_format(name), [message]) == [ROW]
