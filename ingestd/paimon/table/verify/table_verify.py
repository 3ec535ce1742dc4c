"""Verify a table: its metadata, and its files against the metadata.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

The content of data files is checked in `verify.content`. Indexes are checked by these rules: every
key hash of a partition is in the index of one bucket only, the index of a bucket contains the
hashes of all its keys, and a data file has at most one deletion vector.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.spec.deletion_vector import decode_dv_index
from ingestd.paimon.spec.index_manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    DeletionVectorRange,
    IndexManifestEntry,
    decode_hash_index,
)
from ingestd.paimon.spec.manifest import BucketKey, FileKind, ManifestEntry, ManifestFileMeta
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from ingestd.paimon.table.buckets.hash_index import Hashes, is_among
from ingestd.paimon.table.files.deletion_vectors import read_dv_index
from ingestd.paimon.table.metadata.file_store_scan import (
    read_index_manifest,
    read_manifest,
    read_manifest_list,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    on_branch,
    tag_names,
    tagged_snapshot,
)
from ingestd.paimon.table.retention.consumers import consumers
from ingestd.paimon.table.retention.referenced_files import files_of
from ingestd.paimon.table.system.analyze import read_statistics
from ingestd.paimon.table.verify.content import (
    BucketContent,
    all_hashes,
    check_buckets,
    check_partition_stats,
)
from ingestd.paimon.table.verify.verify_findings import Finding, VerifyFindings
from ingestd.wording import counted

__all__ = ["Finding", "verify"]
_Live = Mapping[object, ManifestEntry]


def verify(table: FileStoreTable, snapshot_id: int | None = None) -> list[Finding]:
    """Check the chain of snapshots, and one snapshot (None: the newest) down to its rows.

    For tags, and the newest snapshots of other branches, only the existence of the files to which
    they refer is checked. Returns the findings, [] if nothing is wrong. Raises UnsupportedError for
    a table that cannot be read, ConfigError for a snapshot that does not exist.
    """
    refuse_unsupported(table.schema, for_write=False)
    findings = VerifyFindings()
    ids = snapshot_ids(table.io, table.paths)
    if snapshot_id is not None and snapshot_id not in ids:
        raise ConfigError(f"table {table.name} has no snapshot {snapshot_id}; it has {ids}")
    if ids:
        snapshots = _snapshots(table, ids, findings)
        _check_hints(table, ids, findings)
        wanted = ids[-1] if snapshot_id is None else snapshot_id
        if wanted in snapshots:
            _check_snapshot(table, snapshots[wanted], findings)
    check_references(table, findings)
    return list(findings.found)


def _snapshots(
    table: FileStoreTable, ids: list[int], findings: VerifyFindings
) -> dict[int, Snapshot]:
    """Return all readable snapshots by id, after checking each against the snapshot before it."""
    snapshots: dict[int, Snapshot] = {}
    for snapshot_id in range(ids[0], ids[-1] + 1):
        where = f"snapshot-{snapshot_id}"
        if snapshot_id not in ids:
            findings.error("snapshot-gap", where, "is missing between others")
            continue
        with findings.reading(where):
            snapshot = read_snapshot(table.io, table.paths, snapshot_id)
            snapshots[snapshot_id] = snapshot
            if snapshot_id - 1 in snapshots:
                _check_succession(snapshots[snapshot_id - 1], snapshot, findings)
    return snapshots


def _check_succession(previous: Snapshot, snapshot: Snapshot, findings: VerifyFindings) -> None:
    where = f"snapshot-{snapshot.id}"
    delta, total = snapshot.delta_record_count, snapshot.total_record_count
    if None not in (previous.total_record_count, delta, total):
        expected = (previous.total_record_count or 0) + (delta or 0)
        if expected != total:
            findings.error(
                "record-count", where, f"totalRecordCount is {total}, {expected} would follow"
            )
    goes_back = (
        snapshot.commit_user == previous.commit_user
        and snapshot.commit_identifier < previous.commit_identifier
        and previous.commit_identifier != BATCH_COMMIT_IDENTIFIER
        and snapshot.commit_kind != CommitKind.OVERWRITE
    )
    if goes_back:
        findings.warning(
            "commit-identifier", where, f"identifier of user {snapshot.commit_user} decreases"
        )


def _check_hints(table: FileStoreTable, ids: list[int], findings: VerifyFindings) -> None:
    expected = {table.paths.latest_hint: ids[-1], table.paths.earliest_hint: ids[0]}
    for path, snapshot_id in expected.items():
        if not table.io.exists(path):
            continue
        text = table.io.read_bytes(path).decode(errors="replace").strip()
        if text != str(snapshot_id):
            name = path.rpartition("/")[2]
            findings.warning("hint", name, f"says {text}, but it is {snapshot_id}")


def _check_snapshot(table: FileStoreTable, snapshot: Snapshot, findings: VerifyFindings) -> None:
    where = f"snapshot-{snapshot.id}"
    with findings.reading(where, "schema"):
        table.schemas(snapshot.schema_id)
    base = _list_entries(
        table, snapshot.base_manifest_list, snapshot.base_manifest_list_size, findings
    )
    delta = _list_entries(
        table, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size, findings
    )
    live = _live(where, [*base, *delta], findings)
    _check_count(where, "total", snapshot.total_record_count, live.values(), findings)
    _check_count(where, "delta", snapshot.delta_record_count, delta, findings)
    contents: dict[BucketKey, BucketContent] = check_buckets(table, live.values(), findings)
    _check_index(table, snapshot, contents, findings)


def _live(where: str, entries: Iterable[ManifestEntry], findings: VerifyFindings) -> _Live:
    live: dict[object, ManifestEntry] = {}
    for entry in entries:
        name = entry.file.file_name
        if entry.kind == FileKind.ADD:
            if entry.identifier in live:
                findings.error("double-add", where, f"{name} is added twice")
            live[entry.identifier] = entry
        elif live.pop(entry.identifier, None) is None:
            findings.error("delete-unknown", where, f"{name} is deleted and was not there")
    return live


def _check_count(
    where: str,
    what: str,
    expected: int | None,
    entries: Iterable[ManifestEntry],
    findings: VerifyFindings,
) -> None:
    signed = (
        entry.file.row_count if entry.kind == FileKind.ADD else -entry.file.row_count
        for entry in entries
    )
    row_total = sum(signed)
    if expected is not None and expected != row_total:
        findings.error(
            "record-count", where, f"{what}RecordCount is {expected}, its files have {row_total}"
        )


def _list_entries(
    table: FileStoreTable, name: str, size: int | None, findings: VerifyFindings
) -> list[ManifestEntry]:
    """Return the entries of a manifest list's manifests, as far as they can be read."""
    entries: list[ManifestEntry] = []
    with findings.reading(name):
        _check_size(table, table.paths.manifest(name), size, findings)
        for meta in read_manifest_list(table.io, table.paths, name):
            with findings.reading(meta.file_name):
                path = table.paths.manifest(meta.file_name)
                _check_size(table, path, meta.file_size, findings)
                stored_entries = read_manifest(table.io, table.paths, meta.file_name)
                _check_manifest(table, meta, stored_entries, findings)
                entries += stored_entries
    return entries


