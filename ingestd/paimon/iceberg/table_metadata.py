"""Iceberg's metadata document: the schemas, snapshots and tags of a table.

The id of a Paimon snapshot is id and sequence number of its Iceberg snapshot, and the version of
the document. Java Paimon keeps the summaries of snapshots when it continues a document, so they
state which Paimon snapshot each of them shows.

Specification: https://iceberg.apache.org/spec/#table-metadata-fields
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingestd.errors import FormatError
from ingestd.paimon.iceberg.iceberg_types import schema_document
from ingestd.paimon.iceberg.manifest_format import FIRST_PARTITION_ID, SPEC_ID
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.option_types import Options
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.spec.table_schema import TableSchema

Json = Any
_SOURCE = "paimon.delta-manifest-list"
"""Entry of a summary: the name of the delta manifest list of the Paimon snapshot."""
_MAIN = "main"
_FOREVER = 2**63 - 1
_NEEDED = frozenset(
    {"format-version", "table-uuid", "location", "schemas", "current-schema-id", "snapshots",
     "current-snapshot-id"}
)  # fmt: skip


def parse_metadata(data: bytes, source: str) -> Json:
    """Return a metadata document. Raises FormatError, naming `source`, if it is damaged."""
    try:
        document = json.loads(data)
        missing = sorted(_NEEDED - document.keys())
        if missing:
            raise ValueError(f"{', '.join(missing)} missing")
        current_snapshot(document)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise FormatError(f"Iceberg metadata {source} cannot be read: {error}") from error
    return document


def encode_metadata(document: Json) -> bytes:
    """Return the bytes of a metadata document."""
    return json.dumps(document, indent=2, ensure_ascii=False).encode()


def current_snapshot(document: Json) -> Json:
    """Return the newest snapshot of a document. Raises KeyError if it is missing."""
    return {one["snapshot-id"]: one for one in document["snapshots"]}[
        document["current-snapshot-id"]
    ]


def shows(document: Json, snapshot: Snapshot) -> bool:
    """Return whether the document's newest snapshot is a Paimon snapshot, not only its id.

    It is not after a rollback, or if another table had the name. What Java wrote has a later time.
    """
    newest = current_snapshot(document)
    source = newest["summary"].get(_SOURCE)
    if source is None:
        return bool(newest["timestamp-ms"] >= snapshot.time_millis)
    return bool(source == snapshot.delta_manifest_list)


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A snapshot to be added to a document, with the path of its manifest list."""

    snapshot: Snapshot
    manifest_list: str
    removes_files: bool


def next_document(
    base: Json, new: NewSnapshot, schemas: Sequence[TableSchema], earliest: int, now_ms: int
) -> Json:
    """Return the document after one more snapshot; snapshots and tags that expire are left out.

    `schemas` are those from the newest of `base` to the newest of the table.
    """
    schema = schemas[-1]
    added = [schema_document(one) for one in schemas[1:]]
    entry = _snapshot_entry(new, schema.id, current_snapshot(base))
    snapshots = [*base["snapshots"], entry]
    kept = _unexpired(snapshots, schema.options, earliest, now_ms)
    ids = {one["snapshot-id"] for one in kept}
    refs = base.get("refs") or {}
    return {
        **base,
        **_newest(new.snapshot, schema, now_ms),
        "schemas": [*base["schemas"], *added],
        "snapshots": kept,
        "refs": {name: ref for name, ref in refs.items() if ref["snapshot-id"] in ids},
    }


def first_document(
    location: str,
    new: NewSnapshot,
    schemas: Sequence[TableSchema],
    tags: Mapping[str, int],
    now_ms: int,
    table_uuid: str | None,
) -> Json:
    """Return a document that begins with a snapshot; `schemas` are all of the table, in order."""
    schema, partitions = schemas[-1], partition_fields(schemas[-1])
    snapshots = [_snapshot_entry(new, schema.id, None)]
    return {
        "format-version": honoured.ICEBERG_VERSION.of(schema.options),
        "table-uuid": table_uuid or str(uuid.uuid4()),
        "location": location,
        **_newest(new.snapshot, schema, now_ms),
        "schemas": [schema_document(one) for one in schemas],
        "partition-specs": [{"spec-id": SPEC_ID, "fields": partitions}],
        "default-spec-id": SPEC_ID,
        "last-partition-id": FIRST_PARTITION_ID + len(partitions) - 1,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "snapshots": snapshots,
        "properties": {},
        "refs": _refs(tags, snapshots),
    }


def partition_fields(schema: TableSchema) -> list[Json]:
    """Return the fields of the partition spec."""
    return [
        {
            "name": column.name,
            "transform": "identity",
            "source-id": column.id,
            "field-id": FIRST_PARTITION_ID + at,
        }
        for at, column in enumerate(schema.select(schema.partition_keys))
    ]


def with_tags(document: Json, tags: Mapping[str, int]) -> Json:
    """Return the document with the tags whose snapshots it has; `tags` are ids by name."""
    return {**document, "refs": _refs(tags, document["snapshots"])}


def expired(before: Json, after: Json) -> list[str]:
    """Return the manifest lists of the snapshots that only the earlier document has."""
    kept = {one["manifest-list"] for one in after["snapshots"]}
    lists = (one["manifest-list"] for one in before["snapshots"])
    return [name for name in lists if name not in kept]


def _newest(snapshot: Snapshot, schema: TableSchema, now_ms: int) -> Json:
    return {
        "last-sequence-number": snapshot.id,
        "last-updated-ms": now_ms,
        "last-column-id": schema.highest_field_id,
        "current-schema-id": schema.id,
        "current-snapshot-id": snapshot.id,
    }


def _snapshot_entry(new: NewSnapshot, schema_id: int, parent: Json | None) -> Json:
    snapshot = new.snapshot
    before = {} if parent is None else {"parent-snapshot-id": parent["snapshot-id"]}
    earliest = 0 if parent is None else parent["timestamp-ms"]
    return {
        "sequence-number": snapshot.id,
        "snapshot-id": snapshot.id,
        **before,
        "timestamp-ms": max(snapshot.time_millis, earliest),
        "summary": {
            "operation": "overwrite" if new.removes_files else "append",
            _SOURCE: snapshot.delta_manifest_list,
        },
        "manifest-list": new.manifest_list,
        "schema-id": schema_id,
    }


def _refs(tags: Mapping[str, int], snapshots: Iterable[Json]) -> Json:
    ids = {one["snapshot-id"] for one in snapshots}
    return {
        name: {"snapshot-id": snapshot_id, "type": "tag", "max-ref-age-ms": _FOREVER}
        for name, snapshot_id in tags.items()
        if snapshot_id in ids and name != _MAIN
    }


def _unexpired(
    snapshots: Sequence[Json], options: Options, earliest: int, now_ms: int
) -> list[Json]:
    """Return the snapshots from the first one that the table keeps, at least the newest.

    By the options of expiry, and not before `earliest`, the oldest snapshot of the table.
    """
    newest = snapshots[-1]["snapshot-id"]
    fewest, most = honoured.SNAPSHOT_MIN.of(options), honoured.SNAPSHOT_MAX.of(options)
    since = now_ms - honoured.SNAPSHOT_TIME.of(options)
    for at, one in enumerate(snapshots[:-1]):
        age = newest - one["snapshot-id"]
        gone = one["snapshot-id"] < earliest
        if not gone and (age < fewest or (age < most and one["timestamp-ms"] >= since)):
            return list(snapshots[at:])
    return [snapshots[-1]]
