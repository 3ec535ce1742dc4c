import pytest

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.consumers import consumers, delete_consumer, reset_consumer
from tests.support.native_tables import native_table


@pytest.fixture
def table() -> FileStoreTable:
    return native_table("/w", [("id", "INT")], io=MemoryFileIO())


def test_a_consumer_goes_on_from_where_it_was_put(table: FileStoreTable) -> None:
    assert consumers(table) == {}
    reset_consumer(table, "b", 7)
    reset_consumer(table, "a", 2)
    reset_consumer(table, "b", 3)
    assert consumers(table) == {"a": 2, "b": 3}
    assert table.io.read_bytes("/w/db.db/t/consumer/consumer-b") == b'{"nextSnapshot": 3}'


def test_a_forgotten_consumer_is_gone(table: FileStoreTable) -> None:
    reset_consumer(table, "a", 2)
    delete_consumer(table, "a")
    assert consumers(table) == {}
    with pytest.raises(ConfigError, match="no consumer 'a'; its consumers: none"):
        delete_consumer(table, "a")


def test_a_damaged_file_is_named(table: FileStoreTable) -> None:
    table.io.write_new("/w/db.db/t/consumer/consumer-x", b"{}")
    with pytest.raises(FormatError, match="consumer-x"):
        consumers(table)


def test_a_name_cannot_lead_out_of_its_folder(table: FileStoreTable) -> None:
    with pytest.raises(ConfigError, match="consumer name"):
        reset_consumer(table, "../../x", 1)
