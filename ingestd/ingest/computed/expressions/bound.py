"""Bind the nodes of an expression to column types, to determine result types and kernels.

Binding reports errors with their position: unknown functions, wrong numbers of arguments, and
incompatible types. Before all column types are known, `infer_type` finds the errors that do
not depend on them.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.ingest.computed.expressions.casts import cast_kernel, cast_times, lenient
from ingestd.ingest.computed.expressions.cells import ExpressionCells, Frame, Kernel
from ingestd.ingest.computed.expressions.conditionals import CHOICE_FUNCTIONS
from ingestd.ingest.computed.expressions.digests import DIGEST_FUNCTIONS
from ingestd.ingest.computed.expressions.function import (
    BOOLEAN,
    DATE,
    DOUBLE,
    TEXT,
    Argument,
    Function,
)
from ingestd.ingest.computed.expressions.json_texts import JSON_FUNCTIONS
from ingestd.ingest.computed.expressions.logic import LOGIC_FUNCTIONS
from ingestd.ingest.computed.expressions.math_functions import NUMBER_FUNCTIONS
from ingestd.ingest.computed.expressions.nodes import (
    CLOCK,
    CallNode,
    CastNode,
    ColumnNode,
    Constant,
    ConstantNode,
    Node,
    wrong,
)
from ingestd.ingest.computed.expressions.string_functions import TEXT_FUNCTIONS
from ingestd.ingest.computed.expressions.time_functions import TIME_FUNCTIONS
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import TIMESTAMP_ROOTS, DataType

if TYPE_CHECKING:
    from ingestd.paimon.spec.arrow import Values

CASTS: Mapping[str, DataType] = {
    "to_date": DATE,
    "to_timestamp": DataType("TIMESTAMP", precision=6),
}
"""Functions that are casts to a fixed type."""
FUNCTIONS: Mapping[str, Function] = {
    **LOGIC_FUNCTIONS,
    **CHOICE_FUNCTIONS,
    **NUMBER_FUNCTIONS,
    **TEXT_FUNCTIONS,
    **TIME_FUNCTIONS,
    **DIGEST_FUNCTIONS,
    **JSON_FUNCTIONS,
}
NAMES = tuple(sorted(name for name in (*FUNCTIONS, *CLOCK, *CASTS) if name.isidentifier()))
"""The names of functions and of operators that are words, such as `and`."""
_INT_BOUND, _BIGINT_BOUND = 2**31, 2**63
_DAY_MS = 86_400_000
_MICROSECONDS = DataType("TIMESTAMP", precision=6)
_NANOSECONDS = DataType("TIMESTAMP", precision=9)
_LTZ = "TIMESTAMP_LTZ"


@dataclass(frozen=True, slots=True)
class Bound:
    """An expression node bound to column types, ready to be evaluated.

    `argument` has its type and, if it is constant, its value; `run` evaluates it.
    """

    argument: Argument
    run: Callable[[Frame], ExpressionCells]

    @property
    def type(self) -> DataType | None:
        """The type of the values, or None for an untyped NULL."""
        return self.argument.type


def bind(node: Node, types: Mapping[str, DataType]) -> Bound:
    """Bind a node to columns of these types; a column that `types` lacks is NULL.

    Raises ConfigError, with the position, for an unknown function, a wrong number of arguments, or
    incompatible types.
    """
    bound = _Binder(types, all_known=True).bind(node)
    if bound is None:
        raise ValueError("with all columns known, all types are")
    return bound


def infer_type(node: Node, types: Mapping[str, DataType]) -> DataType | None:
    """Check a node while some column types are unknown; return its type.

    A column that `types` lacks can have any type. The result is None if the type is unknown or the
    node is an untyped NULL. Raises ConfigError, with the position, for an unknown function, a wrong
    number of arguments, or incompatible types.
    """
    bound = _Binder(types, all_known=False).bind(node)
    return None if bound is None else bound.type


class _Binder:
    def __init__(self, types: Mapping[str, DataType], *, all_known: bool) -> None:
        self._types = types
        self._all_known = all_known

    def bind(self, node: Node) -> Bound | None:
        """Return the bound node, or None if it depends on a column of unknown type."""
        if isinstance(node, ConstantNode):
            return _constant(node)
        if isinstance(node, ColumnNode):
            return self._column(node)
        if isinstance(node, CastNode):
            inner = self.bind(node.argument)
            return _cast(node, inner) if inner else None
        return self._call(node)

    def _column(self, node: ColumnNode) -> Bound | None:
        if node.name in self._types:
            data_type, name = self._types[node.name].as_nullable(), node.name
            return Bound(Argument(data_type), lambda frame: ExpressionCells(frame.columns[name]))
        return _null() if self._all_known else None

    def _call(self, node: CallNode) -> Bound | None:
        _refuse_call(node)
        if node.function in CASTS:
            target = CASTS[node.function]
            return self.bind(CastNode(node.arguments[0], target, lenient=False, at=node.at))
        inner = [self.bind(argument) for argument in node.arguments]
        if node.function in CLOCK:
            return _clock(node.function)
        # An unknown type is compatible with every type, like NULL.
        arguments = [Argument(None) if bound is None else bound.argument for bound in inner]
        known = [bound for bound in inner if bound is not None]
        try:
            plan = FUNCTIONS[node.function].plan(arguments)
            if len(known) < len(inner):
                return None
            casts = [
                _as_taken(bound, takes) for bound, takes in zip(known, plan.takes, strict=False)
            ]
        except (ConfigError, UnsupportedError) as error:
            raise _placed(node, error.message) from error
        if plan.type is None or plan.kernel is None:
            return _null()
        return Bound(Argument(plan.type), _running(plan.kernel, casts))


def _placed(node: Node, message: str) -> ConfigError:
    return ConfigError(message) if message.startswith("at character") else wrong(node, message)


def _running(
    kernel: Kernel, runs: list[Callable[[Frame], ExpressionCells]]
) -> Callable[[Frame], ExpressionCells]:
    return lambda frame: kernel([run(frame) for run in runs])


def _refuse_call(node: CallNode) -> None:
    name, count = node.function, len(node.arguments)
    if name in CLOCK or name in CASTS:
        least = most = int(name in CASTS)
    elif name in FUNCTIONS:
        least, most = FUNCTIONS[name].least, FUNCTIONS[name].most or count
    else:
        close = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.6)
        hint = f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(NAMES)}"
        raise wrong(node, f"unknown function '{name}'{hint}")
    if not least <= count <= max(least, most):
        accepted = f"{least}" if least == most else f"{least} to {most}"
        accepted = (
            f"at least {least}" if name in FUNCTIONS and not FUNCTIONS[name].most else accepted
        )
        raise wrong(node, f"{name} takes {accepted} arguments, not {count}")


def _clock(name: str) -> Bound:
    data_type = CLOCK[name]
    arrow_type: Values = to_arrow_type(data_type)

    def run(frame: Frame) -> ExpressionCells:
        if data_type == DATE:
            day: Values = pa.scalar(frame.now_ms // _DAY_MS, pa.int32())
            return ExpressionCells(pa.repeat(day.cast(arrow_type), frame.rows))
        return ExpressionCells(pa.repeat(pa.scalar(frame.now_ms, arrow_type), frame.rows))

    return Bound(Argument(data_type), run)


def _null() -> Bound:
    argument = Argument(None, is_constant=True)
    return Bound(argument, lambda frame: ExpressionCells(pa.nulls(frame.rows)))


def _constant(node: ConstantNode) -> Bound:
    value = node.value
    if value is None:
        return _null()
    try:
        data_type = _type_of(value)
        scalar: Values = pa.scalar(value, to_arrow_type(data_type))
    except (ValueError, pa.ArrowInvalid) as error:
        raise wrong(node, f"{value} has too many digits") from error
    argument = Argument(data_type, is_constant=True, constant=value)
    return Bound(argument, lambda frame: ExpressionCells(pa.repeat(scalar, frame.rows)))


def _type_of(value: Constant) -> DataType:
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        if -_INT_BOUND <= value < _INT_BOUND:
            return DataType("INT")
        fits = -_BIGINT_BOUND <= value < _BIGINT_BOUND
        return DataType("BIGINT") if fits else DataType("DECIMAL", precision=len(str(abs(value))))
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        scale = -int(exponent)
        return DataType("DECIMAL", precision=max(len(digits), scale, 1), scale=scale)
    return DOUBLE if isinstance(value, float) else TEXT


def _cast(node: CastNode, inner: Bound) -> Bound:
    try:
        return _bound_cast(inner, node.type.as_nullable(), is_lenient=node.lenient)
    except (ConfigError, UnsupportedError) as error:
        raise _placed(node, error.message) from error


def _as_taken(inner: Bound, takes: DataType) -> Callable[[Frame], ExpressionCells]:
    bound, text = _bound_cast(inner, takes), inner.argument.constant
    if isinstance(text, str) and takes.root in (*TIMESTAMP_ROOTS, "DATE"):
        _refuse_lost_digits(text, takes)
    return bound.run


def _bound_cast(inner: Bound, target: DataType, *, is_lenient: bool = False) -> Bound:
    arrow_type: Values = to_arrow_type(target)
    if inner.type is None:
        return Bound(
            Argument(target), lambda frame: ExpressionCells(pa.nulls(frame.rows, arrow_type))
        )
    kernel = cast_kernel(inner.type, target)
    if kernel is None:
        return Bound(
            Argument(target, inner.argument.is_constant, inner.argument.constant), inner.run
        )
    if is_lenient:
        kernel = lenient(kernel)
    elif inner.argument.is_constant:
        _refuse_constant(inner, kernel, target)
    bound = Bound(Argument(target), _running(kernel, [inner.run]))
    return bound if not inner.argument.is_constant else _folded(bound)


def _refuse_lost_digits(text: str, target: DataType) -> None:
    """Raise ConfigError if a text is a time with more fractional digits than a type has.

    A comparison with the truncated time would have another result. For DATE, the text must not
    have a time of the day other than midnight.
    """
    texts: Values = pa.array([text], pa.string())
    exact, taken = _exact_time(texts), cast_times(texts, target)
    if exact.is_null()[0].as_py() or taken.is_null()[0].as_py():
        return
    taken = taken.cast(pa.timestamp(taken.type.unit)) if target.root != "DATE" else taken
    if not taken.cast(exact.type).equals(exact):
        raise ConfigError(f"'{text}' has more digits than {target}; CAST the column")


def _exact_time(texts: "Values") -> "Values":
    """Return times with all their digits: in nanoseconds, or in microseconds if out of range."""
    try:
        return cast_times(texts, _NANOSECONDS)
    except UnsupportedError:
        return cast_times(texts, _MICROSECONDS)


def _refuse_constant(inner: Bound, kernel: Kernel, target: DataType) -> None:
    """Raise ConfigError if the cast of a constant fails."""
    cells = kernel([inner.run(Frame({}, 1))])
    if cells.failed is not None and bool(cells.failed.any()):
        way_out = "; write it in UTC, as '2025-01-31 23:59:59'" if target.root == _LTZ else ""
        raise ConfigError(f"'{inner.argument.constant}' is not a valid {target}{way_out}")


def _folded(bound: Bound) -> Bound:
    """Evaluate a constant expression once, and return an expression with this value."""
    value: Values = bound.run(Frame({}, 1)).values[0]
    return Bound(bound.argument, lambda frame: ExpressionCells(pa.repeat(value, frame.rows)))
