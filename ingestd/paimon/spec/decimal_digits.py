"""Convert decimals to unscaled integers, and integers to Java's byte form.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#binaryrow
"""

from decimal import Decimal


def unscaled(value: Decimal, scale: int) -> int:
    """Return the unscaled integer of a decimal at a scale.

    Raises ValueError if digits would be lost or the decimal is not finite.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a number")
    number, shift = int("".join(map(str, digits)) or "0"), exponent + scale
    if shift < 0:
        number, lost = divmod(number, 10**-shift)
        if lost:
            raise ValueError(f"{value} has more than {scale} fraction digits")
        shift = 0
    whole: int = (-number if sign else number) * 10**shift
    return whole


def minimal_bytes(number: int) -> bytes:
    """Return an integer as the shortest big-endian two's complement, as Java's BigInteger does."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)
