from decimal import Decimal

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.literals import parse_literal, timestamp_millis


@pytest.mark.parametrize(
    ("text", "type_text", "wanted"),
    [
        ("TRUE", "BOOLEAN", True),
        ("-128", "TINYINT", -128),
        ("1e3", "INT", 1000),
        ("1.50", "DECIMAL(5, 2)", Decimal("1.5")),
        ("1e300", "DOUBLE", 1e300),
        ("0.1", "FLOAT", 0.10000000149011612),
        ("-1e39", "FLOAT", -float("inf")),
        (" x ", "STRING", " x "),
        ("0xFF00", "BYTES", b"\xff\x00"),
        ("2024-02-29", "DATE", 19782),
        ("01:01:01.5", "TIME(3)", 3_661_500),
        ("1970-01-01 00:00:01", "TIMESTAMP(3)", 1000),
        ("1970-01-01T00:00:00.000001", "TIMESTAMP(6)", 1),
        ("1970-01-01", "TIMESTAMP(9)", 0),
        ("1969-12-31T23:59:59Z", "TIMESTAMP(3) WITH LOCAL TIME ZONE", -1000),
        ("1970-01-01T01:00:00+01:30", "TIMESTAMP(3) WITH LOCAL TIME ZONE", -1_800_000),
    ],
)
def test_texts_are_values(text: str, type_text: str, wanted: object) -> None:
    assert parse_literal(text, DataField(0, "c", parse_type(type_text))) == wanted


@pytest.mark.parametrize(
    ("text", "type_text"),
    [
        ("yes", "BOOLEAN"),
        ("128", "TINYINT"),
        ("1.555", "DECIMAL(5, 2)"),
        ("1e3", "DECIMAL(5, 2)"),
        ("10000000000000000000000000000.00001", "DECIMAL(38, 4)"),
        ("NaN", "DECIMAL(5, 2)"),
        ("xyz", "BYTES"),
        ("24:00:00", "TIME(3)"),
        ("00:00:00.0001", "TIME(3)"),
        ("1970-01-01T00:00:00.0001", "TIMESTAMP(3)"),
        ("1970-01-01T00:00:00Z", "TIMESTAMP(3)"),
        ("1", "DATE"),
        ("NaN", "INT"),
    ],
)
def test_other_texts_are_refused(text: str, type_text: str) -> None:
    with pytest.raises(ConfigError, match="is no value of type"):
        parse_literal(text, DataField(0, "c", parse_type(type_text)))


def test_nested_columns_have_no_literals() -> None:
    nested = parse_type({"type": "ARRAY", "element": "INT"})
    with pytest.raises(ConfigError, match="is no value"):
        parse_literal("[1]", DataField(0, "c", nested))


def test_points_in_time() -> None:
    assert timestamp_millis("1970-01-01T00:00:01+00:00") == 1000
    assert timestamp_millis("1700000000123") == 1_700_000_000_123
    with pytest.raises(ConfigError, match="'soon' is no time: write ISO 8601"):
        timestamp_millis("soon")
