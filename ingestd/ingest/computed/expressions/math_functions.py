"""Functions on numbers: arithmetic and rounding.

The result for two integers has the wider of their types, and an overflow fails. Sums, differences
and products of decimals are exact, with up to 38 digits; if more are needed, fractional digits take
precedence, and a number that is too large fails. `/` returns a DOUBLE for integers, and for
decimals a DECIMAL with at least six fractional digits, rounded half up. A division by zero fails.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.casts import is_zero
from ingestd.ingest.computed.expressions.cells import (
    ExpressionCells,
    Kernel,
    PlainKernel,
    either,
    strict,
)
from ingestd.ingest.computed.expressions.function import (
    BIGINT,
    DOUBLE,
    FLOATING_ROOTS,
    INT,
    NUMBER_ROOTS,
    Argument,
    Function,
    Plan,
    Planner,
    constant_number,
    require,
)
from ingestd.ingest.computed.expressions.logic import MAX_DIGITS, common_type, exact_type
from ingestd.paimon.spec.arrow import Values, to_arrow_type
from ingestd.paimon.spec.data_types import INTEGER_ROOTS, DataType

_HALF_UP: Values = "half_towards_infinity"
_WIDE = 76
"""The number of digits of Arrow's widest decimal type."""
_LEAST_SCALE = 6
ResultType = Callable[[DataType, DataType], DataType]
"""Returns the DECIMAL type of the result, given the types of two operands."""


def _kind(what: str, arguments: Sequence[Argument]) -> DataType | None:
    """Return the type in which to calculate; a DECIMAL has neither precision nor scale.

    This is DOUBLE if any argument is FLOAT or DOUBLE, else DECIMAL if any argument is DECIMAL, else
    the widest integer type, or None if all arguments are NULL. Raises ConfigError if an argument is
    not a number.
    """
    require(what, arguments, NUMBER_ROOTS)
    roots = {argument.type.root for argument in arguments if argument.type is not None}
    if roots & FLOATING_ROOTS:
        return DOUBLE
    return DataType("DECIMAL") if "DECIMAL" in roots else common_type(what, arguments)


def _number_type(what: str, arguments: Sequence[Argument]) -> DataType | None:
    require(what, arguments, NUMBER_ROOTS)
    return common_type(what, arguments)


def _nothing(data_type: DataType | None, count: int) -> Plan:
    """Plan a calculation with `count` arguments of which at least one is an untyped NULL.

    The result is NULL, of type `data_type` unless that is None.
    """
    if data_type is None:
        return Plan(None, (), None)
    arrow_type: Values = to_arrow_type(data_type)

    def run(cells: Sequence[ExpressionCells]) -> ExpressionCells:
        nulls: Values = pa.nulls(len(cells[0].values), arrow_type)
        return ExpressionCells(nulls, either(*(cell.failed for cell in cells)))

    return Plan(data_type, (data_type,) * count, run)


def _has_null(arguments: Sequence[Argument]) -> bool:
    return any(argument.type is None for argument in arguments)


def _decimal(whole: int, scale: int) -> DataType:
    """Return the DECIMAL type with this scale and `whole` whole digits, or as many as fit.

    Raises ConfigError if the scale exceeds the maximum precision.
    """
    if scale > MAX_DIGITS:
        raise ConfigError(
            f"{scale} fractional digits are more than {MAX_DIGITS}; CAST one value to fewer"
        )
    return DataType("DECIMAL", precision=max(1, min(whole + scale, MAX_DIGITS)), scale=scale)


def _arithmetic(sign: str, checked: PlainKernel, result_of: ResultType) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        kind = _kind(sign, arguments)
        if kind is None or _has_null(arguments):
            return _nothing(kind, 2)
        if kind.root != "DECIMAL":
            return Plan(kind, (kind, kind), strict(checked, to_arrow_type(kind)))
        first, second = (exact_type(argument) for argument in arguments)
        result = result_of(first, second)
        arrow_type = to_arrow_type(result)

        def run(left: Values, right: Values) -> Values:
            # All digits are computed; a number that does not fit the result type fails.
            return checked(_wide(left), _wide(right)).cast(arrow_type)

        return Plan(result, (first, second), strict(run, arrow_type))

    return Function(2, 2, plan)


def _sum(first: DataType, second: DataType) -> DataType:
    whole = max(_whole(first), _whole(second)) + 1
    return _decimal(whole, max(first.scale or 0, second.scale or 0))


