"""Copy the deletion vectors of a snapshot to Puffin files, in which Iceberg readers look for them.

A 64-bit vector of Paimon has the bytes of a vector of Iceberg. A Puffin file has the vectors of one
index file, and its name begins with the name of the index file.

Specification: https://iceberg.apache.org/puffin-spec/
"""

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter

from ingestd.errors import UnsupportedError
from ingestd.paimon.iceberg.data_file_records import partition_record
from ingestd.paimon.iceberg.iceberg_types import Json
from ingestd.paimon.iceberg.manifest_format import DELETES, IcebergEntry
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.index_manifest import (
    DELETION_VECTORS_INDEX,
    DeletionVectorRange,
    IndexManifestEntry,
)
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.files.data_files import data_file_path
from ingestd.paimon.table.files.deletion_vectors import read_dv_index
from ingestd.paimon.table.metadata.file_store_scan import read_index_manifest
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path

_SUFFIX = ".puffin"
_MAGIC = b"PFA1"
_FOOTER_END = struct.Struct("<ii")
_ROW_POSITION = 2147483645
"""Iceberg's id of the row positions of a file, which a vector is about."""


def vector_indexes(table: FileStoreTable, snapshot: Snapshot) -> dict[str, IndexManifestEntry]:
    """Return the index files with deletion vectors of a snapshot, by name.

    Raises FormatError if the index manifest is missing or damaged.
    """
    if snapshot.index_manifest is None:
        return {}
    entries = read_index_manifest(table.io, table.paths, snapshot.index_manifest)
    return {
        entry.file_name: entry
        for entry in entries
        if entry.index_type == DELETION_VECTORS_INDEX and entry.dv_ranges
    }


def vectors_by_index(entries: Iterable[IcebergEntry]) -> dict[str, list[Json]]:
    """Return Iceberg's data files of deletion vectors in live Puffin files, by Paimon index file.

    The keys are names of the index files that the vectors were copied from. Entries that point to
    an index file itself, as Java Paimon writes them, are left out.
    """
    found: dict[str, list[Json]] = defaultdict(list)
    for entry in entries:
        if entry.is_live and entry.name.endswith(_SUFFIX):
            found[index_name(entry.name)].append(entry.data_file)
    return found


def index_name(name: str) -> str:
    """Return the name of the Paimon index file whose deletion vectors the file `name` contains.

    The name of a Puffin file begins with the name of the index file. For the index file itself,
    `name` is returned.
    """
    return name.partition(".")[0]


def puffin_file(
    table: FileStoreTable, entry: IndexManifestEntry, folder: str, version: str
) -> tuple[bytes, list[Json]]:
    """Return a Puffin file with the vectors of an index file, and their records for a manifest.

    `entry` is the entry of the index file. The records have the path of the Puffin file in
    `folder`; its name contains `version`, which makes it unique. Raises UnsupportedError for
    vectors that Iceberg readers cannot read, FormatError if the index file is missing.
    """
    index = index_path(table, entry)
    ranges = _readable_ranges(entry, index)
    data = read_dv_index(table, index)
    partition = table.partition_values(entry.partition)
    names = [data_file_path(table, partition, entry.bucket, r.data_file_name) for r in ranges]
    blobs = [data[r.offset : r.offset + r.length] for r in ranges]
    puffin, offsets = _encode(blobs, names, [r.cardinality for r in ranges])
    record = {
        "content": DELETES,
        "file_path": f"{folder}/{entry.file_name}.{version}{_SUFFIX}",
        "file_format": "puffin",
        "partition": partition_record(table, entry.partition),
        "file_size_in_bytes": len(puffin),
    }
    return puffin, [
        {
            **record,
            "record_count": dv_range.cardinality,
            "referenced_data_file": name,
            "content_offset": offset,
            "content_size_in_bytes": dv_range.length,
        }
        for dv_range, name, offset in zip(ranges, names, offsets, strict=True)
    ]


def _readable_ranges(entry: IndexManifestEntry, path: str) -> list[DeletionVectorRange]:
    """Return the ranges of the vectors in an index file, all with 64 bits and known cardinality.

    Ranges of 64-bit vectors include length and checksum, so each ends where the next one begins.
    """
    ranges = sorted(entry.dv_ranges or (), key=attrgetter("offset"))
    ends = [*(dv_range.offset for dv_range in ranges[1:]), entry.file_size]
    for dv_range, end in zip(ranges, ends, strict=True):
        if dv_range.offset + dv_range.length != end or dv_range.cardinality is None:
            raise UnsupportedError(
                f"{path}: Iceberg readers cannot read the deletion vector of "
                f"{dv_range.data_file_name}, which was written without "
                f"'{honoured.DELETION_VECTORS_BITMAP64.name}'; Iceberg metadata follows once a "
                "full compaction has applied it"
            )
    return ranges


def _encode(
    blobs: Sequence[bytes], names: Sequence[str], cardinalities: Sequence[int | None]
) -> tuple[bytes, list[int]]:
    """Return a Puffin file of deletion vectors, and the offset of each vector in it."""
    offsets, end = [], len(_MAGIC)
    for blob in blobs:
        offsets.append(end)
        end += len(blob)
    described = [
        {
            "type": "deletion-vector-v1",
            "fields": [_ROW_POSITION],
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": offset,
            "length": len(blob),
            "properties": {"referenced-data-file": name, "cardinality": str(count)},
        }
        for offset, blob, name, count in zip(offsets, blobs, names, cardinalities, strict=True)
    ]
    footer = json.dumps({"blobs": described, "properties": {}}, ensure_ascii=False).encode()
    ending = _FOOTER_END.pack(len(footer), 0) + _MAGIC
    return b"".join([_MAGIC, *blobs, _MAGIC, footer, ending]), offsets
