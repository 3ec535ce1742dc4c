"""Names that tables, or files of some formats, cannot have."""

import pytest

from ingestd.paimon.spec.column_names import (
    column_name_problems,
    file_name_problem,
    nested_name_problem,
    nested_name_problems,
    table_name_problem,
)
from ingestd.paimon.spec.data_types import DataField, DataType


@pytest.mark.parametrize(
    "name", ["rowkind", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "_ROW_ID", "_KEY_", "_KEY_id"]
)
def test_names_of_the_table_format_are_reserved(name: str) -> None:
    assert "reserved" in (table_name_problem(name) or "")


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_a_blank_is_no_name(name: str) -> None:
    assert "empty" in (table_name_problem(name) or "")


@pytest.mark.parametrize(
    "name", ["RowKind", "_key_id", "KEY_id", "_row_id", 'a"b', "a\\b", "a\nb", "\x00", "`a`", "ä"]
)
def test_any_other_name_can_be_had(name: str) -> None:
    assert table_name_problem(name) is None
    assert column_name_problems([name], {}) == {}
    assert file_name_problem(name, "parquet") is None


@pytest.mark.parametrize(
    ("name", "file_format", "fits"),
    [
        ("a_1", "avro", True),
        ("1a", "avro", False),
        ("ä", "avro", False),
        ("a b", "avro", False),
        ("a b", "orc", True),
        ('a"b\\', "orc", True),
        ("`a`", "orc", False),
        ("a`", "orc", False),
    ],
)
def test_a_file_format_has_rules_of_its_own(name: str, file_format: str, fits: bool) -> None:
    assert (file_name_problem(name, file_format) is None) == fits


@pytest.mark.parametrize(
    "options",
    [
        {"file.format": "AVRO"},
        {"file.format.per.level": "0: avro, 5:parquet"},
        {"file.format": "parquet", "changelog-file.format": "avro"},
    ],
)
def test_the_files_of_a_table_count(options: dict[str, str]) -> None:
    found = column_name_problems(["a_b", "a b", "rowkind"], options)
    assert list(found) == ["a b", "rowkind"]
    assert "Avro" in found["a b"]


@pytest.mark.parametrize(
    ("name", "file_format", "fits"),
    [("a b", "avro", False), ("a b", "orc", True), ("a`", "orc", False), ("a`", "parquet", True)],
)
@pytest.mark.parametrize("outer", ["ROW", "ARRAY", "MAP"])
def test_fields_within_a_column_have_the_rules_of_the_file_format(
    name: str, file_format: str, fits: bool, outer: str
) -> None:
    row = DataType("ROW", fields=(DataField(0, name, DataType("INT")),))
    data_type = {
        "ROW": row,
        "ARRAY": DataType("ARRAY", element=row),
        "MAP": DataType("MAP", key=DataType("INT"), value=row),
    }[outer]
    assert (nested_name_problem(data_type, file_format) is None) == fits
    found = nested_name_problems({"c": data_type}, {"file.format": file_format})
    assert list(found) == ([] if fits else ["c"])
