from decimal import Decimal

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.paths import TablePaths, escape, partition_path
from tests.support.format_vectors import vector_type, vector_value, vectors
from tests.support.java_tables import ROOT, java_data_files

DEFAULT = "__DEFAULT_PARTITION__"
CASES = [p for p in vectors("partition_paths") if not (p["type"] == "BYTES" and p["legacy"])]


def path(text: str, value: object, *, legacy: bool = True) -> str:
    return partition_path(["pt"], [parse_type(text)], [value], DEFAULT, legacy)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['type']}-{case['value']}")
def test_partition_paths_are_javas(case: dict[str, object]) -> None:
    t = vector_type(str(case["type"]))
    value = vector_value(t, case["value"])
    found = partition_path(["pt"], [t], [value], DEFAULT, bool(case["legacy"]))
    assert found == case["path"]


@pytest.mark.parametrize(
    ("text", "value", "legacy", "expected"),
    [
        ("TIMESTAMP(3)", 0, True, "1970-01-01T00%3A00"),
        ("TIMESTAMP(3)", 1000, True, "1970-01-01T00%3A00%3A01"),
        ("TIMESTAMP(6)", -1, True, "1969-12-31T23%3A59%3A59.999999"),
        ("TIMESTAMP(6)", 1000, True, "1970-01-01T00%3A00%3A00.001"),
        ("TIMESTAMP(9)", 1, True, "1970-01-01T00%3A00%3A00.000000001"),
        ("TIMESTAMP(3)", 253402300800000, True, "+10000-01-01T00%3A00"),
        ("TIMESTAMP(3)", -62167219200001, True, "-0001-12-31T23%3A59%3A59.999"),
        ("TIMESTAMP_LTZ(3)", 0, False, "1970-01-01 00%3A00%3A00.000"),
        ("TIMESTAMP(1)", 120, False, "1970-01-01 00%3A00%3A00.12"),
        ("DATE", -1, False, "1969-12-31"),
        ("DATE", -2147472692, True, "-2147472692"),
        ("DATE", 11016, False, "2000-02-29"),
        ("TIME(2)", 5, False, "00%3A00%3A00.00"),
        ("TIME(3)", 0, False, "00%3A00%3A00.0"),
        ("DECIMAL(10, 2)", Decimal("-0.05"), True, "-0.05"),
        ("DECIMAL(38, 0)", Decimal("9" * 38), True, "9" * 38),
        ("DECIMAL(10, 3)", Decimal("1.5"), True, "1.500"),
        ("DOUBLE", 1e-5, True, "1.0E-5"),
        ("DOUBLE", 0.001, True, "0.001"),
        ("DOUBLE", 12345678.5, True, "1.23456785E7"),
        ("DOUBLE", -0.0, True, "-0.0"),
        ("DOUBLE", float("nan"), True, "NaN"),
        ("DOUBLE", float("-inf"), True, "-Infinity"),
        ("DOUBLE", 1e23, True, "9.999999999999999E22"),
        ("FLOAT", 3.4028234663852886e38, True, "3.4028235E38"),
        ("FLOAT", 461826784.0, True, "4.61826784E8"),
        ("STRING", "\u2003\t", True, DEFAULT),
        ("STRING", "\xa0", True, "\xa0"),
        ("STRING", "..", True, ".."),
        ("STRING", "a/../b", True, "a%2F..%2Fb"),
    ],
)
def test_values_have_the_text_that_java_prints(
    text: str, value: object, legacy: bool, expected: str
) -> None:
    assert path(text, value, legacy=legacy) == f"pt={expected}/"


def test_every_key_is_a_directory_in_order() -> None:
    types = [parse_type("STRING"), parse_type("INT"), parse_type("STRING")]
    found = partition_path(["a", "b=", "c"], types, ["x", 3, None], "none", True)
    assert found == "a=x/b%3D=3/c=none/"
    assert partition_path([], [], [], DEFAULT, True) == ""


@pytest.mark.parametrize(("text", "value"), [("BYTES", b"AB"), ("ARRAY", [1])])
def test_values_without_text_are_refused(text: str, value: object) -> None:
    t = parse_type({"type": "ARRAY", "element": "INT"} if text == "ARRAY" else text)
    with pytest.raises(UnsupportedError, match="partition column 'pt'"):
        partition_path(["pt"], [t], [value], DEFAULT, True)


def test_years_that_four_digits_cannot_hold_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="year 10000"):
        path("DATE", 2932897, legacy=False)


def test_escape_leaves_harmless_characters_alone() -> None:
    assert escape("a b+c&d,e;f~g|h<i>j`中") == "a b+c&d,e;f~g|h<i>j`中"
    assert escape("\x00\x1f\x7f%^") == "%00%1F%7F%25%5E"


def test_paths_of_a_table() -> None:
    paths = TablePaths("/w/db.db/t")
    assert paths.schema(0) == "/w/db.db/t/schema/schema-0"
    assert paths.snapshot(7) == "/w/db.db/t/snapshot/snapshot-7"
    assert paths.latest_hint == "/w/db.db/t/snapshot/LATEST"
    assert paths.earliest_hint == "/w/db.db/t/snapshot/EARLIEST"
    assert paths.manifest("manifest-x-0") == "/w/db.db/t/manifest/manifest-x-0"
    assert paths.index("index-x-0") == "/w/db.db/t/index/index-x-0"
    assert paths.bucket_dir("", 3) == "/w/db.db/t/bucket-3"
    assert paths.bucket_dir("dt=1/", -2) == "/w/db.db/t/dt=1/bucket-postpone"
    assert paths.data_file("dt=1/", 0, "data-x-0.parquet") == (
        "/w/db.db/t/dt=1/bucket-0/data-x-0.parquet"
    )


def test_every_partition_directory_that_java_made_is_found() -> None:
    made = set(ROOT.rglob("*.parquet"))
    found = {file.path for file in java_data_files()}
    assert made == found
    assert any(DEFAULT in str(path) for path in found)
