"""What Maxwell's messages about statements say; rows are among the samples."""

import json

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, SourceTable, load_data_format
from ingestd.paimon.spec.data_types import RowKind
from tests.support.registered import chunk_of

COLUMNS = {"columns": [{"type": "int", "name": "id"}, {"type": "int", "name": "b"}]}
SQL = "ALTER TABLE item CHANGE a b INT, DROP COLUMN c"


def decode(*messages: dict[str, object]) -> Decoded:
    head = {"database": "inv", "table": "item"}
    values = [json.dumps({**head, **message}).encode() for message in messages]
    return load_data_format("maxwell-json", FormatSettings()).decode(chunk_of(values), {}, {})


def altered(**fields: object) -> dict[str, object]:
    return {"type": "table-alter", "sql": SQL, "def": COLUMNS, "ts": 1_750_000_000_000, **fields}


def test_an_alter_changes_columns_that_the_table_after_it_agrees_with() -> None:
    decoded = decode(altered())
    [event] = decoded.schema_changes
    assert event.source == SourceTable("inv", None, "item")
    assert (event.position, event.columns) == (None, (("a", "b"), ("c", None)))
    assert (decoded.control, decoded.rejected) == (1, [])


def test_a_statement_is_after_the_rows_before_it_in_the_log() -> None:
    row = {"type": "insert", "data": {"id": 1, "a": 2}, "commit": True, "xoffset": 0}
    later = {**row, "data": {"id": 1, "b": 2}, "position": "bin.000004:120"}
    decoded = decode(
        {**row, "position": "bin.000004:80"}, altered(position="bin.000004:100"), later
    )
    [batch] = decoded.batches
    [event] = decoded.schema_changes
    assert event.position is not None
    assert batch.position[0] < event.position < batch.position[1]


@pytest.mark.parametrize("definition", [{}, None, {"columns": [{"name": "a"}, {"name": "c"}]}])
def test_without_a_table_that_agrees_nothing_is_proven(definition: object) -> None:
    decoded = decode(altered(**{"def": definition}))
    assert (decoded.schema_changes, decoded.control) == ([], 1)


def test_a_statement_that_cannot_be_read_is_refused() -> None:
    [dead_letter] = decode(altered(sql=5)).rejected
    assert dead_letter.reason == "invalid-ddl"


def test_an_update_of_a_key_whose_name_is_escaped_deletes_the_old_row() -> None:
    row = {"type": "update", "primary_key_columns": ["né"], "data": {"né": 2}, "old": {"né": 1}}
    [batch] = decode(row).batches
    assert batch.columns.column("né").to_pylist() == [1, 2]
    assert batch.row_kind.tolist() == [RowKind.DELETE, RowKind.UPDATE_AFTER]
