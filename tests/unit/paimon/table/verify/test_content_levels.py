"""Checking the files of a bucket against each other."""

from dataclasses import replace

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.table.verify.content import check_levels
from ingestd.paimon.table.verify.verify_findings import VerifyFindings
from tests.support.metadata_tables import data_file
from tests.support.native_tables import native_table


def _entry(
    name: str, keys: tuple[int, int], numbers: tuple[int, int], level: int, total: int = 1
) -> ManifestEntry:
    low, high = (serialize_row([DataType("INT")], [key]) for key in keys)
    file = replace(
        data_file(name),
        min_key=low,
        max_key=high,
        min_sequence_number=numbers[0],
        max_sequence_number=numbers[1],
        level=level,
    )
    return ManifestEntry(FileKind.ADD, EMPTY_ROW, 0, total, file)


def _found(*entries: ManifestEntry) -> list[tuple[str, str]]:
    table = native_table(
        "/w", [("id", "INT")], keys=["id"], options={"bucket": "1"}, io=MemoryFileIO()
    )
    findings = VerifyFindings()
    check_levels(table, entries, findings)
    return [(finding.code, finding.where) for finding in findings.found]


def test_files_that_share_a_key_above_level_0_are_wrong() -> None:
    entries = [_entry("b", (5, 9), (0, 1), 3), _entry("a", (0, 5), (0, 1), 3)]
    assert _found(*entries) == [("level-overlap", "b")]


def test_files_of_different_levels_may_share_keys() -> None:
    assert _found(_entry("a", (0, 5), (0, 1), 1), _entry("b", (0, 5), (0, 1), 2)) == []


def test_level_0_files_share_keys_or_sequence_numbers_but_not_both() -> None:
    assert _found(_entry("a", (0, 5), (0, 4), 0), _entry("b", (0, 5), (5, 9), 0)) == []
    assert _found(_entry("a", (0, 5), (0, 9), 0), _entry("b", (6, 9), (3, 4), 0)) == []
    assert _found(_entry("a", (0, 5), (0, 9), 0), _entry("b", (5, 9), (3, 4), 0)) == [
        ("sequence-overlap", "b")
    ]


def test_files_of_different_bucket_numbers_are_wrong() -> None:
    one, two = _entry("a", (0, 1), (0, 1), 0, total=1), _entry("b", (2, 3), (2, 3), 0, total=2)
    assert _found(one, two) == [("total-buckets", "a, b")]


def test_a_key_that_is_no_row_is_a_finding() -> None:
    broken = _entry("a", (0, 1), (0, 1), 1)
    other = _entry("b", (2, 3), (0, 1), 1)
    torn = replace(broken, file=replace(broken.file, min_key=b"\0"))
    assert _found(torn, other) == [("key-range", "a")]
