from dataclasses import replace

from ingestd.daemon.recent_history import SchemaLog
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.table_schema import TableSchema


def schema(number: int, *columns: tuple[int, str, str]) -> TableSchema:
    fields = tuple(DataField(id_, name, parse_type(kind)) for id_, name, kind in columns)
    return TableSchema(number, fields, len(fields))


FIRST = schema(0, (0, "id", "BIGINT"), (1, "name", "STRING"), (2, "old", "INT"))


def test_a_new_table_is_a_change_and_one_that_was_there_is_none() -> None:
    log = SchemaLog()
    log.opened({"db.old": FIRST}, 1.0)
    log.committed("db.old", FIRST, 2.0)
    assert log.document() == []
    log.committed("db.new", FIRST, 3.0)
    assert log.document() == [
        {"at": 3.0, "table": "db.new", "schema_id": 0, "what": "new, 3 columns"}
    ]


def test_columns_are_followed_by_their_ids() -> None:
    log = SchemaLog()
    log.opened({"db.t": FIRST}, 1.0)
    later = schema(3, (0, "id", "BIGINT"), (1, "title", "STRING"), (3, "tax", "DECIMAL(10, 2)"))
    log.committed("db.t", later, 2.0)
    tax = replace(later.fields[2], type=parse_type("DECIMAL(12, 2)"))
    wider = replace(later, id=4, fields=(*later.fields[:2], tax))
    log.committed("db.t", wider, 3.0)
    assert [one["what"] for one in log.document()] == [
        "tax from DECIMAL(10, 2) to DECIMAL(12, 2)",
        "renamed name to title; added tax DECIMAL(10, 2); dropped old",
    ]
    assert log.schema_id("db.t") == 4
    assert log.schema_id("db.other") is None


def test_what_somebody_else_changed_shows_when_the_next_run_opens_the_table() -> None:
    log = SchemaLog()
    log.opened({"db.t": FIRST}, 1.0)
    log.opened({"db.t": replace(FIRST, id=1, options={"bucket": "4"})}, 2.0)
    assert [(one["schema_id"], one["what"]) for one in log.document()] == [
        (1, "options or comments")
    ]


def test_it_keeps_the_newest() -> None:
    log = SchemaLog()
    for number in range(50):
        log.committed("db.t", replace(FIRST, id=number), float(number))
    assert log.document()[0]["at"] == 49.0
    assert len(log.document()) == 20
