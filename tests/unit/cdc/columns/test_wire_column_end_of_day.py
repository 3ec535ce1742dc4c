"""24:00:00, which databases know and TIME does not: a dead letter, or a number by declaration."""

from typing import Any

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, SourceTable, load_data_format
from ingestd.paimon.spec.data_types import parse_type
from tests.support import registered
from tests.support.change_events import TABLE, chunk, event, field, raw_event, wrapped
from tests.support.decoded import both_decoders

DAY = 86_400_000
JSON_TIMES = ["io.debezium.time.Time", "org.apache.kafka.connect.data.Time"]
AVRO_TIMES = [
    {"type": "int", "connect.name": "io.debezium.time.Time"},
    {"type": "int", "logicalType": "time-millis"},
]


def _types(table: SourceTable, declared: str | None) -> dict[SourceTable, Any]:
    return {} if declared is None else {table: {"v": parse_type(declared)}}


def from_json(decoder: Any, name: str, declared: str | None, *values: int) -> Decoded:
    columns = [field("id", "int32"), field("v", "int32") | {"name": name}]
    messages: list[bytes | None] = [
        wrapped(event("c", {"id": n, "v": value}), columns) for n, value in enumerate(values)
    ]
    found: Decoded = decoder.decode(chunk(messages), {}, _types(TABLE, declared))
    return found


def from_avro(kind: Any, declared: str | None, *values: int) -> Decoded:
    registry = registered.Registered()
    schema = registered.envelope([{"name": "id", "type": "int"}, {"name": "v", "type": kind}])
    changes = (registered.event("c", {"id": n, "v": value}) for n, value in enumerate(values))
    messages = registry.avro(schema, *changes)
    decoder = load_data_format("debezium-avro", FormatSettings(schemas=registry))
    item = SourceTable("inv", "public", "item")
    return decoder.decode(registered.chunk_of(messages), {}, _types(item, declared))


def column(decoded: Decoded) -> tuple[str, list[Any]]:
    [batch] = decoded.batches
    return str(batch.types["v"]), batch.columns.column("v").to_pylist()


@pytest.mark.parametrize("declared", [None, "TIME(3)"])
@pytest.mark.parametrize("name", JSON_TIMES)
@pytest.mark.parametrize("decoder", both_decoders(), ids=["native", "python"])
def test_the_end_of_a_day_is_no_time(decoder: Any, name: str, declared: str | None) -> None:
    decoded = from_json(decoder, name, declared, 0, DAY, DAY - 1)
    [bad] = decoded.rejected
    assert (bad.offset, bad.stage, bad.reason) == (1, "cast", "out-of-range")
    assert "declare the column as BIGINT" in bad.message
    assert [str(value) for value in column(decoded)[1]] == ["00:00:00", "23:59:59.999000"]


@pytest.mark.parametrize("declared", ["INT", "BIGINT"])
@pytest.mark.parametrize("name", JSON_TIMES)
@pytest.mark.parametrize("decoder", both_decoders(), ids=["native", "python"])
def test_a_declared_number_takes_it(decoder: Any, name: str, declared: str) -> None:
    decoded = from_json(decoder, name, declared, 0, DAY, DAY - 1, -DAY)
    assert decoded.rejected == []
    assert column(decoded) == (declared, [0, DAY, DAY - 1, -DAY])


@pytest.mark.parametrize("kind", AVRO_TIMES)
def test_avro_takes_it_the_same_way(kind: Any) -> None:
    decoded = from_avro(kind, None, 0, DAY)
    [bad] = decoded.rejected
    assert (bad.offset, bad.stage, bad.reason) == (1, "cast", "out-of-range")
    assert "declare the column as BIGINT" in bad.message
    for declared in ("INT", "BIGINT"):
        decoded = from_avro(kind, declared, 0, DAY)
        assert decoded.rejected == []
        assert column(decoded) == (declared, [0, DAY])


def test_a_text_of_it_is_kept_as_text_and_no_time() -> None:
    messages: list[bytes | None] = [raw_event('{"v": "24:00:00"}')]
    decoder = load_data_format("debezium-json")
    decoded = decoder.decode(chunk(messages), {}, _types(TABLE, "TIME(3)"))
    assert "STRING if its values are text" in decoded.rejected[0].message
    decoded = decoder.decode(chunk(messages), {}, _types(TABLE, "STRING"))
    assert column(decoded) == ("STRING", ["24:00:00"])
