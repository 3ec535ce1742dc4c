"""Columns that are computed from others, on whole columns: Paimon's functions, or SQL.

In Paimon's functions a null gives null, a text that is no point in time costs its record, as a
value does that does not fit, and a part that lies beyond the end of a text is null. A text that is
not a call of one of them, or that begins with `=`, is a SQL expression; a row that it fails for, as
by dividing by zero, costs its record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ingestd.errors import ConfigError, FormatError, SchemaConflictError, UnsupportedError
from ingestd.ingest.computed.calls import Call, called_function, parse_call
from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.expressions.expression import (
    Expression,
    Outcome,
    read_expression,
    run_expression,
)
from ingestd.ingest.computed.functions import (
    FUNCTIONS,
    check_call,
    constant_of,
    evaluate_call,
    source_of,
    type_of_call,
)
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType

if TYPE_CHECKING:
    from ingestd.ingest.values.row_groups import Values


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column and the call or the SQL expression that makes it."""

    name: str
    call: Call | Expression

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it is made from."""
        if isinstance(self.call, Expression):
            return self.call.columns
        source = source_of(self.call)
        return () if source is None else (source,)

    @property
    def is_another_each_time(self) -> bool:
        """Whether the same row gives another value when it is read again."""
        if isinstance(self.call, Expression):
            return self.call.tells_time
        return self.call.function == "now"

    def __str__(self) -> str:
        return f"computed column '{self.name}' = {self.call}"


def parse_computed(name: str, text: str) -> ComputedColumn:
    """A computed column from its text; ConfigError names column and expression."""
    try:
        call = _read(text.strip())
    except (ConfigError, FormatError, UnsupportedError, pa.ArrowInvalid) as error:
        problem = error.message if isinstance(error, ConfigError | FormatError) else str(error)
        raise ConfigError(f"computed column '{name}' = {text}: {problem}") from error
    return ComputedColumn(name, call)


def _read(text: str) -> Call | Expression:
    if text.startswith("="):
        return read_expression(text[1:].strip())
    called = called_function(text)
    if called not in FUNCTIONS:
        return read_expression(text)
    call = parse_call(text)
    check_call(call)
    return call


def in_order(columns: Iterable[ComputedColumn]) -> tuple[ComputedColumn, ...]:
    """Computed columns such that each comes after those it is made from.

    ConfigError for columns that are made from one another.
    """
    waiting = {one.name: one for one in columns}
    ordered: list[ComputedColumn] = []
    while waiting:
        ready = [one for one in waiting.values() if waiting.keys().isdisjoint(one.sources)]
        if not ready:
            first = next(iter(waiting.values()))
            raise ConfigError(
                f"{first}: it is made from itself, over {', '.join(sorted(waiting))}; a computed "
                "column needs another name than the columns that it is made from"
            )
        for one in ready:
            ordered.append(waiting.pop(one.name))
    return tuple(ordered)


def fixed_type(column: ComputedColumn, types: Mapping[str, DataType]) -> DataType | None:
    """The type of a computed column by what is known of types, None if that does not tell.

    ConfigError if it cannot be made from columns of these types.
    """
    if not isinstance(column.call, Expression):
        return type_of_call(column.call)
    try:
        return column.call.type_with(types)
    except ConfigError as error:
        raise ConfigError(f"{column}: {error.message}") from error


def compute(column: ComputedColumn, types: Mapping[str, DataType], frame: Frame) -> Outcome | None:
    """A column from the columns of a frame, which have these types; None: there is nothing yet.

    A source that is not there is null; what is made from that alone and has no type of its own
    comes with later rows. SchemaConflictError for types that the column cannot be made from.
    """
    try:
        if isinstance(column.call, Expression):
            return run_expression(column.call, types, frame)
        return _of_call(column.call, types, frame)
    except (ConfigError, SchemaConflictError) as error:
        known = ", ".join(f"{name} {types[name]}" for name in column.sources if name in types)
        raise SchemaConflictError(
            f"{column}: {error.message}; the columns are {known or 'unknown'}; correct the "
            "expression, or fix the types in schema.column-types"
        ) from error


def _of_call(call: Call, types: Mapping[str, DataType], frame: Frame) -> Outcome | None:
    source, data_type = source_of(call), type_of_call(call)
    if source is not None and source in types:
        made = evaluate_call(call, frame.columns[source], types[source])
        return Outcome(made.values, data_type or types[source].as_nullable(), made.marks)
    if data_type is None:
        return None
    arrow_type: Values = to_arrow_type(data_type)
    nothing: Values = pa.scalar(None, arrow_type)
    value = constant_of(call, frame.now_ms) if source is None else nothing
    return Outcome(pa.repeat(value, frame.rows), data_type, np.zeros(frame.rows, np.bool_))
