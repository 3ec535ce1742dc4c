"""Deletion vectors of an index file become a Puffin file that has the same bytes."""

import json
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.iceberg.manifest_changes import added_entries
from ingestd.paimon.iceberg.vector_files import puffin_file, vector_indexes, vectors_by_index
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.deletion_vector import decode_deletion_vector
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.table.files.deletion_vectors import write_deletion_vectors
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import native_table, put

DELETED = {"a.parquet": [3, 2**31 - 1], "b.parquet": [0]}


def index_file(bitmap64: str = "true") -> tuple[FileStoreTable, IndexManifestEntry]:
    on = {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": bitmap64}
    table = native_table(
        "/w", [("id", "INT"), ("dt", "STRING")], keys=("id", "dt"), partitions=["dt"],
        options={"bucket": "1", **on}, io=MemoryFileIO(),
    )  # fmt: skip
    vectors = {name: np.array(rows, np.int64) for name, rows in DELETED.items()}
    partition = serialize_row(table.partition_types, ("x",))
    return table, write_deletion_vectors(table, partition, 0, vectors)


def footer(puffin: bytes) -> Any:
    size, flags = struct.unpack("<ii", puffin[-12:-4])
    assert (puffin[:4], puffin[-4:], puffin[-16 - size :][:4], flags) == (*[b"PFA1"] * 3, 0)
    return json.loads(puffin[-12 - size : -12])


def test_a_puffin_file_has_the_vectors_where_footer_and_records_say() -> None:
    table, entry = index_file()
    puffin, records = puffin_file(table, entry, "/w/metadata", "v")
    assert [record["referenced_data_file"] for record in records] == [
        f"/w/db.db/t/dt=x/bucket-0/{name}" for name in DELETED
    ]
    for record, blob, rows in zip(records, footer(puffin)["blobs"], DELETED.values(), strict=True):
        assert record["file_path"] == f"/w/metadata/{entry.file_name}.v.puffin"
        assert (record["content"], record["partition"]) == (1, {"dt": "x"})
        assert (record["record_count"], record["file_size_in_bytes"]) == (len(rows), len(puffin))
        at, size = record["content_offset"], record["content_size_in_bytes"]
        assert (blob["type"], blob["offset"], blob["length"]) == ("deletion-vector-v1", at, size)
        assert blob["properties"] == {
            "referenced-data-file": record["referenced_data_file"], "cardinality": str(len(rows)),
        }  # fmt: skip
        assert decode_deletion_vector(puffin[at : at + size], "puffin").tolist() == rows
    assert vectors_by_index(added_entries(records, 1)) == {entry.file_name: records}


def test_vectors_that_java_lists_are_in_no_puffin_file() -> None:
    table, entry = index_file()
    _, records = puffin_file(table, entry, "/w/metadata", "v")
    in_index = [{**record, "file_path": f"/w/{entry.file_name}"} for record in records]
    assert vectors_by_index(added_entries(in_index, 1)) == {}


def test_vectors_of_32_bits_and_of_unknown_cardinality_are_refused() -> None:
    table, small = index_file(bitmap64="false")
    _, entry = index_file()
    unknown = tuple(replace(one, cardinality=None) for one in entry.dv_ranges or ())
    for refused in (small, replace(entry, dv_ranges=unknown)):
        with pytest.raises(UnsupportedError, match=r"a\.parquet, which was written without"):
            puffin_file(table, refused, "/w/metadata", "v")


def test_a_snapshot_without_index_files_has_no_vectors() -> None:
    table, _ = index_file()
    snapshot = put(table, [{"id": 1, "dt": "x"}]).snapshot
    assert snapshot is not None
    assert vector_indexes(table, snapshot) == {}
