"""The updates by which a table of an Iceberg REST catalog follows the metadata in the warehouse.

A REST catalog writes documents of its own, from updates. It assigns the ids of schemas: a new
schema gets the id after the largest. As in Java Paimon, a table begins with an empty schema 0, so
that the id of each schema is one more than in Paimon as long as no two schemas have the same
columns.

Specification: https://iceberg.apache.org/rest-catalog-spec/
"""

import json
import re
from collections.abc import Mapping, Sequence

from ingestd.paimon.iceberg.iceberg_types import Json
from ingestd.paimon.iceberg.manifest_format import SPEC_ID

_MAIN = "main"
_LAST_ADDED = -1
_EMPTY_SCHEMA = {"type": "struct", "schema-id": 0, "fields": list[Json]()}
_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)")


def creation_updates(
    document: Json, location: str, table_uuid: str, properties: Mapping[str, str]
) -> list[Json]:
    """Return the JSON updates, in order, that create a table with the content of a document.

    `location` is where the catalog writes its own documents, `table_uuid` is the id of the table,
    and `properties` are the properties of the table in the catalog.
    """
    empty = {
        "format-version": document["format-version"],
        "partition-specs": document["partition-specs"],
        "default-spec-id": SPEC_ID,
        "schemas": [_EMPTY_SCHEMA],
        "last-sequence-number": 0,
    }
    following = next_updates(empty, document) or []
    schemas = [update for update in following if "schema" in update["action"]]
    return [
        {"action": "assign-uuid", "uuid": table_uuid},
        {"action": "upgrade-format-version", "format-version": document["format-version"]},
        {"action": "set-location", "location": location},
        {"action": "set-properties", "updates": dict(properties)},
        {"action": "add-schema", "schema": _EMPTY_SCHEMA, "last-column-id": 0},
        *schemas,
        {"action": "add-spec", "spec": document["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": _LAST_ADDED},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": _LAST_ADDED},
        *(update for update in following if update not in schemas),
    ]


def next_updates(known: Json, document: Json) -> list[Json] | None:
    """Return the JSON updates, in order, by which a table of a catalog follows a document.

    `known` is the table's metadata in the catalog. Returns None if the document does not continue
    it: after a rollback, if the table was created again, or if the format version has changed.
    """
    if not _continues(known, document):
        return None
    ids, added_schemas = _schema_ids(known, document)
    schema_id = ids[document["current-schema-id"]]
    updates: list[Json] = [
        {"action": "add-schema", "schema": schema, "last-column-id": document["last-column-id"]}
        for schema in added_schemas
    ]
    if known.get("current-schema-id") != schema_id:
        updates.append({"action": "set-current-schema", "schema-id": schema_id})
    updates += [
        {"action": "add-snapshot", "snapshot": {**entry, "schema-id": ids[entry["schema-id"]]}}
        for entry in document["snapshots"]
        if entry["sequence-number"] > known["last-sequence-number"]
    ]
    updates += _ref_updates(known, document)
    kept = {entry["snapshot-id"] for entry in document["snapshots"]}
    removed = [number for number in _lists(known) if number not in kept]
    if removed:
        updates.append({"action": "remove-snapshots", "snapshot-ids": removed})
    return updates


def _continues(known: Json, document: Json) -> bool:
    specs = {spec["spec-id"]: spec["fields"] for spec in known["partition-specs"]}
    if known["format-version"] != document["format-version"]:
        return False
    if _spec(specs[known["default-spec-id"]]) != _spec(document["partition-specs"][0]["fields"]):
        return False
    before, after = _lists(known), _lists(document)
    if any(after[number] != path for number, path in before.items() if number in after):
        return False
    newest, known_newest = document["last-sequence-number"], known["last-sequence-number"]
    is_same = newest == known_newest and document["current-snapshot-id"] in before
    return newest > known_newest or is_same


def _lists(metadata: Json) -> dict[int, str]:
    """Return the paths of the manifest lists by snapshot id, whatever the scheme of the store."""
    return {
        entry["snapshot-id"]: entry["manifest-list"].rpartition("/")[2]
        for entry in metadata.get("snapshots") or ()
    }


def _spec(fields: Sequence[Json]) -> list[tuple[Json, ...]]:
    return [(f["name"], f["transform"], f["source-id"], f["field-id"]) for f in fields]


def _schema_ids(known: Json, document: Json) -> tuple[dict[int, int], list[Json]]:
    """Return the catalog's ids of a document's schemas by id, and the schemas to add."""
    ids: dict[int, int] = {}
    added: list[Json] = []
    by_fields = {_columns(schema): schema["schema-id"] for schema in known["schemas"]}
    for schema in document["schemas"]:
        columns = _columns(schema)
        if columns not in by_fields:
            by_fields[columns] = max(by_fields.values()) + 1
            added.append({**schema, "schema-id": by_fields[columns]})
        ids[schema["schema-id"]] = by_fields[columns]
    return ids, added


def _columns(schema: Json) -> str:
    """Return the columns of a schema as text; catalogs differ in the spaces of a decimal type."""
    return _DECIMAL.sub(r"decimal(\1,\2)", json.dumps(schema["fields"], sort_keys=True))


def _ref_updates(known: Json, document: Json) -> list[Json]:
    """Return the updates that set the main branch and the tags of a document."""
    main = {"snapshot-id": document["current-snapshot-id"], "type": "branch"}
    before = {
        name: (ref["snapshot-id"], ref["type"]) for name, ref in (known.get("refs") or {}).items()
    }
    after = {_MAIN: main, **document["refs"]}
    changed: list[Json] = [
        {"action": "set-snapshot-ref", "ref-name": name, **ref}
        for name, ref in after.items()
        if before.get(name) != (ref["snapshot-id"], ref["type"])
    ]
    gone = (name for name, (_, kind) in before.items() if kind == "tag" and name not in after)
    return changed + [{"action": "remove-snapshot-ref", "ref-name": name} for name in gone]
