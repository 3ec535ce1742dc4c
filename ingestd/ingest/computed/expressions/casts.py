"""CAST and TRY_CAST: convert values to another type, and mark values that the type cannot hold.

Unlike in Paimon's casts, no value wraps around or silently becomes null: the cast of a string that
is not a number, or of a number that is too large, fails. Casts of decimals to a smaller scale round
half up; casts of decimals and floating-point numbers to integers truncate towards zero.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.cells import (
    ExpressionCells,
    Kernel,
    PlainKernel,
    attempted,
    either,
)
from ingestd.ingest.computed.expressions.function import FLOATING_ROOTS, NUMBER_ROOTS
from ingestd.paimon.casts.evolution import cast_array, cast_text
from ingestd.paimon.spec.arrow import Values, cast_exactly, to_arrow_type
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    NESTED_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)
from ingestd.paimon.spec.type_casts import can_cast

_WHOLE = re.compile(r"^-?[0-9]{1,18}$").pattern
_EXACT = re.compile(r"^-?[0-9]{1,18}(\.[0-9]{1,18})?$").pattern
_MOST_DIGITS = 18
"""Maximum number of fractional digits of a string that matches `_EXACT`."""
_DAY = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$").pattern
_MOMENT = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}$").pattern
_READ_BY_ARROW: Mapping[str, str] = {
    **dict.fromkeys(INTEGER_ROOTS, _WHOLE),
    "DOUBLE": _EXACT,
    "DECIMAL": _EXACT,
    "DATE": _DAY,
    "TIMESTAMP": _MOMENT,
}
"""Regular expressions of strings that Arrow parses like Paimon, by type root."""
_ISO_DAY = re.compile(r"^([0-9]+-[0-9]+-[0-9]+)T").pattern
_HALF_UP: Values = "half_towards_infinity"


def cast_kernel(source: DataType, target: DataType) -> Kernel | None:
    """Return the kernel of a cast, or None if the types differ at most in nullability.

    The kernel marks values that the target type cannot hold as failed. Raises ConfigError if the
    cast is not supported.
    """
    if source.as_nullable() == target.as_nullable():
        return None
    if source.root in NESTED_ROOTS or target.root in NESTED_ROOTS:
        raise ConfigError(f"{source} cannot be cast to {target}")
    to_boolean = target.root == "BOOLEAN" and source.root in NUMBER_ROOTS
    if not can_cast(source, target) and not to_boolean:
        raise ConfigError(f"{source} cannot be cast to {target}")
    arrow_type = to_arrow_type(target)
    if source.root in CHARACTER_ROOTS and target.root not in CHARACTER_ROOTS:
        return _of_texts(target)
    plain = _plain_cast(source, target)

    def run(arguments: Sequence[ExpressionCells]) -> ExpressionCells:
        (argument,) = arguments
        cells = attempted(plain, [argument.values], arrow_type)
        return ExpressionCells(cells.values, either(argument.failed, cells.failed))

    return run


def _plain_cast(source: DataType, target: DataType) -> PlainKernel:
    arrow_type = to_arrow_type(target)
    if target.root == "BOOLEAN" and source.root in NUMBER_ROOTS:
        return lambda values: pc.invert(is_zero(values))
    if source.root == "BOOLEAN" and target.root in NUMBER_ROOTS:
        return lambda values: values.cast(pa.int8()).cast(arrow_type)
    if source.root in NUMBER_ROOTS and target.root in NUMBER_ROOTS:
        return lambda values: _number(values, source, target, arrow_type)
    if source.root in TIMESTAMP_ROOTS and target.root == "DATE":
        return _day
    return lambda values: cast_array(values, source, target)


def is_zero(values: Values) -> Values:
    """Return a boolean array: whether each number is 0; null for null."""
    zero: Values = Decimal(0) if pa.types.is_decimal(values.type) else 0
    return pc.equal(values, pa.scalar(zero, values.type))


def _day(values: Values) -> Values:
    """Return the day of each timestamp as a date.

    This differs from Paimon's cast, which is one day late before 1970, except at midnight.
    """
    plain = values.cast(pa.timestamp(values.type.unit))
    return cast_exactly(pc.floor_temporal(plain, unit="day"), pa.date32())


def _number(values: Values, source: DataType, target: DataType, arrow_type: pa.DataType) -> Values:
    if target.root in FLOATING_ROOTS and source.root == "DECIMAL":
        return cast_exactly(values, arrow_type)
    if target.root in FLOATING_ROOTS:
        return pc.cast(values, arrow_type, safe=False)
    if source.root in FLOATING_ROOTS and target.root in INTEGER_ROOTS:
        return pc.trunc(values).cast(arrow_type)
    if source.root in FLOATING_ROOTS:
        return values.cast(arrow_type)
    if source.root != "DECIMAL":
        return cast_exactly(values, arrow_type)
    if target.root in INTEGER_ROOTS:
        return pc.trunc(values).cast(arrow_type)
    if (target.scale or 0) >= (source.scale or 0):
        return cast_exactly(values, arrow_type)
    wide = values.cast(pa.decimal256((source.precision or 0) + 1, source.scale or 0))
    return pc.round(wide, target.scale or 0, _HALF_UP).cast(arrow_type)


def _of_texts(target: DataType) -> Kernel:
    arrow_type = to_arrow_type(target)
    form = _READ_BY_ARROW.get(target.root)

    def read(texts: Values) -> Values:
        if target.root != "DECIMAL":
            return texts.cast(arrow_type)
        exact = DataType("DECIMAL", precision=38, scale=_MOST_DIGITS)
        return _number(texts.cast(to_arrow_type(exact)), exact, target, arrow_type)

    def run(arguments: Sequence[ExpressionCells]) -> ExpressionCells:
        (argument,) = arguments
        if form is not None and _all_like(argument.values, form):
            cells = attempted(read, [argument.values], arrow_type)
        else:
            cells = _by_distinct(argument.values, target, arrow_type)
        return ExpressionCells(cells.values, either(argument.failed, cells.failed))

    return run


def _all_like(texts: Values, form: str) -> bool:
    matching: Values = pc.all(pc.match_substring_regex(texts, form), min_count=0)
    return bool(matching.as_py())


def _by_distinct(texts: Values, target: DataType, arrow_type: pa.DataType) -> ExpressionCells:
    """Convert strings that Arrow does not parse, each distinct string once."""
    coded = pc.utf8_trim_whitespace(texts).dictionary_encode()
    read = attempted(lambda few: _read(few, target), [coded.dictionary], arrow_type)
    values = read.values.take(coded.indices)
    if read.failed is None:
        return ExpressionCells(values)
    indices = np.asarray(pc.fill_null(coded.indices, 0))
    marks = read.failed[indices] if len(read.failed) else np.zeros(len(indices), np.bool_)
    return ExpressionCells(values, marks & np.asarray(texts.is_valid()))


def cast_times(texts: Values, target: DataType) -> Values:
    """Cast strings to `target`, a type of dates or times, as Paimon does.

    In addition, the T of ISO 8601 is accepted between day and time. Invalid strings become null.
    """
    if target.root in TIMESTAMP_ROOTS | {"DATE"}:
        texts = pc.replace_substring_regex(texts, _ISO_DAY, r"\1 ")
    return cast_text(texts, target)


def _read(texts: Values, target: DataType) -> Values:
    read: Values = cast_times(texts, target)
    if bool((np.asarray(read.is_null()) & np.asarray(texts.is_valid())).any()):
        raise pa.ArrowInvalid(f"a text that is not a valid {target}")
    return read


def lenient(kernel: Kernel) -> Kernel:
    """Wrap a kernel for TRY_CAST: rows for which it fails become NULL.

    Rows whose argument has failed remain failures.
    """

    def run(arguments: Sequence[ExpressionCells]) -> ExpressionCells:
        before = either(*(argument.failed for argument in arguments))
        return ExpressionCells(kernel(arguments).values, before)

    return run
