"""Parts of texts and multiples of numbers, with the ends that Java throws at."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import UnsupportedError
from ingestd.ingest.computed.functions import as_texts, substring, trim, truncate
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import parse_type


@pytest.mark.parametrize(
    ("begin", "end", "wanted"),
    [
        (1, 3, "bc"),
        (0, 6, "abcdéf"),
        (3, None, "déf"),
        (6, None, ""),
        (7, None, None),
        (5, 9, None),
    ],
)
def test_substring_beyond_the_end_of_a_text_is_null(
    begin: int, end: int | None, wanted: str | None
) -> None:
    assert substring(pa.array(["abcdéf", None]), begin, end).to_pylist() == [wanted, None]


@pytest.mark.parametrize(
    ("source", "values", "width", "wanted"),
    [
        ("STRING", ["abcdef", "a", None], 2, ["ab", "a", None]),
        ("INT", [-3, 3, -10, 19, None], 10, [-10, 0, -10, 10, None]),
        ("TINYINT", [-128, 127], 100, [56, 100]),
        ("BIGINT", [(1 << 53) + 1], 2, [1 << 53]),
        ("DECIMAL(5, 2)", [Decimal("-0.03"), Decimal("1.23"), None], 10,
         [Decimal("-0.10"), Decimal("1.20"), None]),
        ("DECIMAL(38, 2)", [Decimal("9" * 36 + ".99")], 50, [Decimal("9" * 36 + ".50")]),
    ],
)  # fmt: skip
def test_truncate(source: str, values: list[Any], width: int, wanted: list[Any]) -> None:
    data_type = parse_type(source)
    array = pa.array([*values, values[0]], to_arrow_type(data_type)).slice(0, len(values))
    done = truncate(array, data_type, width)
    assert done.to_pylist() == wanted
    assert done.type == array.type


def test_slices_of_decimals_are_truncated_by_their_own_digits() -> None:
    array = pa.array([Decimal("1.11"), Decimal("2.22"), Decimal("3.33")]).slice(1)
    data_type = parse_type("DECIMAL(3, 2)")
    assert truncate(array, data_type, 100).to_pylist() == [Decimal("2.00"), Decimal("3.00")]


def test_what_has_no_multiple_or_no_text_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="DOUBLE cannot be truncated"):
        truncate(pa.array([1.5]), parse_type("DOUBLE"), 2)
    with pytest.raises(UnsupportedError, match="no plain text"):
        as_texts(pa.array([[1]]), parse_type({"type": "ARRAY", "element": "INT"}))


def test_numbers_have_the_text_that_a_cast_gives_them() -> None:
    assert as_texts(pa.array([5, None], pa.int32()), parse_type("INT")).to_pylist() == ["5", None]


def test_trim_takes_off_control_characters_but_not_other_blanks() -> None:
    texts = pa.array(["\t a b\n", "\u00a0x", None])
    assert trim(texts).to_pylist() == ["a b", "\u00a0x", None]
