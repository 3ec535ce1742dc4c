"""Write the Iceberg metadata of one table: documents, manifests and vectors of its snapshots.

In a table with a primary key, the metadata exposes the data files of the highest level: their rows
are merged, without deletions, and each key is in at most one of the files. With deletion vectors,
it exposes all compacted files and the vectors. In an append table, it exposes all data files.
"""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.iceberg.data_file_records import (
    column_bounds_of,
    data_file,
    file_changes,
    is_exposed,
)
from ingestd.paimon.iceberg.hive_entry import HiveEntry
from ingestd.paimon.iceberg.iceberg_types import Json, refuse_unreadable, schema_document
from ingestd.paimon.iceberg.manifest_changes import (
    NewManifests,
    added_entries,
    next_manifests,
    with_row_ids,
)
from ingestd.paimon.iceberg.manifest_format import (
    DATA,
    DELETES,
    SPEC_ID,
    IcebergEntry,
    IcebergManifest,
)
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.iceberg.rest_entry import RestEntry
from ingestd.paimon.iceberg.table_metadata import (
    NewSnapshot,
    current_snapshot,
    expired,
    first_document,
    is_document_of,
    is_made_from,
    next_document,
    next_row_id,
    partition_fields,
    with_tags,
    without_expired,
)
from ingestd.paimon.iceberg.vector_files import (
    index_name,
    puffin_file,
    vector_indexes,
    vectors_by_index,
)
from ingestd.paimon.spec.iceberg_rules import IcebergSettings, exposes_vectors
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_scan import delta_entries, live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    earliest_snapshot_id,
    find_snapshot,
    latest_snapshot,
)
from ingestd.paimon.table.metadata.time_travel import tagged_snapshots

