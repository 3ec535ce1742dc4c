"""Unscaled integers as decimals: exact at every width, refused beyond it."""

from decimal import Decimal

import pyarrow as pa
import pytest

from ingestd.cdc.columns.decimal_columns import from_unscaled, plain_number, within_reach


def twos_complement(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


@pytest.mark.parametrize("scale", [0, 1, 38])
def test_every_width_is_exact(scale: int) -> None:
    numbers = [sign * (10**power - 1) for power in range(39) for sign in (1, -1)]
    values = [twos_complement(number) for number in numbers]
    array = from_unscaled([*values, None, b""], scale, pa.decimal128(38, scale))
    assert array.to_pylist() == [
        *(Decimal(plain_number(number, scale)) for number in numbers), None, Decimal(0)
    ]  # fmt: skip


@pytest.mark.parametrize("number", [10**38, -(10**38), 2**127 - 1, -(2**127), 2**200])
def test_more_digits_than_a_decimal_has_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match=r"digits|precision"):
        from_unscaled([b"\x01", twos_complement(number)], 0, pa.decimal128(38, 0))


def test_more_digits_than_the_column_has_are_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        from_unscaled([twos_complement(10000)], 2, pa.decimal128(4, 2))


def test_padded_values_are_read() -> None:
    values = [b"\x00" * 20 + b"\x05", b"\xff" * 20]
    assert from_unscaled(values, 0, pa.decimal128(5, 0)).to_pylist() == [Decimal(5), Decimal(-1)]


@pytest.mark.parametrize(
    ("unscaled", "scale", "text"),
    [
        (0, 0, "0"), (0, 3, "0.000"), (0, -3, "0"), (5, 3, "0.005"), (-5, 1, "-0.5"),
        (-12345, 2, "-123.45"), (12, -2, "1200"), (10**4200, 1, "1" + "0" * 4199 + ".0"),
    ],
)  # fmt: skip
def test_plain_numbers_have_all_digits(unscaled: int, scale: int, text: str) -> None:
    assert plain_number(unscaled, scale) == text


def test_numbers_longer_than_python_prints_are_printed() -> None:
    assert plain_number(-(10**5000), 1) == "-1" + "0" * 4999 + ".0"


@pytest.mark.parametrize("text", ["1e-49", "-5e-99999999", "1.5e-400"])
def test_a_number_too_fine_for_its_column_never_gets_to_arrow(text: str) -> None:
    with pytest.raises(ValueError, match="digits after the decimal point"):
        within_reach(Decimal(text), 10)


@pytest.mark.parametrize(
    ("text", "wanted"), [("0e-99999999", "0"), ("1e-48", "1e-48"), ("1e99", "1e99"), ("NaN", "NaN")]
)
def test_other_numbers_do(text: str, wanted: str) -> None:
    assert str(within_reach(Decimal(text), 10)) == str(Decimal(wanted))


@pytest.mark.parametrize("scale", [2**31 - 1, -(2**31)])
def test_a_scale_beyond_all_numbers_is_refused(scale: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        plain_number(1, scale)
