"""What Canal's messages about statements say; rows are among the samples."""

import json

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, SourceTable, load_data_format
from tests.support.registered import chunk_of


def decode(**fields: object) -> Decoded:
    head = {"type": "ALTER", "isDdl": True, "database": "inv", "table": "item", "data": None}
    message = json.dumps({**head, **fields}).encode()
    return load_data_format("canal-json", FormatSettings()).decode(chunk_of([message]), {}, {})


def test_an_alter_reports_columns_and_has_no_place_in_the_log() -> None:
    decoded = decode(sql="ALTER TABLE item CHANGE a b INT, DROP COLUMN c, ADD d INT")
    [event] = decoded.schema_changes
    assert event.source == SourceTable("inv", None, "item")
    assert (event.position, event.columns) == (None, (("a", "b"), ("c", None)))
    assert (decoded.control, decoded.rejected, decoded.batches) == (1, [], [])


@pytest.mark.parametrize(
    "fields",
    [
        {"sql": "ALTER TABLE item ADD c INT"},
        {"sql": None},
        {"sql": "ALTER TABLE item DROP c", "type": "QUERY"},
        {"sql": "RENAME TABLE a TO b", "type": "RENAME"},
    ],
)
def test_other_statements_prove_nothing(fields: dict[str, object]) -> None:
    decoded = decode(**fields)
    assert (decoded.schema_changes, decoded.control) == ([], 1)


def test_a_statement_that_is_no_text_is_refused() -> None:
    [dead_letter] = decode(sql={"a": 1}).rejected
    assert dead_letter.reason == "invalid-ddl"
