"""Paimon's fourteen functions for computed columns: arguments, types and evaluation.

All functions take one column, except `cast`, which returns a constant, and `now`, which returns the
current time. An argument of a call is either unquoted text up to the next comma outside
parentheses, or quoted: 'a, b' is a string (a quote in it is doubled), and "order no" is a column
name. Whitespace around arguments is ignored.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError, SchemaConflictError, UnsupportedError
from ingestd.ingest.computed.expressions.cells import BAD_VALUES, ExpressionCells, attempted
from ingestd.ingest.computed.time_parts import (
    PARTS,
    check_pattern,
    check_precision,
    format_times,
    part_of,
    points_in_time,
)
from ingestd.paimon.casts.evolution import cast_array, cast_text
from ingestd.paimon.spec.arrow import Values, to_arrow_type
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    NESTED_ROOTS,
    DataType,
    parse_type,
)

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
_PLAIN = r"""[^'",()]*(?:\([^()'"]*\)[^'",()]*)*?"""
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
_NESTED = re.compile(r"""\s*(?:\w+\s*\(|[^,]*\sas\s+\w)""", re.IGNORECASE)
_ARGUMENT = re.compile(rf"""\s*(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)"|({_PLAIN}))\s*(?:,|$)""")


@dataclass(frozen=True, slots=True)
class Call:
    """A function call: its function in lower case, its arguments without quotes, and its text."""

    function: str
    arguments: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def called_function(text: str) -> str | None:
    """Return the lower-case name of the function that a text calls, or None if it is not a call.

    `cast(a as INT)` and nested calls are not calls in this sense, but SQL expressions.
    """
    match = _CALL.fullmatch(text)
    if match is None:
        return None
    inside = _QUOTED.sub("''", match[2])
    return None if _NESTED.match(inside) or not _is_closed(inside) else match[1].lower()


def _is_closed(inside: str) -> bool:
    """Return whether each closing parenthesis matches an opening parenthesis before it."""
    depth = 0
    for sign in inside:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return True


def parse_call(text: str) -> Call:
    """Parse a function call. Raises ConfigError if the text is not a valid call."""
    match = _CALL.fullmatch(text)
    if match is None:
        raise ConfigError(f"'{text}' is not a function(column, ...)")
    return Call(match[1].lower(), _arguments(match[2], text), text.strip())


def _arguments(inside: str, text: str) -> tuple[str, ...]:
    if not inside.strip():
        return ()
    arguments: list[str] = []
    at, more = 0, True
    while more:
        match = _ARGUMENT.match(inside, at)
        if match is None:
            raise ConfigError(
                f"'{text}': '{inside[at:].strip()[:20]}' does not begin an argument; put "
                "texts with commas or quotes into single quotes, and write a quote in them twice"
            )
        quoted, name, plain = match.groups()
        if plain is not None and not plain.strip():
            raise ConfigError(
                f"'{text}': argument {len(arguments) + 1} is empty; write '' for an empty text"
            )
        arguments.append(_unquoted(quoted, name, plain))
        at, more = match.end(), match[0].endswith(",")
    return tuple(arguments)


def _unquoted(quoted: str | None, name: str | None, plain: str) -> str:
    if quoted is not None:
        return quoted.replace("''", "'")
    return plain.strip() if name is None else name.replace('""', '"')


_INT = DataType("INT")
_INSTANT = DataType("TIMESTAMP_LTZ", precision=3)
_MAX_WIDTH = 2**31 - 1
TEXT = DataType("STRING")
_BLANKS = "".join(map(chr, range(0x21)))
"""The characters that Java's `String.trim` removes: all characters up to U+0020."""
_ZERO: Values = pa.scalar(0, pa.int64())


def as_texts(values: Values, source: DataType) -> Values:
    """Cast values to STRING as Paimon does. Raises UnsupportedError for nested types."""
    if source.root in CHARACTER_ROOTS:
        return values
    if source.root in NESTED_ROOTS:
        raise UnsupportedError(f"{source} has no plain text form")
    return cast_array(values, source, TEXT)


def trim(texts: Values) -> Values:
    """Return strings without leading and trailing whitespace and control characters."""
    trimmed: Values = pc.utf8_trim(texts, _BLANKS)
    return trimmed


