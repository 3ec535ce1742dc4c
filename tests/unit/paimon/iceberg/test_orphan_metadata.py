"""Files of Iceberg metadata that no readable document names."""

from dataclasses import replace
from typing import Any

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.iceberg.iceberg_sync import sync_iceberg
from ingestd.paimon.iceberg.orphan_metadata import iceberg_orphans
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import native_table, put

LATER = 2**60


def new_table(io: Any, **options: str) -> FileStoreTable:
    on = {"metadata.iceberg.storage": "table-location", "bucket": "-1", **options}
    table = native_table("/w", [("id", "INT")], options=on, io=io)
    for number in range(3):
        put(table, [{"id": number}])
        sync_iceberg(table)
    return table


def names(table: FileStoreTable) -> list[str]:
    return [orphan.path.rpartition("/")[2] for orphan in iceberg_orphans(table, LATER)]


@pytest.mark.parametrize("storage", ["table-location", "hadoop-catalog"])
def test_only_files_that_no_document_names_are_orphans(storage: str) -> None:
    table = new_table(MemoryFileIO(), **{"metadata.iceberg.storage": storage})
    assert names(table) == []
    folder = f"{table.path}/metadata" if storage == "table-location" else "/w/iceberg/db/t/metadata"
    for name in ("0-m1.avro", "snap-1-0.avro", ".version-hint.text.0.tmp"):
        table.io.write_new(f"{folder}/{name}", b"x")
    assert names(table) == [".version-hint.text.0.tmp", "0-m1.avro", "snap-1-0.avro"]
    assert iceberg_orphans(table, 0) == (), "younger files may be named soon"
    table.io.write_new(f"{folder}/00001-0.metadata.json", b"{}")
    assert len(names(table)) == 3, "a REST catalog may keep its documents here"


def test_every_readable_document_keeps_its_files() -> None:
    table = new_table(
        MemoryFileIO(),
        **{"metadata.iceberg.delete-after-commit.enabled": "false",
           "metadata.iceberg.compaction.min.file-num": "2",
           "metadata.iceberg.compaction.max.file-num": "2"},
    )  # fmt: skip
    assert names(table) == []
    for version in (2, 3):
        table.io.overwrite(f"{table.path}/metadata/v{version}.metadata.json", b"{")
    assert len(names(table)) > 2, "the files of damaged documents are not needed"
    assert not [name for name in names(table) if name.endswith(".json")]


def test_a_damaged_list_ends_the_search() -> None:
    table = new_table(MemoryFileIO())
    for name in table.io.list_names(f"{table.path}/metadata"):
        if name.startswith("snap-"):
            table.io.overwrite(f"{table.path}/metadata/{name}", b"{")
    with pytest.raises(FormatError, match="snap-"):
        iceberg_orphans(table, LATER)


def test_a_document_that_is_replaced_during_the_search_is_read_again() -> None:
    io = FaultyFileIO(MemoryFileIO())
    table = new_table(io)
    put(table, [{"id": 4}])
    rival = replace(table, io=io.inner)
    io.issues.append(
        ValidationIssue("read_bytes", "v3.metadata", action=lambda: sync_iceberg(rival))
    )
    assert names(table) == []


def test_branches_and_tables_without_the_option_have_no_metadata() -> None:
    table = new_table(MemoryFileIO())
    table.io.write_new(f"{table.path}/metadata/0-m1.avro", b"x")
    assert iceberg_orphans(replace(table, branch="b"), LATER) == ()
    off = replace(table.schema, options={"bucket": "-1"})
    assert iceberg_orphans(table.with_schema(off), LATER) == ()
