"""Iceberg's metadata document: the schemas, snapshots and tags of a table.

The id of a Paimon snapshot is also the id and the sequence number of its Iceberg snapshot, and the
version of the document. Java Paimon preserves the summaries of snapshots when it continues a
document, so each summary can state to which Paimon snapshot it belongs.

Specification: https://iceberg.apache.org/spec/#table-metadata-fields
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ingestd.errors import FormatError
from ingestd.paimon.iceberg.iceberg_types import Json, schema_document
from ingestd.paimon.iceberg.manifest_format import FIRST_PARTITION_ID, SPEC_ID
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec import iceberg_options
from ingestd.paimon.spec.option_types import Options
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.spec.table_schema import TableSchema

SnapshotTexts = Mapping[int, tuple[Json, str]]
"""Snapshots of documents with their JSON text, by the `id` of the Python object."""
_NO_TEXTS: SnapshotTexts = MappingProxyType({})
_SOURCE = "paimon.delta-manifest-list"
"""Key in the summary of a snapshot: the name of the Paimon snapshot's delta manifest list."""
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


def snapshot_texts(document: Json, known: SnapshotTexts) -> SnapshotTexts:
    """Return the JSON text of each snapshot of a document, for `encode_metadata`.

    A text that `known` has for the same snapshot object is reused. The result maps the `id()` of a
    snapshot object to the object and its text.
    """
    texts = {}
    for entry in document["snapshots"]:
        text = known.get(id(entry))
        texts[id(entry)] = (entry, _text(entry)) if text is None or text[0] is not entry else text
    return texts


def encode_metadata(document: Json, texts: SnapshotTexts = _NO_TEXTS) -> bytes:
    """Return a metadata document as JSON text in UTF-8.

    `texts` is a result of `snapshot_texts`; snapshots that are missing in it are encoded here.
    """
    texts = snapshot_texts(document, texts)
    rest = {name: value for name, value in document.items() if name != "snapshots"}
    snapshots = ", ".join(texts[id(entry)][1] for entry in document["snapshots"])
    return f'{_text(rest)[:-1]}, "snapshots": [{snapshots}]}}'.encode()


def _text(document: Json) -> str:
    return json.dumps(document, ensure_ascii=False)


def current_snapshot(document: Json) -> Json:
    """Return the newest snapshot of a document. Raises KeyError if it is missing."""
    return {entry["snapshot-id"]: entry for entry in document["snapshots"]}[
        document["current-snapshot-id"]
    ]


def is_made_from(document: Json, snapshot: Snapshot) -> bool:
    """Return whether the newest snapshot of a document was made from this Paimon snapshot.

    Another snapshot may have the same id, after a rollback or if an earlier table had the same
    name. The two are compared by the delta manifest list, or by time if Java Paimon wrote the
    document: its Iceberg snapshot is never older than the Paimon snapshot.
    """
    newest = current_snapshot(document)
    source = newest["summary"].get(_SOURCE)
    if source is None:
        return bool(newest["timestamp-ms"] >= snapshot.time_millis)
    return bool(source == snapshot.delta_manifest_list)


def is_document_of(document: Json, path: str) -> bool:
    """Return whether a document was made for a table in the directory `path`.

    A document contains the full paths of files, so it is useless after the table was renamed or
    copied.
    """
    return is_same_path(str(document["location"]), path)