def _check_size(
    table: FileStoreTable, path: str, expected: int | None, findings: VerifyFindings
) -> None:
    if expected is not None and table.io.size(path) != expected:
        name = path.rpartition("/")[2]
        findings.error("file-size", name, f"has {table.io.size(path)} bytes, not {expected}")


def _check_manifest(
    table: FileStoreTable,
    meta: ManifestFileMeta,
    entries: list[ManifestEntry],
    findings: VerifyFindings,
) -> None:
    added = sum(1 for entry in entries if entry.kind == FileKind.ADD)
    deleted = len(entries) - added
    if (added, deleted) != (meta.num_added_files, meta.num_deleted_files):
        findings.error(
            "manifest-count",
            meta.file_name,
            f"has +{added}/-{deleted} entries, "
            f"expected +{meta.num_added_files}/-{meta.num_deleted_files}",
        )
    for what, low, high, values in (
        ("bucket", meta.min_bucket, meta.max_bucket, {entry.bucket for entry in entries}),
        ("level", meta.min_level, meta.max_level, {entry.file.level for entry in entries}),
    ):
        for value in sorted(values):
            if (low is not None and value < low) or (high is not None and value > high):
                findings.error(
                    "manifest-range", meta.file_name, f"{what} {value} is not in {low}..{high}"
                )
    partitions = [entry.partition for entry in entries]
    check_partition_stats(table, meta.file_name, meta.partition_stats, partitions, findings)


