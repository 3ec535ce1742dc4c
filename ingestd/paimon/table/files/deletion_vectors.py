"""Read the deletion vectors of data files, and write the vectors of a bucket.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#deletion-vectors

The byte layout is implemented in `spec.deletion_vector`.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import FormatError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.deletion_vector import Positions, decode_dv_index, encode_dv_index
from ingestd.paimon.spec.index_manifest import (
    DELETION_VECTORS_INDEX,
    DeletionVectorRange,
    IndexManifestEntry,
)
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path

_FileKey = tuple[bytes, int, str]
_NONE = np.empty(0, np.int64)


@dataclass(slots=True)
class DeletionVectors:
    """Deletion vectors of the data files of a snapshot, read on demand.

    The last index file read is cached, because the data files of a bucket share an index file.
    """

    table: FileStoreTable
    _locations: Mapping[_FileKey, tuple[IndexManifestEntry, DeletionVectorRange]]
    _last: tuple[str, bytes] = field(default=("", b""))

    @classmethod
    def of(cls, table: FileStoreTable, entries: Iterable[IndexManifestEntry]) -> "DeletionVectors":
        """Return the deletion vectors in the index files of a snapshot.

        Entries of other index types are ignored. Raises FormatError if a data file has two deletion
        vectors.
        """
        locations: dict[_FileKey, tuple[IndexManifestEntry, DeletionVectorRange]] = {}
        for entry in entries:
            if entry.index_type != DELETION_VECTORS_INDEX:
                continue
            for dv_range in entry.dv_ranges or ():
                key = (entry.partition, entry.bucket, dv_range.data_file_name)
                if key in locations:
                    raise FormatError(
                        f"data file {dv_range.data_file_name} has deletion vectors both in "
                        f"{locations[key][0].file_name} and in {entry.file_name}"
                    )
                locations[key] = (entry, dv_range)
        return cls(table, locations)

    def deleted_rows(self, partition: bytes, bucket: int, file_name: str) -> Positions:
        """Return the positions of a data file's deleted rows, ascending; empty without a vector.

        `partition` is the serialized row. Raises FormatError if the index file is missing or
        damaged.
        """
        location = self._locations.get((partition, bucket, file_name))
        if location is None:
            return _NONE
        entry, dv_range = location
        path = index_path(self.table, entry)
        return decode_dv_index(self._bytes(path), (dv_range,), path)[file_name]

    def cardinality(self, partition: bytes, bucket: int, file: DataFileMeta) -> int:
        """Return the number of rows of a data file that its deletion vector deletes; 0 without one.

        `partition` is the serialized row. If the manifest entry does not state the number, the
        vector is read: FormatError is raised if its index file is missing or damaged.
        """
        location = self._locations.get((partition, bucket, file.file_name))
        if location is None:
            return 0
        known = location[1].cardinality
        if known is not None:
            return known
        return len(self.deleted_rows(partition, bucket, file.file_name))

    def _bytes(self, path: str) -> bytes:
        known, data = self._last
        if known != path:
            data = read_dv_index(self.table, path)
            self._last = (path, data)
        return data


def read_dv_index(table: FileStoreTable, path: str) -> bytes:
    """Return the bytes of a deletion vector index file. Raises FormatError if it is missing."""
    try:
        return table.io.read_bytes(path)
    except FileNotFoundError as error:
        raise FormatError(
            f"deletion vectors {path} are missing: their snapshot has expired meanwhile, or the "
            "table is damaged"
        ) from error


def write_deletion_vectors(
    table: FileStoreTable,
    partition: bytes,
    bucket: int,
    vectors: Mapping[str, Positions],
) -> IndexManifestEntry:
    """Write the deletion vectors of a bucket's data files as one new index file.

    `partition` is the serialized row. `vectors` contains the positions of the deleted rows,
    ascending, by name of the data file. In a table with buckets the file replaces all vectors of
    the bucket, so unchanged vectors must be included; without any vector, an empty file replaces
    the old one. The caller commits the entry.
    """
    bitmap64 = honoured.DELETION_VECTORS_BITMAP64.of(table.schema.options)
    data, ranges = encode_dv_index(vectors, bitmap64=bitmap64)
    entry = IndexManifestEntry(
        kind=FileKind.ADD,
        partition=partition,
        bucket=bucket,
        index_type=DELETION_VECTORS_INDEX,
        file_name=f"index-{uuid.uuid4()}-0",
        file_size=len(data),
        row_count=len(ranges),
        dv_ranges=ranges,
    )
    table.io.write_new(index_path(table, entry), data)
    reach(CrashPoint.VECTORS_WRITTEN)
    return entry
