"""Types meet in the narrowest type that holds both."""

import pytest

from ingestd.ingest.values.type_merge import merge_types
from ingestd.paimon.spec.data_types import parse_type


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ("INT", "INT", "INT"),
        ("TINYINT", "BIGINT", "BIGINT"),
        ("SMALLINT", "INT", "INT"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("SMALLINT", "FLOAT", "FLOAT"),
        ("INT", "FLOAT", "DOUBLE"),
        ("BIGINT", "DOUBLE", "DOUBLE"),
        ("DECIMAL(10, 2)", "DECIMAL(8, 4)", "DECIMAL(12, 4)"),
        ("DECIMAL(10, 2)", "DECIMAL(16, 4)", "DECIMAL(16, 4)"),
        ("INT", "DECIMAL(5, 2)", "DECIMAL(12, 2)"),
        ("DECIMAL(38, 0)", "DECIMAL(38, 10)", "STRING"),
        ("VARCHAR(5)", "VARCHAR(9)", "VARCHAR(9)"),
        ("VARCHAR(5)", "STRING", "STRING"),
        ("CHAR(3)", "CHAR(5)", "VARCHAR(5)"),
        ("VARBINARY(5)", "BYTES", "BYTES"),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(6)", "TIMESTAMP_LTZ(6)"),
        ("INT", "STRING", "STRING"),
        ("BOOLEAN", "INT", "STRING"),
        ("DATE", "VARCHAR(10)", "STRING"),
    ],
)
def test_merged_type(one: str, other: str, merged: str) -> None:
    wanted = parse_type(merged)
    assert merge_types(parse_type(one), parse_type(other)) == wanted
    assert merge_types(parse_type(other), parse_type(one)) == wanted


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)"),
        ("TIMESTAMP(6)", "STRING"),
        ("DOUBLE", "STRING"),
        ("DECIMAL(10, 2)", "DOUBLE"),
        ("BYTES", "STRING"),
        ("DATE", "TIMESTAMP(3)"),
        ("TIME(3)", "INT"),
    ],
)
def test_types_without_a_common_readable_type_do_not_merge(one: str, other: str) -> None:
    assert merge_types(parse_type(one), parse_type(other)) is None
    assert merge_types(parse_type(other), parse_type(one)) is None


def test_nullability_is_not_part_of_the_question() -> None:
    assert merge_types(parse_type("INT NOT NULL"), parse_type("INT")) == parse_type("INT")


def test_elements_of_arrays_and_values_of_maps_merge() -> None:
    ints = parse_type({"type": "ARRAY", "element": "INT"})
    longs = parse_type({"type": "ARRAY", "element": "BIGINT"})
    assert merge_types(ints, longs) == longs
    maps = [
        parse_type({"type": "MAP", "key": "STRING", "value": value}) for value in ("INT", "DATE")
    ]
    assert merge_types(*maps) == parse_type({"type": "MAP", "key": "STRING", "value": "STRING"})
    other_key = parse_type({"type": "MAP", "key": "INT", "value": "INT"})
    assert merge_types(maps[0], other_key) is None
    assert merge_types(ints, parse_type("STRING")) is None


def test_fields_of_rows_merge_by_name_and_keep_their_ids() -> None:
    def row(*fields: tuple[int, str, str]) -> dict[str, object]:
        return {
            "type": "ROW",
            "fields": [{"id": i, "name": name, "type": kind} for i, name, kind in fields],
        }

    known = parse_type(row((7, "a", "INT"), (8, "b", "STRING")))
    found = parse_type(row((0, "b", "STRING"), (1, "c", "DATE"), (2, "a", "BIGINT")))
    merged = merge_types(known, found)
    assert merged == parse_type(row((7, "a", "BIGINT"), (8, "b", "STRING"), (9, "c", "DATE")))
    assert merge_types(known, parse_type(row((0, "a", "BYTES")))) is None
