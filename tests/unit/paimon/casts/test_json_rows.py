"""JSON objects, one per line, as rows of their types."""

from typing import Any

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.json_rows import json_rows
from ingestd.paimon.spec.data_types import DataField, parse_type

TYPES: dict[str, Any] = {
    "k": "INT", "v": "STRING", "b": "BOOLEAN", "a": {"type": "ARRAY", "element": "BIGINT"},
    "m": {"type": "MAP", "key": "INT", "value": "STRING"},
    "r": {"type": "ROW", "fields": [{"id": 9, "name": "x", "type": "DOUBLE"}]},
}  # fmt: skip
FIELDS = tuple(DataField(i, name, parse_type(t)) for i, (name, t) in enumerate(TYPES.items()))


def test_members_are_converted_by_name() -> None:
    line = '{"v":"a","k":"1","b":true,"a":["5",6,null],"m":{"1":"x","2":null},"r":{"x":"NaN"}}'
    first, second = json_rows([line, '{"k":null,"z":3}'], FIELDS, {}).to_pylist()
    assert (first["k"], first["v"], first["b"], first["a"]) == (1, "a", True, [5, 6, None])
    assert first["m"] == [(1, "x"), (2, None)]
    assert str(first["r"]["x"]) == "nan"
    assert second == dict.fromkeys(TYPES)


@pytest.mark.parametrize(
    "line", ['{"k":"one"}', '{"a":[1,"b"]}', '{"a":{}}', '{"r":7}', '{"k":1.5}', "[]", "nothing"]
)
def test_an_invalid_value_is_an_error_or_null(line: str) -> None:
    with pytest.raises((UnsupportedError, ValueError)):
        json_rows([line], FIELDS, {})
    if line != "nothing":
        (row,) = json_rows([line], FIELDS, {"json.ignore-parse-errors": "true"}).to_pylist()
        assert not any(isinstance(value, int | float | str) for value in row.values())
