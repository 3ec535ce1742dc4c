from pathlib import Path

import numpy as np

from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.table.compact.merge_tree_compact import BucketVectors
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors, write_deletion_vectors
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import native_table


def table_of(folder: Path) -> FileStoreTable:
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    return native_table(folder, [("k", "INT")], keys=["k"], options=options)


def at(*positions: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(positions, np.int64)


def held(table: FileStoreTable, entry: IndexManifestEntry) -> dict[str, list[int]]:
    vectors = DeletionVectors.of(table, [entry])
    names = [dv_range.data_file_name for dv_range in entry.dv_ranges or ()]
    return {name: vectors.deleted_rows(EMPTY_ROW, 0, name).tolist() for name in names}


def test_all_vectors_of_the_bucket_are_written_again_when_one_changes(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    given = {"a": at(1, 5), "b": at(2), "gone": at(0)}
    before = write_deletion_vectors(table, EMPTY_ROW, 0, given)
    vectors = BucketVectors(table, EMPTY_ROW, 0, [before])
    vectors.delete("a", at(3))
    vectors.delete("a", at(1, 9))
    vectors.delete("new", at(7))
    vectors.delete("b", at())
    vectors.remove("gone")
    entry = vectors.write()
    assert entry is not None
    assert held(table, entry) == {"a": [1, 3, 5, 9], "b": [2], "new": [7]}
    # A concurrent reader of the bucket sees the rows before the compaction.
    assert vectors.deletions.deleted_rows(EMPTY_ROW, 0, "a").tolist() == [1, 5]


def test_nothing_is_written_if_nothing_changes(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    before = write_deletion_vectors(table, EMPTY_ROW, 0, {"a": at(1)})
    vectors = BucketVectors(table, EMPTY_ROW, 0, [before])
    vectors.remove("without a vector")
    assert (vectors.has("a"), vectors.has("b")) == (True, False)
    assert vectors.write() is None
    assert BucketVectors(table, EMPTY_ROW, 0, []).write() is None


def test_when_all_vectors_are_gone_an_empty_file_says_so(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    before = write_deletion_vectors(table, EMPTY_ROW, 0, {"a": at(1)})
    vectors = BucketVectors(table, EMPTY_ROW, 0, [before])
    vectors.remove("a")
    entry = vectors.write()
    assert entry is not None
    assert (entry.row_count, entry.dv_ranges, entry.file_size) == (0, (), 1)
