from decimal import Decimal

import pytest

from ingestd.paimon.spec.decimal_digits import minimal_bytes, unscaled


@pytest.mark.parametrize(
    ("text", "scale", "number"),
    [("1.5", 2, 150), ("-1.50", 1, -15), ("0E-10", 3, 0), ("1E+3", 0, 1000), ("-0", 2, 0)],
)
def test_digits_at_a_scale_are_a_whole_number(text: str, scale: int, number: int) -> None:
    assert unscaled(Decimal(text), scale) == number


@pytest.mark.parametrize(("text", "scale"), [("1.55", 1), ("NaN", 2), ("Infinity", 0)])
def test_digits_are_never_lost(text: str, scale: int) -> None:
    with pytest.raises(ValueError, match=r"fraction digits|not a number"):
        unscaled(Decimal(text), scale)


@pytest.mark.parametrize(
    ("number", "data"),
    [(0, "00"), (127, "7f"), (128, "0080"), (-128, "80"), (-129, "ff7f"), (2**64, f"01{'00' * 8}")],
)
def test_numbers_have_the_shortest_form_with_a_sign(number: int, data: str) -> None:
    assert minimal_bytes(number).hex() == data
