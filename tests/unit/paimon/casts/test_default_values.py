"""Default values instead of nulls."""

from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import SchemaConflictError
from ingestd.paimon.casts.default_values import default_value, with_defaults
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import UpdateColumnDefaultValue
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from tests.support.native_tables import native_table


def _field(t: Any, default: str | None) -> DataField:
    return DataField(0, "c", parse_type(t), default_value=default)


@pytest.mark.parametrize(
    ("t", "text", "expected"),
    [
        ("INT", "5", 5), ("STRING", "'a b'", "a b"), ("STRING", "'", "'"), ("CHAR(3)", "a", "a  "),
        ("BOOLEAN", "yes", True), ("BYTES", "ab", b"ab"), ("DOUBLE NOT NULL", "1e3", 1000.0),
        ({"type": "ARRAY", "element": "INT"}, "[1, null]", [1, None]),
        ({"type": "MAP", "key": "STRING", "value": "INT"}, "{a -> 1}", [("a", 1)]),
        ({"type": "MAP", "key": "STRING", "value": "INT"}, "MAP(\"a\", 1)", [("a", 1)]),
        ({"type": "ARRAY", "element": {"type": "ARRAY", "element": "STRING"}},
         "[[a, b], [c]]", [["a", "b"], ["c"]]),
        ({"type": "ROW", "fields": [{"id": 1, "name": "x", "type": "INT"}]}, "{7}", {"x": 7}),
    ],
)  # fmt: skip
def test_texts_become_values_of_the_type(t: Any, text: str, expected: object) -> None:
    field = _field(t, text)
    assert default_value(field).to_pylist() == [expected]
    cells = column_of([None, None], field.type.as_nullable())
    filled = with_defaults(pa.table({"c": cells}), [field])
    assert filled.column("c").to_pylist() == [expected, expected]


def test_only_nulls_are_replaced() -> None:
    rows = pa.table({"c": pa.array([1, None], pa.int32()), "d": pa.array([None, 2], pa.int32())})
    found = with_defaults(rows, [_field("INT", "9"), DataField(1, "d", parse_type("INT"))])
    assert found.to_pydict() == {"c": [1, 9], "d": [None, 2]}


def test_a_text_that_is_no_value_is_refused_before_it_is_published() -> None:
    io = MemoryFileIO()
    table = native_table("/w", [("c", "INT")], io=io)
    schema = apply_changes(table.schema, [UpdateColumnDefaultValue("c", "five")], 1)
    with pytest.raises(SchemaConflictError, match=r"column 'c'.*'five'"):
        publish_schema(io, table.paths, schema)
