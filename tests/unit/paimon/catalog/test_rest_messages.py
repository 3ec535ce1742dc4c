import json
from dataclasses import replace

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.catalog.rest_messages import (
    change_document,
    commit_document,
    rollback_document,
    schema_document,
    schema_of,
)
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    Move,
    MoveType,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ingestd.paimon.spec.snapshot import CommitKind, Snapshot
from ingestd.paimon.table.metadata.catalog_commit import PartitionChange

SCHEMA = new_schema(
    [("id", parse_type("INT")), ("r", parse_type({"type": "ROW", "fields": [
        {"id": 0, "name": "x", "type": "INT"}]}))],
    ["id"], [], {"bucket": "1"}, 5, "about",
)  # fmt: skip


def test_a_schema_comes_back_as_it_went_without_its_time() -> None:
    """`updatedAt` is the time of the table, which is another one than that of the schema."""
    told = schema_document(SCHEMA)
    told["options"] = {**told["options"], "path": "/elsewhere"}
    answer = {"schemaId": 0, "schema": told, "updatedAt": 5}
    assert schema_of(json.loads(json.dumps(answer)), "t") == replace(SCHEMA, time_millis=0)


def _deep() -> object:
    made: object = "INT"
    for _ in range(700):
        made = {"type": "ARRAY", "element": made}
    return made


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"schemaId": 0, "schema": {"fields": [{"id": 1}]}},
        {"schemaId": 0, "schema": [1]},
        {"schemaId": 0, "schema": {"fields": 5}},
        {"schemaId": 0, "schema": {"fields": [5]}},
        {"schemaId": 0, "schema": {"fields": [], "options": [1]}},
        {"schemaId": 0, "schema": {"fields": [{"id": 1, "name": "a", "type": _deep()}]}},
    ],
    ids=range(7),
)
def test_an_answer_without_a_schema_is_named(answer: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        schema_of(answer, "table db.t")


@pytest.mark.parametrize(
    ("change", "document"),
    [
        (
            AddColumn(("r", "y"), parse_type("INT"), "c", Move(MoveType.AFTER, "x")),
            {"action": "addColumn", "fieldNames": ["r", "y"], "dataType": "INT", "comment": "c",
             "move": {"fieldName": "y", "referenceFieldName": "x", "type": "AFTER"}},
        ),
        (
            UpdateColumnType("a", parse_type("BIGINT"), keep_nullability=True),
            {"action": "updateColumnType", "fieldNames": ["a"], "newDataType": "BIGINT",
             "keepNullability": True},
        ),
        (RenameColumn("a", "b"), {"action": "renameColumn", "fieldNames": ["a"], "newName": "b"}),
        (DropColumn("a"), {"action": "dropColumn", "fieldNames": ["a"]}),
        (
            UpdateColumnNullability("a", nullable=True),
            {"action": "updateColumnNullability", "fieldNames": ["a"], "newNullability": True},
        ),
        (
            UpdateColumnComment("a", None),
            {"action": "updateColumnComment", "fieldNames": ["a"], "newComment": None},
        ),
        (
            UpdateColumnDefaultValue("a", "1"),
            {"action": "updateColumnDefaultValue", "fieldNames": ["a"], "newDefaultValue": "1"},
        ),
        (
            UpdateColumnPosition("a", Move(MoveType.FIRST)),
            {"action": "updateColumnPosition",
             "move": {"fieldName": "a", "referenceFieldName": None, "type": "FIRST"}},
        ),
        (SetOption("k", "v"), {"action": "setOption", "key": "k", "value": "v"}),
        (RemoveOption("k"), {"action": "removeOption", "key": "k"}),
        (UpdateComment("c"), {"action": "updateComment", "comment": "c"}),
        (DropPrimaryKey(), {"action": "dropPrimaryKey"}),
    ],
)  # fmt: skip
def test_every_change_has_its_document(change: SchemaChange, document: object) -> None:
    assert change_document(change) == document


def test_a_commit_carries_the_snapshot_and_what_partitions_gain() -> None:
    snapshot = Snapshot(
        id=3, schema_id=0, base_manifest_list="b", delta_manifest_list="d", commit_user="u",
        commit_identifier=9, commit_kind=CommitKind.APPEND, time_millis=7,
        properties={"offsets": "x"},
    )  # fmt: skip
    found = commit_document("uuid", snapshot, [PartitionChange({"dt": "a"}, 2, 100, 1, 7, 4)])
    assert found["tableId"] == "uuid"
    assert found["snapshot"]["commitIdentifier"] == 9
    assert found["snapshot"]["properties"] == {"offsets": "x"}
    assert found["statistics"] == [
        {"spec": {"dt": "a"}, "recordCount": 2, "fileSizeInBytes": 100, "fileCount": 1,
         "lastFileCreationTime": 7, "totalBuckets": 4}
    ]  # fmt: skip


def test_a_rollback_names_a_snapshot_or_its_tag() -> None:
    assert rollback_document(3, None) == {"instant": {"type": "snapshot", "snapshotId": 3}}
    assert rollback_document(3, "a") == {"instant": {"type": "tag", "tagName": "a"}}