def substring(texts: Values, begin: int, end: int | None) -> Values:
    """Return the characters from `begin` (counted from 0) to `end` (exclusive; None: no end).

    The result is null for a string that is shorter than `end`, or than `begin` if `end` is None.
    """
    lengths: Values = pc.utf8_length(texts)
    least: Values = pa.scalar(begin if end is None else end)
    there = pc.greater_equal(lengths, least)
    parts: Values = pc.utf8_slice_codeunits(texts, begin, end)
    return pc.if_else(there, parts, pa.scalar(None, pa.string()))


def truncate(values: Values, source: DataType, width: int) -> Values:
    """Truncate strings to `width` characters, or round numbers down to a multiple of `width`.

    For a DECIMAL, `width` is in units of its last digit. Raises UnsupportedError for types other
    than strings, integers and DECIMAL.
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
    # Arrow divides towards zero, so the remainder of a negative number is negative.
    by: Values = pa.scalar(width, pa.int64())
    left: Values = pc.subtract(numbers, pc.multiply(pc.divide(numbers, by), by))
    above: Values = pc.if_else(pc.less(left, _ZERO), pc.add(left, by), left)
    lower: Values = pc.subtract(numbers, above)
    return lower


def _lower_decimal(values: Values, width: int) -> Values:
    """Round decimals down to a multiple of `width`, computed on their unscaled values."""
    whole = _relabelled(values, pa.decimal128(38, 0)).cast(pa.decimal256(38, 0))
    divisor = pa.scalar(width, pa.decimal256(10, 0))
    floor = pc.floor(pc.divide(whole, divisor)).cast(pa.decimal256(38, 0))
    lower = pc.multiply(floor, divisor).cast(pa.decimal128(38, 0))
    return _relabelled(lower, values.type)


def _relabelled(values: Values, arrow_type: pa.DataType) -> Values:
    return pa.Array.from_buffers(arrow_type, len(values), values.buffers(), offset=values.offset)


@dataclass(frozen=True, slots=True)
class _Function:
    """The definition of a function that takes a column.

    `takes` is the minimum and maximum number of arguments, including the column. `check` raises
    ConfigError if the arguments after the column are invalid. `evaluate` takes an Arrow array, its
    type, and the arguments after the column.
    """

    takes: tuple[int, int]
    check: Callable[[tuple[str, ...]], None]
    evaluate: Callable[[Values, DataType, tuple[str, ...]], Values]
    type: DataType | None = TEXT


def check_call(call: Call) -> None:
    """Raise ConfigError if the function of a call does not accept its arguments.

    The function must be one of `FUNCTIONS`. For `cast`, raises FormatError if the type is invalid,
    and UnsupportedError if the constant is not valid for the type.
    """
    if call.function == "now":
        least, most = 0, 0
    elif call.function == "cast":
        least, most = 1, 2
    else:
        least, most = _FUNCTIONS[call.function].takes
    if not least <= len(call.arguments) <= most:
        accepted = f"{least}" if least == most else f"{least} or {most}"
        raise ConfigError(f"{call.function} takes {accepted} arguments, not {len(call.arguments)}")
    if call.function == "cast":
        _constant(call)
    elif call.function != "now":
        _FUNCTIONS[call.function].check(call.arguments[1:])


def source_of(call: Call) -> str | None:
    """Return the name of the column that a call takes; None if its function is `now` or `cast`."""
    return None if call.function in _CONSTANT else call.arguments[0]


def type_of_call(call: Call) -> DataType | None:
    """Return the result type of a call; None stands for the type of the column that the call takes.

    Raises FormatError if the type of a `cast` is invalid.
    """
    if call.function == "now":
        return _INSTANT
    if call.function == "cast":
        return _constant_type(call)
    return _FUNCTIONS[call.function].type


def constant_of(call: Call, now_ms: int) -> Values:
    """Evaluate a call that takes no column, `now` or `cast`, to an Arrow scalar.

    The call must be accepted by `check_call`. `now_ms` is the current time, in milliseconds since
    the epoch.
    """
    if call.function == "now":
        return pa.scalar(now_ms, to_arrow_type(_INSTANT))
    return _constant(call)


def evaluate_call(call: Call, values: Values, source: DataType) -> ExpressionCells:
    """Evaluate a call on an Arrow array of type `source`, and mark invalid values as failed.

    The call must take a column, and `values` are those of this column. Raises SchemaConflictError
    if the function does not accept the type.
    """
    arrow_type: Values = to_arrow_type(type_of_call(call) or source.as_nullable())
    _refuse_type(call, source)
    function, arguments = _FUNCTIONS[call.function], call.arguments[1:]

    def evaluate(chunk: Values) -> Values:
        return function.evaluate(chunk, source, arguments).cast(arrow_type)

    return attempted(evaluate, [values], arrow_type)


def _refuse_type(call: Call, source: DataType) -> None:
    """Raise SchemaConflictError if the function of a call does not accept columns of this type.

    This is found by evaluating the call on an empty array of the type.
    """
    none: Values = pa.array([], to_arrow_type(source))
    try:
        _FUNCTIONS[call.function].evaluate(none, source, call.arguments[1:])
    except BAD_VALUES as error:
        raise SchemaConflictError(
            f"column '{source_of(call)}' is {source}, which {call.function} does not take ({error})"
        ) from error


def _constant_type(call: Call) -> DataType:
    return parse_type(call.arguments[1]) if len(call.arguments) > 1 else TEXT


def _constant(call: Call) -> Values:
    texts: Values = pa.array([call.arguments[0]], pa.string())
    return cast_text(texts, _constant_type(call))[0]


def _whole(text: str, least: int, what: str) -> int:
    if not text.isdecimal() or not least <= int(text) <= _MAX_WIDTH:
        raise ConfigError(f"{what} '{text}' is not an integer from {least}")
    return int(text)


def _no_arguments(arguments: tuple[str, ...]) -> None:
    """Check nothing, because the function takes no arguments after the column."""


def _check_precision(arguments: tuple[str, ...]) -> None:
    for argument in arguments:
        check_precision(argument)


def _check_format(arguments: tuple[str, ...]) -> None:
    check_pattern(arguments[0])
    _check_precision(arguments[1:])


def _check_span(arguments: tuple[str, ...]) -> None:
    begin = _whole(arguments[0], 0, "begin")
    if len(arguments) > 1:
        _whole(arguments[1], begin, "end")


def _check_width(arguments: tuple[str, ...]) -> None:
    _whole(arguments[0], 1, "width")


def _part(name: str) -> _Function:
    def evaluate_part(values: Values, source: DataType, arguments: tuple[str, ...]) -> Values:
        return part_of(name, points_in_time(values, source, *arguments))

    return _Function((1, 2), _check_precision, evaluate_part, _INT)


def _formatted(values: Values, source: DataType, arguments: tuple[str, ...]) -> Values:
    return format_times(points_in_time(values, source, *arguments[1:]), arguments[0])


def _substring(values: Values, source: DataType, arguments: tuple[str, ...]) -> Values:
    end = int(arguments[1]) if len(arguments) > 1 else None
    return substring(as_texts(values, source), int(arguments[0]), end)


def _truncated(values: Values, source: DataType, arguments: tuple[str, ...]) -> Values:
    return truncate(values, source, int(arguments[0]))


def _of_text(change: Callable[[Values], Any]) -> _Function:
    def evaluate_text(values: Values, source: DataType, arguments: tuple[str, ...]) -> Values:
        del arguments
        return change(as_texts(values, source))

    return _Function((1, 1), _no_arguments, evaluate_text)


_FUNCTIONS: Mapping[str, _Function] = {
    **{name: _part(name) for name in PARTS},
    "date_format": _Function((2, 3), _check_format, _formatted),
    "substring": _Function((2, 3), _check_span, _substring),
    "truncate": _Function((2, 2), _check_width, _truncated, None),
    "upper": _of_text(pc.utf8_upper),
    "lower": _of_text(pc.utf8_lower),
    "trim": _of_text(trim),
}
_CONSTANT = ("cast", "now")
FUNCTIONS = (*_FUNCTIONS, *_CONSTANT)
"""The names of Paimon's functions for computed columns."""
