"""Checking the files of one bucket against each other.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/
"""

from collections.abc import Sequence
from itertools import pairwise

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.bucket_read import comparable_key
from ingestd.paimon.table.verify.findings import VerifyFindings


def check_levels(
    table: FileStoreTable, entries: Sequence[ManifestEntry], findings: VerifyFindings
) -> None:
    """Level 0 must tell what is newer, every other level must hold each key once."""
    totals = {entry.total_buckets for entry in entries}
    if len(totals) > 1:
        names = ", ".join(entry.file.file_name for entry in entries)
        findings.error("total-buckets", names, f"the files disagree: {sorted(totals)}")
    if not table.schema.primary_keys or entries[0].bucket < 0:
        # What waits for its bucket is in no tree yet.
        return
    types = [field.type for field in table.schema.select(table.schema.trimmed_primary_keys)]
    levels: dict[int, list[DataFileMeta]] = {}
    for entry in entries:
        levels.setdefault(entry.file.level, []).append(entry.file)
    for level, files in sorted(levels.items()):
        with findings.reading(files[0].file_name, "key-range"):
            if level == 0:
                _check_sequences(types, files, findings)
            else:
                _check_ranges(types, level, files, findings)


def _check_ranges(
    types: Sequence[DataType], level: int, files: Sequence[DataFileMeta], findings: VerifyFindings
) -> None:
    ordered = sorted(files, key=lambda file: comparable_key(types, file.min_key))
    for one, two in pairwise(ordered):
        if comparable_key(types, one.max_key) >= comparable_key(types, two.min_key):
            findings.error(
                "level-overlap", two.file_name, f"overlaps {one.file_name} on level {level}"
            )


def _check_sequences(
    types: Sequence[DataType], files: Sequence[DataFileMeta], findings: VerifyFindings
) -> None:
    """Files of one key range must not share sequence numbers; rolled files share no keys."""
    ordered = sorted(files, key=lambda file: (file.min_sequence_number, file.file_name))
    for one, two in pairwise(ordered):
        if one.max_sequence_number < two.min_sequence_number:
            continue
        low, high = comparable_key(types, one.min_key), comparable_key(types, one.max_key)
        if comparable_key(types, two.max_key) < low or comparable_key(types, two.min_key) > high:
            continue
        findings.warning(
            "sequence-overlap",
            two.file_name,
            f"shares sequence numbers and keys with {one.file_name}",
        )
