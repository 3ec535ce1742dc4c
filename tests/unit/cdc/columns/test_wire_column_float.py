"""Floating-point numbers of messages in columns that are declared as FLOAT or STRING."""

import pytest

from ingestd.paimon.spec.data_types import parse_type
from tests.support.change_events import TABLE, chunk, event, field, raw_event, wrapped
from tests.support.decoded import both_decoders

COLUMNS = [field("id", "int32"), field("v", "double")]


@pytest.mark.parametrize("kind", ["double", "float"])
def test_text_of_a_number_is_that_of_java_with_and_without_a_schema(kind: str) -> None:
    numbers = ["1.0", "1.0E20", "-0.0", "1.0E-10", '"NaN"', '"Infinity"', "null"]
    declared = {TABLE: {"v": parse_type("STRING")}}
    columns = [field("id", "int32"), field("v", kind)]
    values = [raw_event(f'{{"id":1,"v":{number}}}') for number in numbers]
    for wrap in (True, False):
        messages = [wrapped(value, columns) if wrap else value for value in values]
        for decoder in both_decoders():
            [batch] = decoder.decode(chunk(messages), {}, declared).batches
            texts = batch.columns.column("v").to_pylist()
            assert texts == [*(number.strip('"') for number in numbers[:-1]), None]


def test_a_double_out_of_range_of_a_float_is_rejected() -> None:
    messages: list[bytes | None] = [
        wrapped(event("c", {"id": n, "v": value}), COLUMNS)
        for n, value in enumerate([1.5, 1e300, -1e39])
    ]
    for decoder in both_decoders():
        found = decoder.decode(chunk(messages), {}, {TABLE: {"v": parse_type("FLOAT")}})
        [batch] = found.batches
        assert batch.columns.column("v").to_pylist() == [1.5]
        assert [record.offset for record in found.rejected] == [1, 2]
        assert {record.reason for record in found.rejected} == {"out-of-range"}
