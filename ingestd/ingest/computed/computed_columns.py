"""Compute columns from other columns of a batch, with Paimon's functions or SQL expressions.

Paimon's functions return null for null, and for a substring beyond the end of a string. If a
function fails, for instance because a string is not a timestamp, the record is rejected. A text
that is not a call of one of these functions, or that starts with `=`, is a SQL expression. If an
expression fails, for instance because of a division by zero, the record is rejected, too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ingestd.errors import ConfigError, FormatError, SchemaConflictError, UnsupportedError
from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.expressions.expression import (
    Expression,
    Outcome,
    read_expression,
    run_expression,
)
from ingestd.ingest.computed.functions import (
    FUNCTIONS,
    Call,
    called_function,
    check_call,
    constant_of,
    evaluate_call,
    parse_call,
    source_of,
    type_of_call,
)
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType

if TYPE_CHECKING:
    from ingestd.paimon.spec.arrow import Values


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A computed column: its name, and the call or SQL expression that computes it."""

    name: str
    call: Call | Expression

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns from which the column is directly computed, without duplicates."""
        if isinstance(self.call, Expression):
            return self.call.columns
        source = source_of(self.call)
        return () if source is None else (source,)

    @property
    def depends_on_time(self) -> bool:
        """Whether the value depends on the time, so that a repeated run can give another value."""
        if isinstance(self.call, Expression):
            return self.call.depends_on_time
        return self.call.function == "now"

    def __str__(self) -> str:
        return f"computed column '{self.name}' = {self.call}"


def parse_computed(name: str, text: str) -> ComputedColumn:
    """Parse a computed column: `text` is a call of one of Paimon's functions or a SQL expression.

    Raises ConfigError, with name and text, if the text is invalid.
    """
    try:
        call = _read(text.strip())
    except (ConfigError, FormatError, UnsupportedError, pa.ArrowInvalid) as error:
        raise ConfigError(f"computed column '{name}' = {text}: {error}") from error
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
    """Sort computed columns so that each follows the columns that it depends on.

    Raises ConfigError if dependencies are circular.
    """
    waiting = {column.name: column for column in columns}
    ordered: list[ComputedColumn] = []
    while waiting:
        ready = [column for column in waiting.values() if waiting.keys().isdisjoint(column.sources)]
        if not ready:
            first = next(iter(waiting.values()))
            raise ConfigError(
                f"{first}: it depends on itself, through {', '.join(sorted(waiting))}; a computed "
                "column needs another name than the columns that it is computed from"
            )
        for column in ready:
            ordered.append(waiting.pop(column.name))
    return tuple(ordered)


def fixed_type(column: ComputedColumn, types: Mapping[str, DataType]) -> DataType | None:
    """Infer the type of a computed column, or return None if `types` do not determine it.

    `types` are the known types of other columns. Returns None also for a function like `truncate`,
    whose result has the type of its column. Raises ConfigError if an expression does not accept the
    types.
    """
    if not isinstance(column.call, Expression):
        return type_of_call(column.call)
    try:
        return column.call.type_with(types)
    except ConfigError as error:
        raise ConfigError(f"{column}: {error.message}") from error


def compute(column: ComputedColumn, types: Mapping[str, DataType], frame: Frame) -> Outcome | None:
    """Compute a column from the columns of a frame, or return None if its type is unknown.

    `types` are the types of the columns of the frame. A missing source column counts as null. If
    the type of the result depends only on missing columns, it is unknown; the column is added to
    the table when a batch has these columns. Raises SchemaConflictError if the column cannot be
    computed from columns of these types.
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
        outcome = evaluate_call(call, frame.columns[source], types[source])
        return Outcome(outcome.values, data_type or types[source].as_nullable(), outcome.marks)
    if data_type is None:
        return None
    arrow_type: Values = to_arrow_type(data_type)
    nothing: Values = pa.scalar(None, arrow_type)
    value = constant_of(call, frame.now_ms) if source is None else nothing
    return Outcome(pa.repeat(value, frame.rows), data_type, np.zeros(frame.rows, np.bool_))
