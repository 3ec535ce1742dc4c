"""Decimal columns from unscaled big-endian integers, JSON numbers and quoted numbers."""

from collections.abc import Sequence
from decimal import Decimal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.spec.arrow import Array

_WIDTH = 16
"""The number of bytes of a decimal128."""
_LONGEST = 38
"""The maximum number of digits of a decimal128."""
_FARTHEST = 65_536
"""Maximum absolute scale, because the digits of a number could otherwise fill the memory."""


class VariableScale(msgspec.Struct, gc=False):
    """A decimal whose value contains its scale (io.debezium.data.VariableScaleDecimal)."""

    scale: int
    value: bytes


def plain_number(unscaled: int, scale: int) -> str:
    """Return unscaled * 10^-scale as decimal text, without an exponent.

    Raises ValueError if the absolute scale exceeds 65,536.
    """
    if abs(scale) > _FARTHEST:
        raise ValueError(f"a scale of {scale} is out of range")
    # Decimal is used because str() rejects more than 4300 digits.
    digits = str(Decimal(abs(unscaled)))
    sign = "-" if unscaled < 0 else ""
    if scale <= 0:
        return sign + (digits + "0" * -scale if unscaled else "0")
    digits = digits.rjust(scale + 1, "0")
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def variable_scale_text(values: Sequence[VariableScale | None]) -> list[str | None]:
    """Convert decimals that contain their own scale to text in plain notation.

    None stands for null. Raises ValueError if a scale is out of range.
    """
    return [
        None
        if value is None
        else plain_number(int.from_bytes(value.value, "big", signed=True), value.scale)
        for value in values
    ]


def unscaled_text(values: Sequence[bytes | None], scale: int) -> list[str | None]:
    """Convert big-endian unscaled integers of the same scale to text in plain notation.

    None stands for null. Raises ValueError if the scale is out of range.
    """
    return [
        None if value is None else plain_number(int.from_bytes(value, "big", signed=True), scale)
        for value in values
    ]


def from_unscaled(values: Sequence[bytes | None], wire_scale: int, target: pa.DataType) -> Array:
    """Convert big-endian two's complement integers with `wire_scale` fractional digits to decimals.

    Raises ValueError if a value has more digits or more fractional digits than `target`, or if the
    scale is out of range.
    """
    binary = pa.array(values, pa.binary())
    words = _little_endian(binary) if wire_scale >= 0 else None
    if words is None:
        texts = unscaled_text(values, wire_scale)
        return pa.array([None if text is None else Decimal(text) for text in texts], target)
    validity = binary.buffers()[0] if binary.null_count else None
    array = pa.Array.from_buffers(
        pa.decimal128(38, wire_scale), len(binary), [validity, pa.py_buffer(words.tobytes())]
    )
    # 16 bytes can contain 39 digits, which casts do not check, and validation only above -2^127.
    array.validate(full=True)
    if (words.view(np.int64)[:, 1] == np.iinfo(np.int64).min).any():
        raise ValueError("a value has more than 38 digits, which does not fit")
    return array if array.type == target else array.cast(target)


def _little_endian(binary: Array) -> npt.NDArray[np.uint8] | None:
    """Return each integer as 16 little-endian bytes, shape (n, 16), or None if one is longer."""
    _, offset_buffer, data_buffer = binary.buffers()
    offsets = np.frombuffer(memoryview(offset_buffer or b""), np.int32)[: len(binary) + 1].astype(
        np.int64
    )
    data = np.frombuffer(memoryview(data_buffer or b""), np.uint8)
    starts, ends = offsets[:-1], offsets[1:]
    lengths = ends - starts
    longest = int(lengths.max(initial=0))
    if longest > _WIDTH:
        return None
    words = np.zeros((len(binary), _WIDTH), np.uint8)
    if longest == 0:
        return words
    has_bytes = lengths > 0
    signs = np.zeros(len(binary), np.uint8)
    signs[has_bytes] = np.where(data[starts[has_bytes]] & 0x80, 0xFF, 0)
    words[:] = signs[:, None]
    for position in range(longest):
        reached = lengths > position
        words[reached, position] = data[ends[reached] - 1 - position]
    return words


def within_reach(value: Decimal, scale: int = _LONGEST) -> Decimal:
    """Return a decimal that can be passed to Arrow for a column with `scale` fractional digits.

    The result is `value`, except for a zero with more than `scale` + 38 fractional digits, which
    becomes a plain 0. Raises ValueError for any other value with more fractional digits, because
    Arrow would read beyond its tables and might crash.
    """
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent - scale <= _LONGEST:
        return value
    if value:
        raise ValueError(f"has {-exponent} digits after the decimal point, which does not fit")
    return Decimal(0)
