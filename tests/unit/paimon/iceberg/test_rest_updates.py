"""Updates of a REST catalog: what is added, what is removed, and when a table begins again."""

import copy
from typing import Any

import pytest

from ingestd.paimon.iceberg.rest_updates import creation_updates, next_updates

Json = Any
PLAIN = [{"id": 0, "name": "a", "required": False, "type": "decimal(9, 2)"}]
WIDER = [*PLAIN, {"id": 1, "name": "b", "required": False, "type": "int"}]


def snapshot(number: int, schema_id: int = 0, suffix: str = "") -> Json:
    return {
        "snapshot-id": number,
        "sequence-number": number,
        "manifest-list": f"file:/w/metadata/snap-{number}{suffix}.avro",
        "schema-id": schema_id,
    }


def document(*snapshots: Json, schemas: Any = (PLAIN,), **more: Any) -> Json:
    newest = snapshots[-1]
    return {
        "format-version": 2,
        "schemas": [
            {"type": "struct", "schema-id": at, "fields": fields}
            for at, fields in enumerate(schemas)
        ],
        "current-schema-id": newest["schema-id"],
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "snapshots": list(snapshots),
        "current-snapshot-id": newest["snapshot-id"],
        "last-sequence-number": newest["sequence-number"],
        "last-column-id": 1,
        "refs": {},
        **more,
    }


def known(*snapshots: Json, schemas: Any = (PLAIN,), **more: Any) -> Json:
    """What a catalog has of a table: its schemas follow an empty one."""
    table = document(*snapshots, schemas=[(), *schemas], **more)
    table["current-schema-id"] += 1
    table["default-spec-id"] = 0
    table["refs"] = {"main": {"snapshot-id": snapshots[-1]["snapshot-id"], "type": "branch"}}
    for entry in table["snapshots"]:
        entry["manifest-list"] = entry["manifest-list"].replace("file:", "")
    return table


def actions(updates: list[Json] | None) -> list[str]:
    assert updates is not None
    return [update["action"] for update in updates]


def test_a_table_that_is_up_to_date_gets_no_update() -> None:
    table = known(copy.deepcopy(snapshot(1)))
    table["schemas"][1]["fields"] = [{**PLAIN[0], "type": "decimal(9,2)"}]
    assert next_updates(table, document(snapshot(1))) == []


def test_missing_snapshots_are_added_and_expired_ones_removed() -> None:
    updates = next_updates(known(snapshot(1), snapshot(2)), document(*map(snapshot, (2, 3, 4))))
    assert updates is not None
    assert actions(updates) == [
        "add-snapshot", "add-snapshot", "set-snapshot-ref", "remove-snapshots",
    ]  # fmt: skip
    assert [one["snapshot"]["snapshot-id"] for one in updates[:2]] == [3, 4]
    assert {one["snapshot"]["schema-id"] for one in updates[:2]} == {1}
    assert updates[2]["snapshot-id"] == 4
    assert updates[3]["snapshot-ids"] == [1]


def test_schemas_with_the_same_columns_are_one_in_a_catalog() -> None:
    schemas = (PLAIN, PLAIN, WIDER)
    updates = next_updates(
        known(snapshot(1)), document(snapshot(1), snapshot(2, 2), schemas=schemas)
    )
    assert updates is not None
    assert actions(updates)[:3] == ["add-schema", "set-current-schema", "add-snapshot"]
    assert updates[0]["schema"] == {"type": "struct", "schema-id": 2, "fields": WIDER}
    assert updates[1]["schema-id"] == updates[2]["snapshot"]["schema-id"] == 2


def test_tags_come_and_go_and_branches_of_others_stay() -> None:
    table = known(snapshot(1))
    table["refs"] |= {"old": {"snapshot-id": 1, "type": "tag"},
                      "dev": {"snapshot-id": 1, "type": "branch"}}  # fmt: skip
    tags = {"new": {"snapshot-id": 1, "type": "tag"}}
    assert next_updates(table, document(snapshot(1), refs=tags)) == [
        {"action": "set-snapshot-ref", "ref-name": "new", "snapshot-id": 1, "type": "tag"},
        {"action": "remove-snapshot-ref", "ref-name": "old"},
    ]


PARTITION = {"name": "a", "transform": "identity", "source-id": 0, "field-id": 1000}


@pytest.mark.parametrize(
    ("table", "after"),
    [
        (known(*map(snapshot, (1, 2, 3))), document(snapshot(2))),
        (known(snapshot(1), snapshot(2)), document(snapshot(2, suffix="x"))),
        (known(snapshot(1), snapshot(2)), document(snapshot(2, suffix="x"), snapshot(3))),
        (known(snapshot(5)), document(snapshot(4))),
        (known(snapshot(1)), document(snapshot(2), **{"format-version": 3})),
        (
            known(snapshot(1)),
            document(snapshot(2), **{"partition-specs": [{"spec-id": 0, "fields": [PARTITION]}]}),
        ),
    ],
    ids=["rolled back", "made again", "history differs", "recreated", "version", "partitions"],
)
def test_what_does_not_continue_a_table_makes_it_begin_again(table: Json, after: Json) -> None:
    assert next_updates(table, after) is None


def test_a_newer_snapshot_continues_a_table_of_which_nothing_is_left() -> None:
    updates = next_updates(known(snapshot(1), snapshot(2)), document(snapshot(9)))
    assert actions(updates) == ["add-snapshot", "set-snapshot-ref", "remove-snapshots"]


def test_a_table_is_created_with_its_rows() -> None:
    schemas = (PLAIN, WIDER)
    updates = creation_updates(
        document(snapshot(1), snapshot(2, 1), schemas=schemas), "/there", "uuid", {"p": "1"}
    )
    assert actions(updates) == [
        "assign-uuid", "upgrade-format-version", "set-location", "set-properties", "add-schema",
        "add-schema", "add-schema", "set-current-schema", "add-spec", "set-default-spec",
        "add-sort-order", "set-default-sort-order", "add-snapshot", "add-snapshot",
        "set-snapshot-ref",
    ]  # fmt: skip
    assert [one["schema"]["schema-id"] for one in updates[4:7]] == [0, 1, 2]
    assert updates[7]["schema-id"] == 2
