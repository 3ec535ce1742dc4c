import dataclasses

import numpy as np
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors, write_deletion_vectors
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.verify.table_verify import verify_deletion_vectors
from ingestd.paimon.table.verify.verify_findings import VerifyFindings
from tests.support.native_tables import native_table, put


def _table() -> FileStoreTable:
    return native_table("/w", [("k", "INT")], options={"bucket": "-1"}, io=MemoryFileIO())


def _positions(*rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(rows, np.int64)


def test_vectors_written_are_found_by_their_files() -> None:
    table = _table()
    vectors = {"a": _positions(1, 5), "b": _positions(0)}
    entry = write_deletion_vectors(table, EMPTY_ROW, 3, vectors)
    assert (entry.kind, entry.index_type, entry.row_count) == (FileKind.ADD, "DELETION_VECTORS", 2)
    assert entry.file_size == table.io.size(table.paths.index(entry.file_name))
    found = DeletionVectors.of(table, [entry])
    assert found.deleted_rows(EMPTY_ROW, 3, "a").tolist() == [1, 5]
    assert found.deleted_rows(EMPTY_ROW, 3, "b").tolist() == [0]
    assert found.deleted_rows(EMPTY_ROW, 2, "a").tolist() == []
    assert found.deleted_rows(EMPTY_ROW, 3, "c").tolist() == []


def test_a_data_file_has_one_vector_only() -> None:
    table = _table()
    entries = [write_deletion_vectors(table, EMPTY_ROW, 0, {"a": _positions(1)}) for _ in "xy"]
    with pytest.raises(FormatError, match="data file a has deletion vectors both in"):
        DeletionVectors.of(table, entries)


def test_a_missing_index_file_is_reported() -> None:
    table = _table()
    entry = write_deletion_vectors(table, EMPTY_ROW, 0, {"a": _positions(1)})
    table.io.delete_quietly(table.paths.index(entry.file_name))
    with pytest.raises(FormatError, match="are missing"):
        DeletionVectors.of(table, [entry]).deleted_rows(EMPTY_ROW, 0, "a")


def test_deleted_rows_are_not_read() -> None:
    table = _table()
    put(table, [{"k": n} for n in range(6)])
    (file,) = live_files(table, latest_snapshot(table.io, table.paths))
    name = file.file.file_name
    entry = write_deletion_vectors(table, EMPTY_ROW, 0, {name: _positions(0, 4)})
    reader = DataFileReader(table, DeletionVectors.of(table, [entry]))
    rows = reader.read(EMPTY_ROW, 0, file.file, table.schema.fields)
    assert rows.column("k").to_pylist() == [1, 2, 3, 5]
    entry = write_deletion_vectors(table, EMPTY_ROW, 0, {name: _positions(6)})
    reader = DataFileReader(table, DeletionVectors.of(table, [entry]))
    with pytest.raises(FormatError, match="has 6 rows, its deletion vector deletes row 6"):
        reader.read(EMPTY_ROW, 0, file.file, table.schema.fields)


def test_checking_finds_what_is_wrong_with_vectors() -> None:
    table = _table()
    entry = write_deletion_vectors(table, EMPTY_ROW, 0, {"a": _positions(1, 5)})

    def found(rows: dict[str, int], **changed: object) -> list[str]:
        findings = VerifyFindings()
        verify_deletion_vectors(table, dataclasses.replace(entry, **changed), rows, findings)  # type: ignore[arg-type]  # any field
        return [one.message for one in findings.found]

    assert found({"a": 6}) == []
    assert "row 5 is deleted" in found({"a": 5})[0]
    assert "is no live file" in found({"b": 6})[0]
    assert ", expected " in found({"a": 6}, file_size=1)[0]
    assert "has 1 vectors, expected 2" in found({"a": 6}, row_count=2)[0]
    assert "are missing" in found({"a": 6}, file_name="gone")[0]
