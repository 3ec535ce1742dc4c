"""Schema files: found, read, published once."""

from dataclasses import replace

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.table.metadata.schema_manager import (
    latest_schema,
    latest_schema_id,
    publish_schema,
    read_schema,
    schema_ids,
)
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.metadata_tables import metadata_table


def test_the_newest_schema_has_the_highest_id() -> None:
    table = metadata_table()
    for schema_id in range(1, 12):
        assert publish_schema(table.io, table.paths, replace(table.schema, id=schema_id))
    newest = latest_schema(table.io, table.paths)
    assert newest is not None
    assert newest.id == 11
    assert schema_ids(table.io, table.paths) == list(range(12))


def test_an_id_is_published_once() -> None:
    table = metadata_table()
    second = replace(table.schema, comment="another")
    assert not publish_schema(table.io, table.paths, second)
    assert read_schema(table.io, table.paths, 0) == table.schema


def test_a_missing_schema_is_named() -> None:
    table = metadata_table()
    with pytest.raises(FormatError, match="schema-3 is missing"):
        read_schema(table.io, table.paths, 3)


def test_no_newer_schema_costs_one_look() -> None:
    table = metadata_table()
    io = FaultyFileIO(table.io)
    assert latest_schema_id(io, table.paths, 0) == 0
    assert len(io.calls) == 1
    for schema_id in (1, 2, 3):
        publish_schema(table.io, table.paths, replace(table.schema, id=schema_id))
    assert latest_schema_id(io, table.paths, 0) == 3


def test_a_directory_without_schemas_is_no_table() -> None:
    table = metadata_table()
    assert latest_schema(table.io, type(table.paths)("/elsewhere")) is None
