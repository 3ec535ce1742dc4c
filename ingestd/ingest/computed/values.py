"""Computed columns from texts and numbers: parts and blanks of texts, multiples of numbers."""

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.ingest.values.row_groups import Values
from ingestd.paimon.casts.evolution import cast_array
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    NESTED_ROOTS,
    DataType,
)

TEXT = DataType("STRING")
_BLANKS = "".join(map(chr, range(0x21)))
"""What Java takes off the ends of a text: every character up to the blank."""
_ZERO: Values = pa.scalar(0, pa.int64())


def as_texts(values: Values, source: DataType) -> Values:
    """Values as STRING, as the table would cast them; UnsupportedError if it would not."""
    if source.root in CHARACTER_ROOTS:
        return values
    if source.root in NESTED_ROOTS:
        raise UnsupportedError(f"{source} has no plain text")
    return cast_array(values, source, TEXT)


def trim(texts: Values) -> Values:
    """Texts without blanks and control characters at their ends."""
    trimmed: Values = pc.utf8_trim(texts, _BLANKS)
    return trimmed


def substring(texts: Values, begin: int, end: int | None) -> Values:
    """Characters from `begin` up to `end` (exclusive, or all); null where a text is too short."""
    lengths: Values = pc.utf8_length(texts)
    least: Values = pa.scalar(begin if end is None else end)
    there = pc.greater_equal(lengths, least)
    parts: Values = pc.utf8_slice_codeunits(texts, begin, end)
    return pc.if_else(there, parts, pa.scalar(None, pa.string()))


def truncate(values: Values, source: DataType, width: int) -> Values:
    """The first characters of texts, or the next lower multiple of a width for exact numbers.

    The width of a DECIMAL counts units of its last digit. UnsupportedError for other types.
    """
    if source.root in CHARACTER_ROOTS:
        first: Values = pc.utf8_slice_codeunits(values, 0, width)
        return first
    if source.root in INTEGER_ROOTS:
        return _lower_multiple(values.cast(pa.int64()), width).cast(values.type, safe=False)
    if source.root == "DECIMAL":
        return _lower_decimal(values, width)
    raise UnsupportedError(f"{source} cannot be truncated; texts, integers and DECIMAL can")


def _lower_multiple(numbers: Values, width: int) -> Values:
    # Arrow divides towards zero, so what is left of a negative number is negative.
    by: Values = pa.scalar(width, pa.int64())
    left: Values = pc.subtract(numbers, pc.multiply(pc.divide(numbers, by), by))
    above: Values = pc.if_else(pc.less(left, _ZERO), pc.add(left, by), left)
    lower: Values = pc.subtract(numbers, above)
    return lower


def _lower_decimal(values: Values, width: int) -> Values:
    """By the digits alone: a decimal without its point is a whole number."""
    whole = _relabelled(values, pa.decimal128(38, 0)).cast(pa.decimal256(38, 0))
    divisor = pa.scalar(width, pa.decimal256(10, 0))
    floor = pc.floor(pc.divide(whole, divisor)).cast(pa.decimal256(38, 0))
    lower = pc.multiply(floor, divisor).cast(pa.decimal128(38, 0))
    return _relabelled(lower, values.type)


def _relabelled(values: Values, arrow_type: pa.DataType) -> Values:
    return pa.Array.from_buffers(arrow_type, len(values), values.buffers(), offset=values.offset)
