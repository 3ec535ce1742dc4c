"""New data files have the columns of data files, and go with all that belongs to them."""

from dataclasses import replace

import pyarrow as pa

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.table.files.data_files import (
    data_file_path,
    delete_uncommitted_files,
    to_data_file_rows,
)
from ingestd.paimon.table.metadata.file_store_scan import live_entries
from ingestd.paimon.table.metadata.table_state import load_state
from tests.support.native_tables import native_table, put


def test_keys_stand_in_a_file_twice() -> None:
    schema = native_table(
        "/w", [("id", "INT"), ("v", "STRING")], keys=["id"], io=MemoryFileIO()
    ).schema
    given = pa.table(
        {
            "v": ["a"],
            "id": pa.array([7], pa.int32()),
            VALUE_KIND: pa.array([0], pa.int8()),
            SEQUENCE_NUMBER: pa.array([3], pa.int64()),
        }
    )
    wanted = {"_KEY_id": 7, SEQUENCE_NUMBER: 3, VALUE_KIND: 0, "id": 7, "v": "a"}
    found = to_data_file_rows(schema, given)
    assert found.column_names == list(wanted)
    assert found.to_pylist() == [wanted]


def test_a_file_goes_with_those_beside_it_and_the_others_stay() -> None:
    io = MemoryFileIO()
    table = native_table("/w", [("id", "INT")], io=io)
    put(table, [{"id": 1}])
    put(table, [{"id": 2}])
    first, second = (e.file for e in live_entries(table, load_state(table).manifests))
    beside = data_file_path(table, (), 0, "beside.index")
    io.write_new(beside, b"")
    delete_uncommitted_files(table, (), 0, [replace(first, extra_files=("beside.index",))])
    delete_uncommitted_files(table, (), 0, [first])
    there = [io.exists(data_file_path(table, (), 0, one.file_name)) for one in (first, second)]
    assert there == [False, True]
    assert not io.exists(beside)