_MOST_STEPS = 10
"""Maximum number of missing snapshots that are added one by one.

If more are missing, the metadata is written again with only the newest snapshot.
"""
_MILLIS = 1000
_NO_DELTAS: Mapping[str, Sequence[ManifestEntry]] = MappingProxyType({})
_UNREADABLE = (FileNotFoundError, FormatError)
ATTEMPTS = 3
"""How often an update is tried while other processes publish or delete metadata."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The id of the newest snapshot in a table's Iceberg metadata before and after an update.

    None: there is no readable metadata, or the table has no Iceberg metadata or no snapshot. With
    `restarted`, the metadata was written again with only the newest snapshot.
    """

    before: int | None
    after: int | None
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class MetadataWriter:
    """A writer of one table's Iceberg metadata.

    `store` is the directory of the metadata, `entry` the entry in a catalog (None: the table has no
    entry). `_tables` and `_headers` have the table, and the headers of its manifests, by
    schema id.
    """

    table: FileStoreTable
    settings: IcebergSettings
    store: MetadataStore
    entry: HiveEntry | RestEntry | None
    _tables: dict[int, FileStoreTable] = field(default_factory=dict)
    _headers: dict[int, Mapping[str, str]] = field(default_factory=dict)

    def update(
        self, latest: Snapshot, deltas: Mapping[str, Sequence[ManifestEntry]] = _NO_DELTAS
    ) -> SyncResult:
        """Write a document for each snapshot that the metadata lacks, up to `latest`.

        If the metadata has a document of `latest` or of a later snapshot, the documents up to the
        table's newest snapshot are written. If there is no metadata, or if it is damaged or cannot
        be continued, for example after a rollback, it is written again with the newest snapshot
        alone (see `begin`). `deltas` has entries of snapshots by the name of their delta manifest
        list; those of other snapshots are read. Raises the errors of `begin`.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._run(latest, deltas)
            except FileNotFoundError:
                continue  # another process was faster, and deleted files that this process reads
            except FormatError:
                break
        before = self._shown()
        latest = latest_snapshot(self.table.io, self.table.paths) or latest
        self.begin(latest)
        return SyncResult(before, latest.id, restarted=True)

    def _run(self, latest: Snapshot, deltas: Mapping[str, Sequence[ManifestEntry]]) -> SyncResult:
        """Write a document for each snapshot after that of the newest document, up to `latest`.

        If these snapshots cannot be added, a document of `latest` alone is written (see `begin`).
        Raises FormatError for damaged metadata, FileNotFoundError if others delete files meanwhile.
        """
        version, base = self.store.newest() or (None, None)
        if version is not None and version >= latest.id:
            # Another process may have committed and written its metadata meanwhile.
            latest = latest_snapshot(self.table.io, self.table.paths) or latest
        if self._shows(base, latest):
            self.store.repair_hint(latest.id)
            self._register()
            return SyncResult(version, latest.id)
        missing = None if base is None else self._missing(base, latest)
        try:
            for snapshot in missing or ():
                base = self._add(base, snapshot, deltas)
                passed = snapshot is not latest and self.store.newest_version() != snapshot.id
                if base is None or passed:
                    break  # another process has written this version, or a later one
        except UnsupportedError:
            missing = None  # a later snapshot may have removed the files that readers cannot read
        if missing is None:
            # Of several processes that begin again, the one with the newest snapshot is right.
            latest = latest_snapshot(self.table.io, self.table.paths) or latest
            _, newest = self.store.newest() or (None, None)
            if not self._shows(newest, latest):
                self.begin(latest)
        return SyncResult(version, latest.id, restarted=missing is None)

    def _shows(self, base: Json, latest: Snapshot) -> bool:
        is_same = base is not None and base["current-snapshot-id"] == latest.id
        return is_same and is_made_from(base, latest) and is_document_of(base, self.table.path)

    def _shown(self) -> int | None:
        """Return the version of the newest document, or None if it is missing or damaged."""
        version = self.store.newest_version()
        try:
            return None if version is None else int(self.store.read(version)["current-snapshot-id"])
        except _UNREADABLE:
            return None

    def renew(self, version: int, *, tags: bool) -> None:
        """Drop snapshots that have expired in the table from the document of a version.

        Their manifest lists are deleted, and the manifests that only they have. The document gets
        the next row id if Java Paimon 1.4 has left it out; with `tags`, it gets the tags of the
        table.
        """
        document = self.store.read(version)
        earliest = earliest_snapshot_id(self.table.io, self.table.paths) or version
        renewed = without_expired(document, earliest)
        if self.settings.has_row_ids:
            renewed = {**renewed, "next-row-id": next_row_id(renewed)}
        if tags:
            renewed = with_tags(renewed, self._tags())
        if renewed == document:
            return
        self.store.overwrite(renewed)
        self._register()
        self._delete_expired(document, renewed)

    def is_whole(self, snapshot: Snapshot) -> bool:
        """Return whether the document of `snapshot`, the table's newest, exists and is complete.

        It is complete if all its manifests can be read, and those of its current snapshot list
        exactly the exposed data files of `snapshot`, with the same column bounds, and exactly its
        deletion vectors. The files of these vectors must exist. If deletion vectors are not
        exposed, none may be listed.
        """
        try:
            document = self.store.read(snapshot.id)
            lists = {
                entry["snapshot-id"]: self.store.read_list(entry["manifest-list"])
                for entry in document["snapshots"]
            }
            manifests = {
                manifest.manifest_path: self.store.read_manifest(manifest)
                for listed in lists.values()
                for manifest in listed
            }
        except _UNREADABLE:
            return False
        newest = lists[document["current-snapshot-id"]]
        listed = [entry for manifest in newest for entry in manifests[manifest.manifest_path]]
        return self._is_complete(snapshot, [entry for entry in listed if entry.is_live])

    def _is_complete(self, snapshot: Snapshot, live: Sequence[IcebergEntry]) -> bool:
        table = self._with_schema(snapshot.schema_id)
        data = [entry for entry in live if entry.data_file["content"] == DATA]
        bounds = {entry.name: column_bounds_of(entry.data_file) for entry in data}
        exposed = {e.file.file_name: data_file(table, e) for e in self._exposed(snapshot)}
        # Java gives bounds of 0 to columns that are NOT NULL and have no statistics.
        expected_bounds = {name: column_bounds_of(record) for name, record in exposed.items()}
        if len(data) != len(exposed) or bounds != expected_bounds:
            return False
        vectors = [entry for entry in live if entry.data_file["content"] == DELETES]
        if not exposes_vectors(self.table.schema.options):
            return not vectors
        found = {index_name(entry.name) for entry in vectors}
        paths = {str(entry.data_file["file_path"]) for entry in vectors}
        expected = vector_indexes(self._with_schema(snapshot.schema_id), snapshot).keys()
        return found == expected and all(map(self.table.io.exists, paths))

    def begin(self, snapshot: Snapshot) -> None:
        """Write a document with only one snapshot, and delete the manifests of all other documents.

        Documents of later versions are deleted as well, and if the settings require it, old
        documents. Nothing changes if another process publishes the document of this version first.
        Raises UnsupportedError for files that Iceberg readers cannot read.
        """
        table = self._with_schema(snapshot.schema_id)
        exposed = (data_file(table, entry) for entry in self._exposed(snapshot))
        entries = added_entries(exposed, snapshot.id)
        new = self._new_manifests(table, snapshot)
        manifests = new.add(entries) + self._vectors(table, snapshot, (), new)
        schemas = [table.schemas(schema_id) for schema_id in range(snapshot.schema_id + 1)]
        others = self.store.documents()
        described, _ = self._listed(snapshot, new, manifests, others)
        document = first_document(
            table.path, described, schemas, self._tags(), _now_ms(), _uuid(others, snapshot)
        )
        if max(self.store.versions(), default=0) >= snapshot.id:
            self.store.replace(document, new.files)
        elif not self.store.publish(document, new.files):
            return
        self._register()
        self._delete_old(snapshot.id)
        lists = {entry["manifest-list"] for other in others for entry in other["snapshots"]}
        self.store.delete_lists(sorted(lists), described.manifest_list)

    def _missing(self, base: Json, latest: Snapshot) -> Sequence[Snapshot] | None:
        """Return the snapshots after the newest one of a document, up to `latest`.

        Returns None if they cannot be added to the document: if the table was rolled back, renamed
        or recreated, if the format version has changed, if some of them have expired, or if there
        are more than `_MOST_STEPS`.
        """
        version = base["current-snapshot-id"]
        if not 0 < latest.id - version <= _MOST_STEPS:
            return None
        if base["format-version"] != self.settings.format_version:
            return None
        if not is_document_of(base, self.table.path):
            return None
        shown = find_snapshot(self.table.io, self.table.paths, version)
        if shown is not None and not is_made_from(base, shown):
            return None
        between = range(version + 1, latest.id)
        snapshots = [find_snapshot(self.table.io, self.table.paths, number) for number in between]
        known = [snapshot for snapshot in snapshots if snapshot is not None]
        return [*known, latest] if len(known) == len(between) else None

    def _add(
        self, base: Json, snapshot: Snapshot, deltas: Mapping[str, Sequence[ManifestEntry]]
    ) -> Json | None:
        """Write a document that adds a snapshot to `base`; return it.

        Returns None, and writes nothing, if another process has written this version. Raises
        UnsupportedError for files that Iceberg readers cannot read.
        """
        before = base["current-schema-id"]
        table = self._with_schema(max(before, snapshot.schema_id))
        refuse_unreadable(table.schemas(before), table.schema)
        new = self._new_manifests(table, snapshot)
        listed = self.store.read_list(current_snapshot(base)["manifest-list"])
        data = [manifest for manifest in listed if manifest.content == DATA]
        vectors = [manifest for manifest in listed if manifest.content == DELETES]
        delta = deltas.get(snapshot.delta_manifest_list)
        delta = delta_entries(table, snapshot) if delta is None else delta
        changes = file_changes(table, delta)
        manifests, removes = next_manifests(data, changes, new, self.store.read_manifest)
        manifests += self._vectors(table, snapshot, vectors, new)
        described, manifests = self._listed(snapshot, new, manifests, [base], removes=removes)
        schemas = [table.schemas(schema_id) for schema_id in range(before, table.schema.id + 1)]
        earliest = earliest_snapshot_id(table.io, table.paths) or snapshot.id
        document = next_document(base, described, schemas, earliest, _now_ms())
        if not self.store.publish(document, new.files):
            return None
        self.store.remember_list(new.files[described.manifest_list], manifests)
        self._register()
        if self.settings.deletes_old:
            self.store.delete_documents_before(snapshot.id - self.settings.previous_versions)
        self._delete_expired(base, document)
        return document

    def _vectors(
        self,
        table: FileStoreTable,
        snapshot: Snapshot,
        base: Sequence[IcebergManifest],
        new: NewManifests,
    ) -> list[IcebergManifest]:
        """Return the manifests of a snapshot's deletion vectors, if the metadata exposes them.

        `base` are such manifests of the last snapshot. They are kept if no vector has changed;
        otherwise all vectors are listed again, as in Java.
        """
        if not exposes_vectors(table.schema.options):
            return []
        indexes = vector_indexes(table, snapshot)
        known = vectors_by_index(self._entries(base))
        if known.keys() == indexes.keys():
            return list(base)
        for name in indexes.keys() - known.keys():
            data, known[name] = puffin_file(table, indexes[name], new.folder, new.stem)
            new.files[known[name][0]["file_path"]] = data
        records = (record for name in indexes for record in known[name])
        return new.add(added_entries(records, snapshot.id), DELETES)

    def _entries(self, manifests: Iterable[IcebergManifest]) -> Iterator[IcebergEntry]:
        for manifest in manifests:
            yield from self.store.read_manifest(manifest)

    def _listed(
        self,
        snapshot: Snapshot,
        new: NewManifests,
        manifests: list[IcebergManifest],
        before: Sequence[Json],
        *,
        removes: bool = False,
    ) -> tuple[NewSnapshot, list[IcebergManifest]]:
        """Add the list of a snapshot's manifests to the new files; return the snapshot and them.

        In versions with row ids, manifests get those that follow the ids in documents `before`.
        """
        if not self.settings.has_row_ids:
            return NewSnapshot(snapshot, new.add_list(manifests), removes), manifests
        first = max(map(next_row_id, before), default=0)
        manifests, following = with_row_ids(manifests, first)
        path = new.add_list(manifests)
        return NewSnapshot(snapshot, path, removes, (first, following)), manifests

    def _register(self) -> None:
        """Point the entry in a catalog, if the table has one, to the newest document.

        A metastore does not compare, so a slower process may replace the path of a later document.
        Each process therefore looks for a newer document after it has written the entry.
        """
        newest = None if self.entry is None else self.store.newest_version()
        while self.entry is not None and newest is not None:
            with contextlib.suppress(FileNotFoundError):  # another process has written a newer one
                self.entry.point_to(self.store, newest, self.table.schema)
            registered, newest = newest, self.store.newest_version()
            if newest == registered:
                return

    def _delete_expired(self, before: Json, after: Json) -> None:
        self.store.delete_lists(expired(before, after), after["snapshots"][0]["manifest-list"])

    def _exposed(self, snapshot: Snapshot) -> list[ManifestEntry]:
        table = self._with_schema(snapshot.schema_id)
        return [entry for entry in live_files(table, snapshot) if is_exposed(table, entry.file)]

    def _with_schema(self, schema_id: int) -> FileStoreTable:
        """Return the table with one of its schemas, but with its current options."""
        if schema_id not in self._tables:
            schema = self.table.schemas(schema_id)
            schema = replace(schema, options=self.table.schema.options)
            self._tables[schema_id] = self.table.with_schema(schema)
        return self._tables[schema_id]

    def _new_manifests(self, table: FileStoreTable, snapshot: Snapshot) -> NewManifests:
        schema = table.schema
        if schema.id not in self._headers:
            self._headers[schema.id] = {
                "schema": json.dumps(schema_document(schema)),
                "schema-id": str(schema.id),
                "partition-spec": json.dumps(partition_fields(schema)),
                "partition-spec-id": str(SPEC_ID),
                "format-version": str(self.settings.format_version),
            }
        return NewManifests(
            self.store.folder,
            snapshot.id,
            schema.select(schema.partition_keys),
            self.settings,
            table.options.manifest_target_file_size,
            self._headers[schema.id],
        )

    def _delete_old(self, version: int) -> None:
        if self.settings.deletes_old:
            first = version - self.settings.previous_versions
            self.store.delete_documents(old for old in self.store.versions() if old < first)

    def _tags(self) -> dict[str, int]:
        return {name: tagged.id for name, tagged in tagged_snapshots(self.table).items()}


def _uuid(others: Sequence[Json], snapshot: Snapshot) -> str | None:
    """Return the table's UUID in the newest of the other documents, or None for a new table."""
    if not others or snapshot.id == 1:
        return None
    return str(others[-1]["table-uuid"])


def _now_ms() -> int:
    return int(time.time() * _MILLIS)
