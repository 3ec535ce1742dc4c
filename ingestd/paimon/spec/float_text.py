"""Format floats and doubles as strings with the same digits as Java up to version 18.

These versions do not always print the shortest text that reads back as the same number, so the
digits are computed by their algorithm: one decimal digit after the other, until the remainder is
less than half the distance to the next number, in integers of 32, 64 or any number of bits,
whichever is sufficient. The width affects the result in ties and overflows.
"""

import math
from dataclasses import dataclass

import numpy as np

_LARGEST_LONG_EXPONENT = 62
_PLAIN_EXPONENTS = range(-3, 8)
"""Decimal exponents for which the first digit may already be the last one."""


@dataclass(frozen=True, slots=True)
class _Format:
    """A floating-point format: bits of the mantissa, and exponent of the smallest number."""

    bits: int
    smallest: int

    def bits_at(self, exponent: int) -> int:
        """Return the significant bits of numbers with a binary exponent; subnormals have fewer."""
        return min(self.bits, exponent - self.smallest + 1)


_FLOAT = _Format(24, -149)
_DOUBLE = _Format(53, -1074)


def java_double(value: float) -> str:
    """Return a double as Java's `Double.toString` writes it; it may be NaN or infinite."""
    return _string(value, _DOUBLE)


def java_float(value: float) -> str:
    """Return a number, rounded to 32 bits, as Java's `Float.toString` writes it.

    The number may be NaN or infinite.
    """
    return _string(float(np.float32(value)), _FLOAT)


def _string(value: float, precision: _Format) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    return sign + _notation(*_digits(abs(value), precision))


def _notation(digits: str, point: int) -> str:
    """Return a number in Java's notation; `point` of its digits precede the decimal point."""
    if 0 < point < 8:
        whole = digits[:point].ljust(point, "0")
        return f"{whole}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _digits(value: float, precision: _Format) -> tuple[str, int]:
    """Return the digits of a positive number, and how many of them precede the decimal point."""
    fraction, exponent = math.frexp(value)
    exponent -= 1
    mantissa = int(fraction * (1 << 53))
    mantissa //= mantissa & -mantissa
    tiny = max(0, mantissa.bit_length() - exponent - 1)
    if tiny == 0 and exponent <= _LARGEST_LONG_EXPONENT:
        return _integer_digits(int(value), exponent - precision.bits - 1)
    return _Remainder.of(mantissa, exponent, tiny, precision.bits_at(exponent)).digits()


def _integer_digits(number: int, spare: int) -> tuple[str, int]:
    """Return the digits of a whole number, and how many of them precede the decimal point.

    The number is rounded to a multiple of the largest power of ten up to 2 ** `spare`: its lower
    digits do not distinguish it from the neighbouring numbers of its format.
    """
    dropped = len(str(1 << max(spare, 0))) - 1
    unit: int = 10**dropped
    rounded = (number + (unit >> 1)) // unit if dropped else number
    return str(rounded).rstrip("0"), len(str(rounded)) + dropped


def _bits_of_power(exponent: int) -> int:
    """Return the number of bits that Java's algorithm assumes for a power of five."""
    if exponent == 0:
        return 0
    return (5**exponent).bit_length() if exponent < 27 else 3 * exponent


@dataclass(slots=True)
class _Remainder:
    """The part of a number that is not printed yet: `rest / unit`.

    Differences below `margin / unit` are not significant. `point` is the decimal exponent of the
    first digit, `width` the number of bits of the integers (0: unlimited). `point` is estimated,
    and may be one too large until `digits` has found that the first digit is zero.
    """

    rest: int
    unit: int
    margin: int
    point: int
    width: int

    @classmethod
    def of(cls, mantissa: int, exponent: int, tiny: int, bits: int) -> "_Remainder":
        """Return the remainder of a number before its first digit is printed.

        `mantissa` is its odd mantissa, `exponent` its binary exponent, `tiny` the number of its
        bits after the binary point, `bits` the number of significant bits that its format has at
        this exponent (see `_Format.bits_at`).
        """
        length = mantissa.bit_length()
        normalized = mantissa / (1 << length - 1)
        point = math.floor(
            (normalized - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981
        )
        fives = max(0, -point)
        rest = fives + tiny + exponent
        unit = max(0, point) + tiny
        margin = rest - bits
        rest -= length - 1
        common = min(rest, unit)
        rest, unit, margin = rest - common, unit - common, margin - common
        if length == 1:
            margin -= 1
        lift = max(0, -margin)
        rest, unit, margin = rest + lift, unit + lift, margin + lift
        unit_fives = max(0, point)
        widest = max(
            length + rest + _bits_of_power(fives), unit + 1 + _bits_of_power(unit_fives + 1)
        )
        return cls(
            rest=(mantissa * 5**fives) << rest,
            unit=5**unit_fives << unit,
            margin=5**fives << margin,
            point=point,
            width=32 if widest < 32 else 64 if widest < 64 else 0,
        )

    def digits(self) -> tuple[str, int]:
        digit, low, high = self._next()
        digits: list[int] = []
        if digit == 0 and not high:
            self.point -= 1
        else:
            digits.append(digit)
        if self.point not in _PLAIN_EXPONENTS:
            low = high = False
        while not (low or high):
            digit, low, high = self._next()
            digits.append(digit)
        text = "".join(map(str, digits))
        if not self._rounds_up(digits[-1], low, high):
            return text, self.point + 1
        rounded = str(int(text) + 1).rjust(len(text), "0")
        if len(rounded) > len(text):
            return rounded[: len(text)], self.point + 2
        return rounded, self.point + 1

    def _next(self) -> tuple[int, bool, bool]:
        """Return the next digit, and whether it may be the last one: unchanged, and rounded up."""
        digit, rest = divmod(self.rest, self.unit)
        self.rest = 10 * rest
        self.margin = self._wrapped(10 * self.margin)
        if self.margin <= 0:
            return digit, True, True
        reached, full = self._wrapped(self.rest + self.margin), 10 * self.unit
        high = reached > full if self.width else reached >= full
        return digit, self.rest < self.margin, high

    def _wrapped(self, number: int) -> int:
        if not self.width:
            return number
        half = 1 << self.width - 1
        return (number + half) % (2 * half) - half

    def _rounds_up(self, last: int, low: bool, high: bool) -> bool:
        if not (high and low):
            return high
        difference = 2 * self.rest - 10 * self.unit
        return difference > 0 or (difference == 0 and last % 2 == 1)
