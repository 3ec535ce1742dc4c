"""Whether a record is rejected does not depend on the other records of its chunk."""

import json
from typing import Any

import pytest

from ingestd.cdc.base import DataFormat
from tests.support.change_events import chunk, field, raw_event, wrapped
from tests.support.decoded import both_decoders

DECIMAL = "org.apache.kafka.connect.data.Decimal"
TIME = "io.debezium.time."
CONNECT: dict[str, Any] = {
    "int8": ("int8", None, {}),
    "int64": ("int64", None, {}),
    "float": ("float", None, {}),
    "double": ("double", None, {}),
    "boolean": ("boolean", None, {}),
    "string": ("string", None, {}),
    "bytes": ("bytes", None, {}),
    "decimal": ("bytes", DECIMAL, {"parameters": {"scale": "2"}}),
    "long decimal": (
        "bytes", DECIMAL, {"parameters": {"scale": "2", "connect.decimal.precision": "50"}}
    ),
    "any scale": ("struct", "io.debezium.data.VariableScaleDecimal", {"fields": []}),
    "bits": ("bytes", "io.debezium.data.Bits", {"parameters": {"length": "12"}}),
    "date": ("int32", f"{TIME}Date", {}),
    "time": ("int32", f"{TIME}Time", {}),
    "timestamp": ("int64", f"{TIME}MicroTimestamp", {}),
    "zoned": ("string", f"{TIME}ZonedTimestamp", {}),
    "iso date": ("string", f"{TIME}IsoDate", {}),
    "iso timestamp": ("string", f"{TIME}IsoTimestamp", {}),
    "array": ("array", None, {"items": {"type": "int32", "optional": True}}),
    "map": ("map", None, {"keys": {"type": "string"}, "values": {"type": "int64"}}),
}  # fmt: skip
MYSQL = [
    "tinyint(1)", "int", "float", "double", "decimal(60,2)", "date", "time(3)", "datetime(6)",
    "timestamp", "year", "varchar(3)", "blob", "bit(1)", "bit(10)", "enum('a','1')",
    "set('a','1')", "json", "point",
]  # fmt: skip
TEXTS = [
    "", "1", "1.5", "1e5", "-0", "NaN", "nan", "AQ==", "/w8=", "MTIz", "1234", "true", "null", "a",
    "99999999999999999999", "1" + "0" * 60, "0x10", "é", "\x00", "10:00", "24:00:00", "infinity",
    "0000-00-00", "2024-00-00", "2024-02-29", "2024-02-29T10", "2024-02-29T10Z", "2024-02-30",
    "2024-02-29 10:11:12", "2024-02-29T24:00:00Z", "2024-02-29T10:11:12.123456789Z",
    "10000-01-01T00:00:00Z", "+10000-01-01", "-0044-03-15", "2024-02-29Z",
]  # fmt: skip
OTHERS = [
    "0", "-1", "1.0", "1e2", "1e39", "1e400", "128", "9223372036854775808", "86400000", "true",
    "null", "[]", "[1]", '["a"]', "[null]", "{}", '{"a":1}', '{"a":"x"}', '{"scale":1}',
    '{"scale":1,"value":"AQ=="}',
]  # fmt: skip
VALUES = [*map(json.dumps, TEXTS), *OTHERS]


def refuse_the_same(name: str, messages: list[bytes]) -> None:
    """Compare the records that are rejected alone, all together, and among valid ones."""
    for decoder in both_decoders(name):

        def rejected(messages: list[bytes], decoder: DataFormat = decoder) -> list[int]:
            found = decoder.decode(chunk(messages), {}, {}).rejected
            return sorted(record.offset for record in found)

        alone = [at for at, message in enumerate(messages) if rejected([message])]
        assert rejected(messages) == alone
        assert rejected([one for at, one in enumerate(messages) if at not in alone]) == []


@pytest.mark.parametrize("kind", CONNECT)
def test_values_with_a_schema_do_not_depend_on_others(kind: str) -> None:
    physical, semantic, more = CONNECT[kind]
    columns = [field("id", "int32"), field("v", physical, semantic, **more)]
    events = [raw_event(f'{{"id":{at},"v":{value}}}') for at, value in enumerate(VALUES)]
    refuse_the_same("debezium-json", [wrapped(event, columns) for event in events])


@pytest.mark.parametrize("kind", MYSQL)
def test_values_of_mysql_do_not_depend_on_others(kind: str) -> None:
    head: dict[str, Any] = {"type": "INSERT", "database": "d", "table": "t", "pkNames": ["id"]}
    head |= {"isDdl": False, "mysqlType": {"id": "int", "v": kind}}
    messages = [
        json.dumps({**head, "data": [{"id": str(at), "v": "@"}]}).replace('"@"', value).encode()
        for at, value in enumerate(VALUES)
    ]
    refuse_the_same("canal-json", messages)