def _product(first: DataType, second: DataType) -> DataType:
    if (first.precision or 0) + (second.precision or 0) + 1 > _WIDE:
        raise _too_many("*", first, second)
    return _decimal(_whole(first) + _whole(second) + 1, (first.scale or 0) + (second.scale or 0))


def _whole(data_type: DataType) -> int:
    return (data_type.precision or 0) - (data_type.scale or 0)


def _too_many(sign: str, first: DataType, second: DataType) -> ConfigError:
    return ConfigError(f"{first} {sign} {second} has too many digits; CAST one of them to fewer")


def _wide(values: Values, more: int = 0) -> Values:
    kind = values.type
    return values.cast(pa.decimal256(kind.precision + more, kind.scale + more))


def _ratio(first: DataType, second: DataType) -> Plan:
    """Plan a division of decimals.

    The quotient is computed with at least one digit more than the result, and truncated there,
    which suffices to round half up. Raises ConfigError if too many digits are needed.
    """
    scale = max(_LEAST_SCALE, (first.scale or 0) + (second.precision or 0) + 1)
    whole = _whole(first) + (second.scale or 0)
    if whole + scale > MAX_DIGITS:
        scale = max(min(scale, _LEAST_SCALE), MAX_DIGITS - whole)
    result = _decimal(whole, scale)
    arrow_type = to_arrow_type(result)
    given = (first.scale or 0) + (second.precision or 0) - (second.scale or 0) + 1
    more = max(0, scale + 1 - given)
    if (first.precision or 0) + (second.precision or 0) + more + 1 > _WIDE:
        raise _too_many("/", first, second)

    def run(left: Values, right: Values) -> Values:
        quotient = pc.divide(_wide(left, more), _wide(right))
        return pc.round(quotient, scale, _HALF_UP).cast(arrow_type)

    return Plan(result, (first, second), _dividing(run, arrow_type))


def _dividing(kernel: PlainKernel, arrow_type: pa.DataType) -> Kernel:
    """Return a kernel of a division that fails for rows whose divisor is zero."""
    inner = strict(kernel, arrow_type)

    def run(cells: Sequence[ExpressionCells]) -> ExpressionCells:
        left, right = cells
        zero: Values = pc.fill_null(is_zero(right.values), False)
        marks = np.asarray(zero)
        if not marks.any():
            return inner(cells)
        nothing: Values = pa.scalar(None, right.values.type)
        quotient = inner(
            [left, ExpressionCells(pc.if_else(zero, nothing, right.values), right.failed)]
        )
        marks = marks & np.asarray(left.values.is_valid())
        return ExpressionCells(quotient.values, either(quotient.failed, marks))

    return run


def _divide(arguments: Sequence[Argument]) -> Plan:
    kind = _kind("/", arguments)
    if kind is None or _has_null(arguments):
        return _nothing(kind and DOUBLE, 2)
    if kind.root != "DECIMAL":
        return Plan(DOUBLE, (DOUBLE, DOUBLE), _dividing(pc.divide, pa.float64()))
    first, second = (exact_type(argument) for argument in arguments)
    return _ratio(first, second)


def _whole_division(name: str, *, rest: bool) -> Planner:
    """Return the planner of a quotient truncated towards zero, or, if `rest`, of a remainder.

    A remainder has the sign of the dividend. `name` is the function in error messages.
    """

    def plan(arguments: Sequence[Argument]) -> Plan:
        data_type = _number_type(name, arguments)
        if data_type is None or _has_null(arguments):
            return _nothing(data_type, 2)
        if data_type.root in FLOATING_ROOTS:
            raise ConfigError(f"{name} takes exact numbers; CAST them to DECIMAL")
        if data_type.root in INTEGER_ROOTS:
            kernel = _integer_rest if rest else pc.divide_checked
            return Plan(
                data_type, (data_type, data_type), _dividing(kernel, to_arrow_type(data_type))
            )
        if 2 * (data_type.precision or 0) + 1 > _WIDE:
            raise _too_many(name, data_type, data_type)
        result = data_type if rest else BIGINT
        arrow_type = to_arrow_type(result)

        def run(left: Values, right: Values) -> Values:
            quotient = pc.trunc(pc.divide(_wide(left), _wide(right)))
            if not rest:
                return quotient.cast(arrow_type)
            by = quotient.cast(pa.decimal256(_WIDE - 1 - right.type.precision, 0))
            whole: Values = pc.multiply(by, _wide(right))
            room = pa.decimal256(_WIDE - 1, left.type.scale)
            return pc.subtract(left.cast(room), whole.cast(room)).cast(arrow_type)

        return Plan(result, (data_type, data_type), _dividing(run, arrow_type))

    return plan