def check_references(table: FileStoreTable, findings: VerifyFindings) -> None:
    """Check the tags, the consumers and the newest statistics of a branch.

    For the main branch, the newest snapshots of all other branches are checked as well. Problems
    are added to `findings`.
    """
    existing: set[str] = set()
    for name in tag_names(table.io, table.paths):
        with findings.reading(f"tag-{name}"):
            _look_for(table, tagged_snapshot(table, name), f"tag-{name}", existing, findings)
    with findings.reading("consumer"):
        consumers(table)
    with findings.reading("statistics"):
        newest = latest_snapshot(table.io, table.paths)
        if newest is not None:
            read_statistics(table, newest)
    if table.branch == MAIN_BRANCH:
        for name in branch_names(table.io, table.paths):
            _check_branch(table, name, existing, findings)


def _check_branch(
    table: FileStoreTable, name: str, existing: set[str], findings: VerifyFindings
) -> None:
    where = f"branch-{name}"
    try:
        line = on_branch(table, name)
    except ConfigError:
        findings.error("branch", where, "has no schema")
        return
    with findings.reading(where):
        newest = latest_snapshot(line.io, line.paths)
        if newest is not None:
            _look_for(line, newest, where, existing, findings)


def _look_for(
    table: FileStoreTable,
    snapshot: Snapshot,
    where: str,
    existing: set[str],
    findings: VerifyFindings,
) -> None:
    """Record the missing files of a snapshot; add the paths of existing files to `existing`."""
    for path in sorted(files_of(table, snapshot) - existing):
        if table.io.exists(path):
            existing.add(path)
        else:
            findings.error("missing-file", where, f"{path} does not exist")


_CODE = "deletion-vector"
RowCounts = Mapping[str, int]
"""Rows of the live data files of one bucket, by name."""


def _check_index(
    table: FileStoreTable,
    snapshot: Snapshot,
    contents: Mapping[BucketKey, BucketContent],
    findings: VerifyFindings,
) -> None:
    """Check the index files of a snapshot, and that they cover the keys of its data files."""
    indexed: dict[BucketKey, Hashes] = {}
    if snapshot.index_manifest is not None:
        with findings.reading(snapshot.index_manifest):
            entries = read_index_manifest(table.io, table.paths, snapshot.index_manifest)
            for entry in entries:
                if entry.kind != FileKind.ADD:
                    findings.error(
                        "index-entry", entry.file_name, "is deleted in an index manifest"
                    )
                if entry.index_type != DELETION_VECTORS_INDEX:
                    _check_entry(table, entry, indexed, findings)
            vectors = [e for e in entries if e.index_type == DELETION_VECTORS_INDEX]
            _check_vectors(table, vectors, contents, findings)
    _check_owners(indexed, findings)
    if bucket_mode(table.schema) is BucketMode.HASH_DYNAMIC:
        for (partition, bucket), content in contents.items():
            known = indexed.get((partition, bucket), np.empty(0, np.int32))
            hashes = all_hashes(content)
            missing = int((~is_among(hashes, known)).sum())
            if missing:
                findings.error(
                    "hash-index",
                    content.entries[0].file.file_name,
                    f"{missing} key hashes of bucket {bucket} are not in its index",
                )


