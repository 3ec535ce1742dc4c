"""Which existing tables are written, and what is logged of their options."""

from dataclasses import replace

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.writable import check_writable
from tests.support.native_tables import native_table


def table(option: str, value: str) -> FileStoreTable:
    given = native_table("/w", [("id", "INT")], io=MemoryFileIO())
    return given.with_schema(replace(given.schema, options={option: value}))


def test_a_table_with_an_unsupported_option_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"'data-evolution\.enabled' = 'true'"):
        check_writable(table("data-evolution.enabled", "true"))


def test_options_without_effect_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        check_writable(table("sink.parallelism", "2"))
    (warning,) = caplog.records
    assert warning.message == "table_options_ignored"
    assert warning.__dict__["ctx"]["options"].keys() == {"sink.parallelism"}
