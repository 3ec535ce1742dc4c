import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.catalog.hive_types import hive_type
from ingestd.paimon.spec.data_types import DataType, parse_type

INT = DataType("INT")


@pytest.mark.parametrize(
    ("paimon", "hive"),
    [
        ("TIMESTAMP_LTZ(3)", "timestamp with local time zone"),
        ("TIME(3)", "string"),
        ("VARIANT", "struct<value:binary,metadata:binary>"),
        ("CHAR(255)", "char(255)"),
        ("CHAR(256)", "string"),
        ("VARCHAR(65535)", "varchar(65535)"),
        ("VARCHAR(65536)", "string"),
        ("DECIMAL(38, 18) NOT NULL", "decimal(38,18)"),
    ],
)
def test_types_have_the_names_that_hive_gives_them(paimon: str, hive: str) -> None:
    assert hive_type(parse_type(paimon)) == hive


def test_a_multiset_is_a_map_of_counts() -> None:
    assert hive_type(DataType("MULTISET", element=INT)) == "map<int,int>"


def test_a_type_that_hive_does_not_have_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"VECTOR.* does not exist in Hive"):
        hive_type(DataType("VECTOR", element=DataType("FLOAT"), length=3))