def _integer_rest(left: Values, right: Values) -> Values:
    # Only a division by -1 can overflow, and its remainder is 0.
    minus = pa.scalar(-1).cast(right.type)
    one = pa.scalar(1).cast(right.type)
    safe: Values = pc.if_else(pc.equal(right, minus), one, right)
    return pc.subtract(left, pc.multiply(pc.divide(left, safe), safe))


def _same_type(name: str, kernel: PlainKernel) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        data_type = _number_type(name, arguments)
        if data_type is None:
            return _nothing(None, 0)
        return Plan(data_type, (data_type,), strict(kernel, to_arrow_type(data_type)))

    return Function(1, 1, plan)


def _round(arguments: Sequence[Argument]) -> Plan:
    digits = 0
    if len(arguments) > 1:
        digits = constant_number("the second argument of round", arguments[1], 0, MAX_DIGITS)
    data_type = _number_type("round", arguments[:1])
    if data_type is None:
        return _nothing(None, 0)
    takes = (data_type, *(INT,) * (len(arguments) - 1))
    return Plan(*_rounding(data_type, digits, lambda v: pc.round(v, digits, _HALF_UP), takes))


def _to_whole(name: str, kernel: PlainKernel) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        data_type = _number_type(name, arguments)
        if data_type is None:
            return _nothing(None, 0)
        return Plan(*_rounding(data_type, 0, kernel, (data_type,)))

    return Function(1, 1, plan)


def _rounding(
    data_type: DataType, digits: int, kernel: PlainKernel, takes: tuple[DataType, ...]
) -> tuple[DataType, tuple[DataType, ...], Kernel]:
    """Return the result type, argument types and kernel of a function that rounds numbers.

    `digits` is the maximum number of fractional digits of the result. Integers are returned
    unchanged.
    """
    if data_type.root in INTEGER_ROOTS:
        return data_type, takes, strict(lambda values, *_: values, to_arrow_type(data_type))
    if data_type.root in FLOATING_ROOTS:
        arrow_type = to_arrow_type(data_type)
        return (
            data_type,
            takes,
            strict(lambda values, *_: kernel(values).cast(arrow_type), arrow_type),
        )
    scale = min(digits, data_type.scale or 0)
    result = _decimal(_whole(data_type) + (1 if scale < (data_type.scale or 0) else 0), scale)
    exact = to_arrow_type(result)
    room = pa.decimal256((data_type.precision or 0) + 1, data_type.scale or 0)
    return (
        result,
        takes,
        strict(lambda values, *_: kernel(values.cast(room)).cast(exact), exact),
    )


def _floating(name: str, kernel: PlainKernel, count: int = 1) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        require(name, arguments, NUMBER_ROOTS)
        return Plan(DOUBLE, (DOUBLE,) * count, strict(kernel, pa.float64()))

    return Function(count, count, plan)


NUMBER_FUNCTIONS: Mapping[str, Function] = {
    "+": _arithmetic("+", pc.add_checked, _sum),
    "-": _arithmetic("-", pc.subtract_checked, _sum),
    "*": _arithmetic("*", pc.multiply_checked, _product),
    "/": Function(2, 2, _divide),
    "div": Function(2, 2, _whole_division("div", rest=False)),
    "%": Function(2, 2, _whole_division("%", rest=True)),
    "mod": Function(2, 2, _whole_division("mod", rest=True)),
    "negative": _same_type("-", pc.negate_checked),
    "abs": _same_type("abs", pc.abs_checked),
    "round": Function(1, 2, _round),
    "floor": _to_whole("floor", pc.floor),
    "ceil": _to_whole("ceil", pc.ceil),
    "ceiling": _to_whole("ceiling", pc.ceil),
    "sqrt": _floating("sqrt", pc.sqrt_checked),
    "power": _floating("power", pc.power_checked, 2),
    "exp": _floating("exp", pc.exp),
    "ln": _floating("ln", pc.ln_checked),
}
