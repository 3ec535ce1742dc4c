"""Sums and products of decimals."""

from decimal import Decimal
from typing import Any

import pytest

from ingestd.errors import UnsupportedError
from tests.support.merges import aggregate

HUGE = Decimal("9" * 36 + ".99")


def numbers(*texts: str) -> list[Any]:
    return [Decimal(text) for text in texts]


@pytest.mark.parametrize("t", ["DECIMAL(12, 2)", "DECIMAL(38, 2)"])
def test_sums_are_exact(t: str) -> None:
    cells = [*numbers("1.10", "-2.35", "9999999999.99"), None, (Decimal("0.01"),)]
    assert aggregate("sum", t, cells) == Decimal("9999999998.73")
    assert aggregate("sum", t, [(Decimal("0.50"),), (Decimal("1.00"),)]) == Decimal("-1.50")


def test_sums_of_either_sign_carry_over_all_digits() -> None:
    cells = numbers("-18446744073709551616.00", "0.01", "-79228162514264337593543950336.00")
    assert aggregate("sum", "DECIMAL(38, 2)", cells) == Decimal("-79228162532711081667253501951.99")


def test_a_wide_sum_that_is_too_large_is_null_and_starts_anew() -> None:
    assert aggregate("sum", "DECIMAL(38, 2)", [HUGE, HUGE]) is None
    assert aggregate("sum", "DECIMAL(38, 2)", [HUGE, HUGE, Decimal("2.00")]) == 2


def test_a_narrow_sum_may_have_more_digits_than_its_type_as_a_long_of_java() -> None:
    nines = [Decimal("9" * 18)] * 6
    assert aggregate("sum", "DECIMAL(18, 0)", nines) == 6 * nines[0]
    assert (
        aggregate("sum", "DECIMAL(18, 0)", [*nines, *((nine,) for nine in nines[1:])]) == nines[0]
    )


def test_products_are_rounded_half_up_at_every_step() -> None:
    assert aggregate("product", "DECIMAL(9, 1)", numbers("0.5", "0.5", "0.5")) == Decimal("0.2")
    assert aggregate("product", "DECIMAL(9, 1)", numbers("-0.5", "0.5")) == Decimal("-0.3")
    assert aggregate("product", "DECIMAL(9, 2)", numbers("9999999.00", "10.00")) is None


def test_a_factor_is_taken_back_if_the_quotient_ends() -> None:
    taken = aggregate("product", "DECIMAL(9, 2)", [Decimal("3.00"), (Decimal("4.00"),)])
    assert taken == Decimal("0.75")
    for divisor in ("0.00", "3.00"):
        with pytest.raises(UnsupportedError, match="take back"):
            aggregate("product", "DECIMAL(9, 2)", [Decimal("1.00"), (Decimal(divisor),)])
