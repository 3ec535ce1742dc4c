"""Verify the index files of a table: hash indexes and deletion vectors.

Every hash of a partition belongs to one bucket, and the index of a bucket contains the hashes of
all its keys; a data file has at most one deletion vector.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#table-index
"""

from collections.abc import Iterable, Mapping

import numpy as np

from ingestd.errors import FormatError
from ingestd.paimon.spec.deletion_vector import decode_dv_index
from ingestd.paimon.spec.index_manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    DeletionVectorRange,
    IndexManifestEntry,
    decode_hash_index,
)
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.buckets.hash_index import Hashes, is_among
from ingestd.paimon.table.files.deletion_vectors import dv_index_path, read_dv_index
from ingestd.paimon.table.metadata.file_store_scan import read_index_manifest
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.verify.content import BucketContent, all_hashes
from ingestd.paimon.table.verify.verify_findings import VerifyFindings
from ingestd.wording import counted

_Bucket = tuple[bytes, int]
_CODE = "deletion-vector"
RowCounts = Mapping[str, int]
"""Rows of the live data files of one bucket, by name."""


def check_index(
    table: FileStoreTable,
    snapshot: Snapshot,
    contents: Mapping[_Bucket, BucketContent],
    findings: VerifyFindings,
) -> None:
    """Check the index files of a snapshot, and that they cover the keys of its data files."""
    indexed: dict[_Bucket, Hashes] = {}
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
    contents: Mapping[_Bucket, BucketContent],
    findings: VerifyFindings,
) -> None:
    seen: set[tuple[_Bucket, str]] = set()
    for entry in entries:
        bucket_key = (entry.partition, entry.bucket)
        live = contents[bucket_key].entries if bucket_key in contents else []
        rows = {
            entry_of_file.file.file_name: entry_of_file.file.row_count for entry_of_file in live
        }
        names = {
            (bucket_key, name) for name in check_deletion_vectors(table, entry, rows, findings)
        }
        for _, name in sorted(name for name in names & seen):
            findings.error("deletion-vector", name, "has more than one deletion vector")
        seen |= names


def _check_entry(
    table: FileStoreTable,
    entry: IndexManifestEntry,
    indexed: dict[_Bucket, Hashes],
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


def _check_owners(indexed: Mapping[_Bucket, Hashes], findings: VerifyFindings) -> None:
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


def check_deletion_vectors(
    table: FileStoreTable,
    entry: IndexManifestEntry,
    row_counts: RowCounts,
    findings: VerifyFindings,
) -> frozenset[str]:
    """Check an index file of deletion vectors; return the names of the data files in it."""
    ranges = entry.dv_ranges or ()
    with findings.reading(entry.file_name, _CODE):
        path = dv_index_path(table, entry)
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
