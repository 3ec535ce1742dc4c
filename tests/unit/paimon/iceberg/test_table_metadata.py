"""The metadata document: its snapshots, tags, schemas, and what expires."""

import json
from dataclasses import replace
from typing import Any

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.iceberg.table_metadata import (
    NewSnapshot,
    encode_metadata,
    expired,
    first_document,
    is_made_from,
    next_document,
    next_row_id,
    parse_metadata,
    with_tags,
)
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import TableSchema, new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.spec.snapshot import CommitKind, Snapshot

HOUR = 3_600_000


def schema(**options: str) -> TableSchema:
    columns = [("id", parse_type("INT")), ("dt", parse_type("STRING"))]
    return new_schema(columns, (), ("dt",), {"bucket": "-1", **options}, 0)


def snapshot(number: int, time_millis: int = 0) -> Snapshot:
    return Snapshot(
        id=number, schema_id=0, base_manifest_list="b", delta_manifest_list=f"d{number}",
        commit_user="u", commit_identifier=1, commit_kind=CommitKind.APPEND,
        time_millis=time_millis,
    )  # fmt: skip


def new(number: int, time_millis: int = 0, *, removes: bool = False) -> NewSnapshot:
    return NewSnapshot(snapshot(number, time_millis), f"/m/l{number}", removes)


def grown(count: int, table: TableSchema, now_ms: int = 0, earliest: int = 1) -> Any:
    """The document after snapshots 1 to `count`, one an hour."""
    document = first_document("/t", new(1), [table], {}, now_ms, None)
    for number in range(2, count + 1):
        one = new(number, number * HOUR)
        document = next_document(document, one, [table], earliest, now_ms)
    return document


def kept(document: Any) -> list[int]:
    return [snapshot["snapshot-id"] for snapshot in document["snapshots"]]


def test_a_document_names_its_partitions_and_its_snapshot() -> None:
    document = first_document("/t", new(3), [schema()], {"t": 3, "other": 2, "main": 3}, 9, None)
    assert document["partition-specs"] == [{"spec-id": 0, "fields": [
        {"name": "dt", "transform": "identity", "source-id": 1, "field-id": 1000}]}]  # fmt: skip
    assert (document["last-partition-id"], document["last-column-id"]) == (1000, 1)
    assert (document["current-snapshot-id"], document["last-sequence-number"]) == (3, 3)
    assert document["last-updated-ms"] == 9
    assert list(document["refs"]) == ["t"], "a tag without a snapshot breaks every reader"
    assert document["refs"]["t"]["type"] == "tag"
    again = first_document("/t", new(3), [schema()], {}, 9, "known")
    assert again["table-uuid"] == "known"
    assert parse_metadata(encode_metadata(document), "d") == document


def test_snapshots_follow_each_other_and_say_what_they_did() -> None:
    document = grown(1, schema())
    document = next_document(document, new(2, removes=True), [schema()], 1, 0)
    first, second = document["snapshots"]
    assert "parent-snapshot-id" not in first
    assert second["parent-snapshot-id"] == 1
    assert first["summary"]["operation"] == "append"
    assert second["summary"]["operation"] == "overwrite"


def test_time_never_goes_back() -> None:
    document = first_document("/t", new(1, 500), [schema()], {}, 0, None)
    document = next_document(document, new(2, 400), [schema()], 1, 0)
    assert [snapshot["timestamp-ms"] for snapshot in document["snapshots"]] == [500, 500]


def test_a_new_schema_is_added_once() -> None:
    table = schema()
    wider = apply_changes(table, [AddColumn("w", parse_type("INT"))], 0)
    document = next_document(grown(1, table), new(2), [table, wider], 1, 0)
    assert [schema["schema-id"] for schema in document["schemas"]] == [0, 1]
    assert (document["current-schema-id"], document["last-column-id"]) == (1, 2)
    assert document["snapshots"][1]["schema-id"] == 1
    document = next_document(document, new(3), [wider], 1, 0)
    assert [schema["schema-id"] for schema in document["schemas"]] == [0, 1]


@pytest.mark.parametrize(
    ("options", "earliest", "left"),
    [
        ({}, 1, [1, 2, 3, 4, 5]),
        ({"snapshot.num-retained.min": "2"}, 1, [4, 5]),
        ({"snapshot.num-retained.min": "2", "snapshot.time-retained": "3 h"}, 1, [2, 3, 4, 5]),
        ({"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "3",
          "snapshot.time-retained": "9 h"}, 1, [3, 4, 5]),
        ({"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}, 1, [5]),
        ({}, 4, [4, 5]),
        ({}, 9, [5]),
    ],
)  # fmt: skip
def test_snapshots_expire_as_those_of_the_table(
    options: dict[str, str], earliest: int, left: list[int]
) -> None:
    table = schema(**options)
    before = grown(4, schema(), now_ms=0)
    after = next_document(before, new(5, 5 * HOUR), [table], earliest, 5 * HOUR)
    assert kept(after) == left
    assert expired(before, after) == [f"/m/l{number}" for number in range(1, left[0])]


def test_a_tag_goes_with_its_snapshot() -> None:
    document = with_tags(grown(3, schema()), {"a": 1, "b": 3, "c": 9})
    assert list(document["refs"]) == ["a", "b"]
    after = next_document(document, new(4), [schema()], 2, 0)
    assert list(after["refs"]) == ["b"]


def test_a_document_shows_one_snapshot_and_no_other_of_its_id() -> None:
    document = grown(2, schema())
    assert is_made_from(document, snapshot(2, 2 * HOUR))
    assert not is_made_from(document, replace(snapshot(2, 2 * HOUR), delta_manifest_list="other"))


def test_a_document_of_java_shows_what_was_committed_before_it() -> None:
    document = grown(2, schema())
    del document["snapshots"][1]["summary"]["paimon.delta-manifest-list"]
    assert is_made_from(document, snapshot(2, 2 * HOUR))
    assert not is_made_from(document, snapshot(2, 2 * HOUR + 1))


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", json.dumps({"format-version": 2}).encode(),
     encode_metadata({**grown(2, schema()), "current-snapshot-id": 9}),
     json.dumps({**grown(2, schema()), "snapshots": None}).encode()],
    ids=["empty", "cut", "list", "no fields", "no table", "unknown snapshot", "no snapshots"],
)  # fmt: skip
def test_a_damaged_document_is_named(data: bytes) -> None:
    with pytest.raises(FormatError, match="here"):
        parse_metadata(data, "here")


def test_row_ids_go_on_after_those_of_all_snapshots() -> None:
    table = schema(**{"metadata.iceberg.format-version": "3"})
    document = first_document("/t", replace(new(1), row_ids=(0, 5)), [table], {}, 0, None)
    document = next_document(document, replace(new(2), row_ids=(5, 9)), [table], 1, 0)
    assert [(s["first-row-id"], s["added-rows"]) for s in document["snapshots"]] == [(0, 5), (5, 4)]
    assert document["next-row-id"] == next_row_id(document) == 9
    del document["next-row-id"]  # as Java Paimon 1.4 does
    assert next_row_id(document) == 9
    assert next_row_id(grown(2, schema())) == 0