def _check_vectors(
    table: FileStoreTable,
    entries: Iterable[IndexManifestEntry],
    contents: Mapping[BucketKey, BucketContent],
    findings: VerifyFindings,
) -> None:
    seen: set[tuple[BucketKey, str]] = set()
    for entry in entries:
        bucket_key = (entry.partition, entry.bucket)
        live = contents[bucket_key].entries if bucket_key in contents else []
        rows = {
            entry_of_file.file.file_name: entry_of_file.file.row_count for entry_of_file in live
        }
        names = {
            (bucket_key, name) for name in verify_deletion_vectors(table, entry, rows, findings)
        }
        for _, name in sorted(name for name in names & seen):
            findings.error("deletion-vector", name, "has more than one deletion vector")
        seen |= names


def _check_entry(
    table: FileStoreTable,
    entry: IndexManifestEntry,
    indexed: dict[BucketKey, Hashes],
    findings: VerifyFindings,
) -> None:
    name = entry.file_name
    if entry.index_type != HASH_INDEX:
        findings.warning("index-entry", name, f"index type {entry.index_type} is not checked")
        return
    with findings.reading(name, "hash-index"):
        path = index_path(table, entry)
        data = table.io.read_bytes(path)
        if len(data) != entry.file_size or len(data) != 4 * entry.row_count:
            findings.error(
                "hash-index",
                name,
                f"has {len(data)} bytes, expected {entry.file_size} bytes and "
                f"{entry.row_count} hashes",
            )
        hashes = np.sort(decode_hash_index(data, path))
        if np.any(hashes[1:] == hashes[:-1]):
            findings.error("hash-index", name, "holds a hash twice")
        bucket_key = (entry.partition, entry.bucket)
        if bucket_key in indexed:
            findings.error("hash-index", name, f"is the second index of bucket {entry.bucket}")
        indexed[bucket_key] = hashes


def _check_owners(indexed: Mapping[BucketKey, Hashes], findings: VerifyFindings) -> None:
    by_partition: dict[bytes, list[tuple[int, Hashes]]] = {}
    for (partition, bucket), hashes in indexed.items():
        by_partition.setdefault(partition, []).append((bucket, np.unique(hashes)))
    for owners in by_partition.values():
        merged = np.sort(np.concatenate([hashes for _, hashes in owners]))
        twice = int((merged[1:] == merged[:-1]).sum())
        if twice:
            buckets = sorted(bucket for bucket, _ in owners)
            findings.error(
                "hash-index",
                f"buckets {buckets}",
                f"{twice} hashes of one partition are in the index of more than one bucket",
            )


def verify_deletion_vectors(
    table: FileStoreTable,
    entry: IndexManifestEntry,
    row_counts: RowCounts,
    findings: VerifyFindings,
) -> frozenset[str]:
    """Check an index file of deletion vectors; return the names of its data files.

    `row_counts` maps the names of the live data files of the bucket to their row counts. Problems
    are added to `findings`.
    """
    ranges = entry.dv_ranges or ()
    with findings.reading(entry.file_name, _CODE):
        path = index_path(table, entry)
        data = read_dv_index(table, path)
        if len(data) != entry.file_size:
            message = f"has {len(data)} bytes, expected {entry.file_size}"
            findings.error(_CODE, entry.file_name, message)
        if len(ranges) != entry.row_count:
            message = f"has {len(ranges)} vectors, expected {entry.row_count}"
            findings.error(_CODE, entry.file_name, message)
        for range_ in ranges:
            _check_vector(data, range_, path, row_counts, findings)
    return frozenset(dv_range.data_file_name for dv_range in ranges)


def _check_vector(
    data: bytes,
    dv_range: DeletionVectorRange,
    path: str,
    row_counts: RowCounts,
    findings: VerifyFindings,
) -> None:
    name = dv_range.data_file_name
    rows = row_counts.get(name)
    if rows is None:
        findings.error(_CODE, name, f"has a deletion vector in {path} and is no live file")
        return
    try:
        positions = decode_dv_index(data, (dv_range,), path)[name]
    except FormatError as error:
        findings.error(_CODE, name, error.message)
        return
    if len(positions) and int(positions[-1]) >= rows:
        findings.error(
            _CODE, name, f"has {counted(rows, 'row')}, row {int(positions[-1])} is deleted"
        )