def is_same_path(path: str, other: str) -> bool:
    """Return whether two paths are equal except for the scheme: a store may have two schemes."""
    return len({one[one.find(":") + 1 :].lstrip("/") for one in (path, other)}) == 1


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A snapshot to add to a document, the path of its manifest list, and whether it removes files.

    Only files that the Iceberg metadata exposes count as removed. `row_ids` are the first row id
    that the snapshot assigns, and the id after the last; None in version 2.
    """

    snapshot: Snapshot
    manifest_list: str
    removes_files: bool
    row_ids: tuple[int, int] | None = None


def next_row_id(document: Json) -> int:
    """Return the first row id that no snapshot of a document has assigned.

    The ids are derived from the snapshots, too, because Java Paimon 1.4 drops the id that the
    document stores.
    """
    assigned = (
        (entry.get("first-row-id") or 0) + (entry.get("added-rows") or 0)
        for entry in document["snapshots"]
    )
    return max(document.get("next-row-id") or 0, *assigned)


def _row_ids(new: NewSnapshot) -> tuple[Json, Json]:
    """Return the fields about row ids of a snapshot and of its document."""
    if new.row_ids is None:
        return {}, {}
    first, following = new.row_ids
    snapshot = {"first-row-id": first, "added-rows": following - first}
    return snapshot, {"next-row-id": following}


def next_document(
    base: Json, new: NewSnapshot, schemas: Sequence[TableSchema], earliest: int, now_ms: int
) -> Json:
    """Return the document `base` with one more snapshot, without expired snapshots and their tags.

    `schemas` are the schemas from the newest schema of `base` to the schema of the snapshot;
    `earliest` is the id of the oldest snapshot of the table, and `now_ms` the time in milliseconds
    of the epoch.
    """
    schema = schemas[-1]
    added = [schema_document(new_schema) for new_schema in schemas[1:]]
    entry = _snapshot_entry(new, schema.id, current_snapshot(base))
    snapshots = [*base["snapshots"], entry]
    kept = _unexpired(snapshots, schema.options, earliest, now_ms)
    return {
        **base,
        **_newest(new, schema, now_ms),
        "schemas": [*base["schemas"], *added],
        **_with_refs(base, kept),
    }


def without_expired(document: Json, earliest: int) -> Json:
    """Return a document without the snapshots that have expired in the table, and their tags.

    `earliest` is the id of the oldest snapshot of the table. The newest snapshot of the document is
    never removed.
    """
    *older, newest = document["snapshots"]
    kept = [entry for entry in older if entry["snapshot-id"] >= earliest]
    return {**document, **_with_refs(document, [*kept, newest])}


def first_document(
    location: str,
    new: NewSnapshot,
    schemas: Sequence[TableSchema],
    tags: Mapping[str, int],
    now_ms: int,
    table_uuid: str | None,
) -> Json:
    """Return a new document with only one snapshot.

    `location` is the table directory, `schemas` are the schemas of the table up to the schema of
    the snapshot, and `tags` are snapshot ids by name. Without `table_uuid`, the document has a new
    UUID. `now_ms` is the time in milliseconds of the epoch.
    """
    schema, partitions = schemas[-1], partition_fields(schemas[-1])
    snapshots = [_snapshot_entry(new, schema.id, None)]
    return {
        "format-version": iceberg_options.ICEBERG_VERSION.of(schema.options),
        "table-uuid": table_uuid or str(uuid.uuid4()),
        "location": location,
        **_newest(new, schema, now_ms),
        "schemas": [schema_document(table_schema) for table_schema in schemas],
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
    """Return the fields of a table's partition spec, in JSON form."""
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
    """Return a copy of a document whose tags are replaced by `tags`, snapshot ids by name.

    Tags of snapshots that the document does not have are left out.
    """
    return {**document, "refs": _refs(tags, document["snapshots"])}


def expired(before: Json, after: Json) -> list[str]:
    """Return the paths of the manifest lists of snapshots that `before` has and `after` lacks."""
    kept = {entry["manifest-list"] for entry in after["snapshots"]}
    lists = (entry["manifest-list"] for entry in before["snapshots"])
    return [name for name in lists if name not in kept]


def _newest(new: NewSnapshot, schema: TableSchema, now_ms: int) -> Json:
    snapshot = new.snapshot
    return {
        "last-sequence-number": snapshot.id,
        "last-updated-ms": now_ms,
        "last-column-id": schema.highest_field_id,
        "current-schema-id": schema.id,
        "current-snapshot-id": snapshot.id,
        **_row_ids(new)[1],
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
        **_row_ids(new)[0],
    }


def _with_refs(document: Json, snapshots: Sequence[Json]) -> Json:
    ids = {snapshot["snapshot-id"] for snapshot in snapshots}
    refs = document.get("refs") or {}
    kept = {name: ref for name, ref in refs.items() if ref["snapshot-id"] in ids}
    return {"snapshots": snapshots, "refs": kept}


def _refs(tags: Mapping[str, int], snapshots: Iterable[Json]) -> Json:
    ids = {entry["snapshot-id"] for entry in snapshots}
    return {
        name: {"snapshot-id": snapshot_id, "type": "tag", "max-ref-age-ms": _FOREVER}
        for name, snapshot_id in tags.items()
        if snapshot_id in ids and name != _MAIN
    }


def _unexpired(
    snapshots: Sequence[Json], options: Options, earliest: int, now_ms: int
) -> list[Json]:
    """Return the snapshots from the oldest that has not expired to the newest, at least the newest.

    Snapshots expire by the table's options, and if their ids are below `earliest`, the id of the
    oldest snapshot of the table.
    """
    newest = snapshots[-1]["snapshot-id"]
    fewest, most = honoured.SNAPSHOT_MIN.of(options), honoured.SNAPSHOT_MAX.of(options)
    since = now_ms - honoured.SNAPSHOT_TIME.of(options)
    for at, entry in enumerate(snapshots[:-1]):
        age = newest - entry["snapshot-id"]
        expired_in_table = entry["snapshot-id"] < earliest
        recent = age < fewest or (age < most and entry["timestamp-ms"] >= since)
        if recent and not expired_in_table:
            return list(snapshots[at:])
    return [snapshots[-1]]
