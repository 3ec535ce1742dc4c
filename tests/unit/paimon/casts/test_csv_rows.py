"""Lines of CSV files as rows of their types."""

import pyarrow as pa
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.csv_rows import csv_rows
from ingestd.paimon.spec.data_types import DataField, parse_type

FIELDS = tuple(
    DataField(i, name, parse_type(t))
    for i, (name, t) in enumerate((("k", "INT"), ("v", "STRING"), ("d", "DATE")))
)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("1,a,1970-01-02", (1, "a", 1)), ("1,,", (1, None, None)), ("", (None, None, None)),
        ("1", (1, None, None)), ("1,a,1970-01-02,more", (1, "a", 1)),
        ('1,"a,b",1970-01-02', (1, "a,b", 1)), ('1,"a\\"b"', (1, 'a"b', None)),
        ('1,"a""b"', (1, 'a"b', None)), ('1,a"b"c', (1, 'a"b"c', None)),
        ('1,"open', (1, None, None)), ("x,a,1970-01-02", (None, None, None)),
        ("1 ,a", (None, None, None)), ("1,a,yesterday", (1, "a", None)),
        ("99999999999,a", (None, None, None)),
    ],
)  # fmt: skip
def test_a_line_is_split_and_cast_and_ends_at_an_invalid_value(
    line: str, row: tuple[object, ...]
) -> None:
    rows = csv_rows([line, "2,b,1970-01-03"], FIELDS, {})
    days = rows.set_column(2, "d", rows.column("d").cast(pa.int32()))
    assert [tuple(found.values()) for found in days.to_pylist()] == [row, (2, "b", 2)]


@pytest.mark.parametrize("line", ["x,a", "1,a,yesterday"])
def test_an_invalid_value_is_an_error_if_the_table_says_so(line: str) -> None:
    with pytest.raises((UnsupportedError, ValueError), match="cannot be read as"):
        csv_rows([line], FIELDS, {"csv.mode": "failfast"})


def test_the_options_name_the_characters_and_the_text_of_null() -> None:
    options = {"seq": ";", "quote": "'", "csv.escape-character": "^", "csv.null-literal": "nil"}
    rows = csv_rows(["7;'a^';b'", "nil;nil"], FIELDS, options)
    assert rows.column("v").to_pylist() == ["a';b", None]
    assert rows.column("k").to_pylist() == [7, None]
