"""Checking deletion vectors: they must be sound, and of rows that their data files have.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/
"""

from collections.abc import Mapping

from ingestd.errors import FormatError
from ingestd.paimon.spec.deletion_vector import decode_dv_index
from ingestd.paimon.spec.index_manifest import DeletionVectorRange, IndexManifestEntry
from ingestd.paimon.table.files.deletion_vectors import dv_index_path, read_dv_index
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.verify.findings import VerifyFindings

_CODE = "deletion-vector"

RowCounts = Mapping[str, int]
"""Rows of the live data files of one bucket, by name."""


def check_deletion_vectors(
    table: FileStoreTable,
    entry: IndexManifestEntry,
    row_counts: RowCounts,
    findings: VerifyFindings,
) -> frozenset[str]:
    """Check an index file; the names of the data files that it has vectors of."""
    ranges = entry.dv_ranges or ()
    with findings.reading(entry.file_name, _CODE):
        path = dv_index_path(table, entry)
        data = read_dv_index(table, path)
        if len(data) != entry.file_size:
            message = f"has {len(data)} bytes, {entry.file_size} are promised"
            findings.error(_CODE, entry.file_name, message)
        if len(ranges) != entry.row_count:
            message = f"has {len(ranges)} vectors, {entry.row_count} are promised"
            findings.error(_CODE, entry.file_name, message)
        for part in ranges:
            _check_vector(data, part, path, row_counts, findings)
    return frozenset(part.data_file_name for part in ranges)


def _check_vector(
    data: bytes,
    part: DeletionVectorRange,
    path: str,
    row_counts: RowCounts,
    findings: VerifyFindings,
) -> None:
    name = part.data_file_name
    rows = row_counts.get(name)
    if rows is None:
        findings.error(_CODE, name, f"has a deletion vector in {path} and is no live file")
        return
    try:
        positions = decode_dv_index(data, (part,), path)[name]
    except FormatError as error:
        findings.error(_CODE, name, error.message)
        return
    if len(positions) and int(positions[-1]) >= rows:
        findings.error(_CODE, name, f"has {rows} rows, row {int(positions[-1])} is deleted")
