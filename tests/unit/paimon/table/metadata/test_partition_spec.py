import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import (
    AnyPartitionOf,
    parse_partition_spec,
    partition_filter,
)
from tests.support.native_tables import native_table


@pytest.fixture
def table() -> FileStoreTable:
    columns = [("id", "INT"), ("dt", "DATE"), ("hr", "INT")]
    return native_table("/w", columns, partitions=["dt", "hr"], io=MemoryFileIO())


def test_values_are_those_of_the_columns(table: FileStoreTable) -> None:
    assert parse_partition_spec(table, "dt=2024-01-01, hr=3") == {"dt": 19723, "hr": 3}
    assert parse_partition_spec(table, "dt=2024-01-01/hr=3") == {"dt": 19723, "hr": 3}
    assert parse_partition_spec(table, "hr=__DEFAULT_PARTITION__") == {"hr": None}


@pytest.mark.parametrize("text", ["", "dt", "id=1", "hr=1,hr=2", "hr=x", "dt=2024-13-01", "=1"])
def test_what_is_no_partition_is_refused(table: FileStoreTable, text: str) -> None:
    with pytest.raises(ConfigError):
        parse_partition_spec(table, text)


def test_a_table_without_partitions_has_none_to_name() -> None:
    table = native_table("/w", [("id", "INT")], io=MemoryFileIO())
    with pytest.raises(ConfigError, match="no partitions"):
        parse_partition_spec(table, "dt=1")


def test_nan_is_the_partition_of_nan() -> None:
    columns = [("id", "INT"), ("p", "DOUBLE"), ("hr", "INT")]
    table = native_table("/w", columns, partitions=["p", "hr"], io=MemoryFileIO())
    matches = partition_filter(table, [parse_partition_spec(table, "p=NaN")])
    assert isinstance(matches, AnyPartitionOf)
    assert matches((float("nan"), 1))
    assert not matches((1.5, 1))
    assert not matches((None, 1))


def test_whole_specs_become_partitions_and_others_a_test(table: FileStoreTable) -> None:
    whole = partition_filter(table, [{"hr": 3, "dt": 1}])
    assert whole == frozenset({serialize_row(table.partition_types, [1, 3])})
    some = partition_filter(table, [{"hr": 3, "dt": 1}, {"hr": None}])
    assert isinstance(some, AnyPartitionOf)
    assert [some(values) for values in ((1, 3), (2, None), (2, 3), (1, 0))] == [
        True,
        True,
        False,
        False,
    ]
