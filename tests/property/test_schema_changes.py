"""Schemas stay sound under any sequence of changes, and come back from their files."""

from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec.data_types import DataType, max_field_id
from ingestd.paimon.spec.schema import encode_schema, new_schema, parse_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    UpdateColumnType,
)
from tests.support.typed_cells import column_types

NAMES = st.sampled_from(["a", "b", "c", "d", "ü", "with space"])
CHANGES = st.one_of(
    st.builds(AddColumn, NAMES, column_types(), st.none() | st.text(max_size=5)),
    st.builds(UpdateColumnType, NAMES, column_types()),
    st.builds(RenameColumn, NAMES, NAMES),
    st.builds(DropColumn, NAMES),
)


@given(st.dictionaries(NAMES, column_types(), min_size=1), st.lists(CHANGES, max_size=8))
def test_any_history_of_changes_keeps_ids_unique_and_files_readable(
    columns: dict[str, DataType], changes: list[SchemaChange]
) -> None:
    schema = new_schema(list(columns.items()), (), (), {}, 0)
    given_ids = {field.id for field in schema.fields}
    for change in changes:
        try:
            changed = apply_changes(schema, [change], schema.time_millis + 1)
        except SchemaConflictError:
            continue
        assert changed.id == schema.id + 1
        assert changed.highest_field_id >= max(
            schema.highest_field_id, max_field_id(changed.fields)
        )
        fresh = {field.id for field in changed.fields} - {field.id for field in schema.fields}
        assert not fresh & given_ids
        given_ids |= fresh
        assert parse_schema(encode_schema(changed), "s") == changed
        schema = changed
