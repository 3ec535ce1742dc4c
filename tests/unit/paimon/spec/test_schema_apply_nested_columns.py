"""Paths to columns inside columns."""

from dataclasses import replace

import pytest

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec.data_types import DataField, DataType, parse_type
from ingestd.paimon.spec.schema_apply import change_siblings, change_type

ROW = {"type": "ROW", "fields": [{"id": 5, "name": "x", "type": "INT"}]}
FIELDS = (
    DataField(0, "r", parse_type(ROW)),
    DataField(1, "l", parse_type({"type": "ARRAY", "element": {"type": "ARRAY", "element": ROW}})),
    DataField(2, "m", parse_type({"type": "MAP", "key": "STRING", "value": ROW})),
    DataField(3, "s", parse_type({"type": "MULTISET", "element": "STRING"})),
)
PATHS = [("r", "x"), ("l", "element", "element", "x"), ("m", "value", "x")]


def bigger(t: DataType) -> DataType:
    return replace(t, root="BIGINT")


@pytest.mark.parametrize("path", PATHS)
def test_a_path_leads_through_rows_arrays_and_maps(path: tuple[str, ...]) -> None:
    changed = change_type(FIELDS, path, bigger)
    assert sum("BIGINT" in str(field.type) for field in changed) == 1
    emptied = change_siblings(FIELDS, path, lambda fields: ())
    assert sum("INT" in str(field.type) for field in emptied) == 2


def test_a_path_may_end_in_what_is_in_a_collection() -> None:
    changed = change_type(FIELDS, ("l", "element"), lambda t: t.not_null())
    assert str(changed[1].type) == "ARRAY<ARRAY<ROW<`x` INT>> NOT NULL>"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("z", "x"), "unknown column 'z'"), (("l", "x"), "'element' is what leads into it"),
        (("m", "key"), "'value' is what leads into it"), (("s", "element"), "nothing is inside it"),
        (("r", "x", "y"), "nothing is inside it"), (("r", "y"), "unknown column 'y'"),
    ],
)  # fmt: skip
def test_a_path_that_leads_nowhere_is_refused(path: tuple[str, ...], message: str) -> None:
    with pytest.raises(SchemaConflictError, match=message):
        change_type(FIELDS, path, bigger)
