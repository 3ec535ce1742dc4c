"""Columns that are computed from others: Paimon's fourteen functions, on whole columns.

A null gives null. A text that is no point in time costs its record, as a value does that does not
fit; a part that lies beyond the end of a text is null.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError, FormatError, SchemaConflictError, UnsupportedError
from ingestd.ingest.computed_expressions import Call, parse_call
from ingestd.ingest.computed_times import (
    PARTS,
    check_pattern,
    check_precision,
    format_times,
    part_of,
    points_in_time,
)
from ingestd.ingest.computed_values import TEXT, as_texts, substring, trim, truncate
from ingestd.ingest.row_groups import Values
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType, parse_type
from ingestd.paimon.table.evolution import cast_text

Mask = npt.NDArray[np.bool_]
_INT = DataType("INT")
_INSTANT = DataType("TIMESTAMP_LTZ", precision=3)
_MAX_WIDTH = 2**31 - 1
_BAD_VALUES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnsupportedError)


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column and the call that makes it; `source` is the column it is made from, if any."""

    name: str
    call: Call

    @property
    def source(self) -> str | None:
        """The column that the function takes."""
        return None if self.call.function in _CONSTANT else self.call.arguments[0]

    def __str__(self) -> str:
        return f"computed column '{self.name}' = {self.call}"


@dataclass(frozen=True, slots=True)
class Computed:
    """Values of a computed column, their type, and marks of rows that gave none (null there)."""

    values: Values
    type: DataType
    failed: Mask


@dataclass(frozen=True, slots=True)
class _Function:
    """What a function takes beside its column, how it is checked and what it gives.

    `takes` are the least and the most arguments; `check` raises ConfigError for arguments;
    `evaluate` takes an Arrow array, its type and the arguments behind the column.
    """

    takes: tuple[int, int]
    check: Callable[[tuple[str, ...]], None]
    evaluate: Callable[[Values, DataType, tuple[str, ...]], Values]
    type: DataType | None = TEXT


def parse_computed(name: str, text: str) -> ComputedColumn:
    """A computed column from its text; ConfigError names column and expression."""
    try:
        call = parse_call(text)
        _check(call)
    except (ConfigError, FormatError, UnsupportedError, pa.ArrowInvalid) as error:
        problem = error.message if isinstance(error, ConfigError | FormatError) else str(error)
        raise ConfigError(f"computed column '{name}' = {text}: {problem}") from error
    return ComputedColumn(name, call)


def _check(call: Call) -> None:
    if call.function == "now":
        least, most = 0, 0
    elif call.function == "cast":
        least, most = 1, 2
    elif call.function in _FUNCTIONS:
        least, most = _FUNCTIONS[call.function].takes
    else:
        raise ConfigError(f"there is no function '{call.function}', only {', '.join(FUNCTIONS)}")
    if not least <= len(call.arguments) <= most:
        wanted = f"{least}" if least == most else f"{least} or {most}"
        raise ConfigError(f"{call.function} takes {wanted} arguments, not {len(call.arguments)}")
    if call.function == "cast":
        _constant(call)
    elif call.function != "now":
        _FUNCTIONS[call.function].check(call.arguments[1:])


def in_order(columns: Iterable[ComputedColumn]) -> tuple[ComputedColumn, ...]:
    """Computed columns such that each comes behind those it is made from.

    ConfigError for columns that are made from one another.
    """
    waiting = {one.name: one for one in columns}
    ordered: list[ComputedColumn] = []
    while waiting:
        ready = [one for one in waiting.values() if one.source not in waiting]
        if not ready:
            first = next(iter(waiting.values()))
            raise ConfigError(
                f"{first}: it is made from itself, over {', '.join(sorted(waiting))}; a computed "
                "column needs another name than the columns that it is made from"
            )
        for one in ready:
            ordered.append(waiting.pop(one.name))
    return tuple(ordered)


def fixed_type(column: ComputedColumn) -> DataType | None:
    """The type of a computed column, None if it is that of the column it is made from."""
    if column.call.function == "now":
        return _INSTANT
    if column.call.function == "cast":
        return _constant_type(column.call)
    return _FUNCTIONS[column.call.function].type


def constant(column: ComputedColumn, rows: int, now_ms: int) -> Computed:
    """A column that is made from no other; `now_ms` is the time that `now()` gives."""
    if column.call.function == "now":
        data_type = _INSTANT
        value: Values = pa.scalar(now_ms, to_arrow_type(_INSTANT))
    else:
        data_type = _constant_type(column.call)
        value = _constant(column.call)
    return Computed(pa.repeat(value, rows), data_type, np.zeros(rows, np.bool_))


def evaluate(column: ComputedColumn, values: Values, source: DataType) -> Computed:
    """A column made from the values (an Arrow chunked array) of another of type `source`.

    SchemaConflictError if the function does not take that type.
    """
    function = _FUNCTIONS[column.call.function]
    data_type = function.type or source.as_nullable()
    arrow_type: Values = to_arrow_type(data_type)
    _refuse_type(column, function, source)
    parts = [_evaluate(chunk, column, source, arrow_type) for chunk in values.chunks]
    chunks, marks = [chunk for chunk, _ in parts], [mark for _, mark in parts]
    failed = np.concatenate(marks) if marks else np.zeros(0, np.bool_)
    return Computed(pa.chunked_array(chunks, arrow_type), data_type, failed)


def _refuse_type(column: ComputedColumn, function: _Function, source: DataType) -> None:
    """A type is judged by no values at all."""
    try:
        function.evaluate(pa.array([], to_arrow_type(source)), source, column.call.arguments[1:])
    except _BAD_VALUES as error:
        raise SchemaConflictError(
            f"{column}: column '{column.source}' is {source}, which {column.call.function} does "
            f"not take ({error}); correct the expression, or fix the type in schema.column-types"
        ) from error


def _evaluate(
    chunk: Values, column: ComputedColumn, source: DataType, arrow_type: Values
) -> tuple[Values, Mask]:
    function, arguments = _FUNCTIONS[column.call.function], column.call.arguments[1:]
    try:
        made = function.evaluate(chunk, source, arguments).cast(arrow_type)
        return made, np.zeros(len(chunk), np.bool_)
    except _BAD_VALUES:
        if len(chunk) == 1:
            return pa.nulls(1, arrow_type), np.ones(1, np.bool_)
    # Halving finds a few bad values among many good ones in few steps.
    half = len(chunk) // 2
    left, left_failed = _evaluate(chunk.slice(0, half), column, source, arrow_type)
    right, right_failed = _evaluate(chunk.slice(half), column, source, arrow_type)
    return pa.concat_arrays([left, right]), np.concatenate([left_failed, right_failed])


def _constant_type(call: Call) -> DataType:
    return parse_type(call.arguments[1]) if len(call.arguments) > 1 else TEXT


def _constant(call: Call) -> Values:
    texts: Values = pa.array([call.arguments[0]], pa.string())
    return cast_text(texts, _constant_type(call))[0]


def _whole(text: str, least: int, what: str) -> int:
    if not text.isdecimal() or not least <= int(text) <= _MAX_WIDTH:
        raise ConfigError(f"{what} '{text}' is no whole number from {least}")
    return int(text)


def _no_arguments(arguments: tuple[str, ...]) -> None:
    """Nothing to check: their number has been."""


def _check_precision(arguments: tuple[str, ...]) -> None:
    for one in arguments:
        check_precision(one)


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
"""Names of all functions."""
