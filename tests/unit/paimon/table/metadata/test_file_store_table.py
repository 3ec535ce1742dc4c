"""The handle of a table."""

import pickle
from dataclasses import replace

from ingestd.paimon.table.metadata.schema_manager import publish_schema
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.metadata_tables import metadata_table, with_io


def test_older_and_newer_schemas_are_read_once() -> None:
    table = metadata_table()
    publish_schema(table.io, table.paths, replace(table.schema, id=1, comment="newer"))
    io = FaultyFileIO(table.io)
    handle = with_io(table, io)
    assert [handle.schemas(1).comment for _ in range(3)] == ["newer"] * 3
    assert handle.schemas(0) is table.schema
    assert len(io.operations("read_bytes")) == 1


def test_a_table_travels_to_other_processes() -> None:
    table = metadata_table(partition_keys=("p",))
    assert table.options.bucket == 2
    copy = pickle.loads(pickle.dumps(table))
    assert (copy.path, copy.schema, copy.name) == (table.path, table.schema, table.name)
    assert copy.partition_types == table.partition_types
    assert copy.paths.snapshot(1) == table.paths.snapshot(1)


def test_another_schema_gives_another_handle() -> None:
    table = metadata_table()
    wider = replace(table.schema, id=1, options={"bucket": "7"})
    assert table.with_schema(wider).options.bucket == 7
    assert table.options.bucket == 2
