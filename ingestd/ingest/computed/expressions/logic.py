"""Comparisons, pattern matching, AND, OR and NOT, with SQL's three-valued logic.

If the left side of AND or OR decides the result of a row, a failure of the right side is ignored.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.cells import (
    ExpressionCells,
    Kernel,
    PlainKernel,
    either,
    only,
    strict,
    true_rows,
)
from ingestd.ingest.computed.expressions.comparisons import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    not_equal,
)
from ingestd.ingest.computed.expressions.function import (
    BOOLEAN,
    DOUBLE,
    FLOATING_ROOTS,
    NUMBER_ROOTS,
    TEXT,
    Argument,
    Function,
    Plan,
    argument_types_error,
    constant_text,
    is_text,
    require,
)
from ingestd.ingest.values.type_merge import INTEGER_DIGITS, merge_types
from ingestd.paimon.spec.arrow import Values, fold_zeros
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, NESTED_ROOTS, TIMESTAMP_ROOTS, DataType

_TRUE_OR_FALSE = frozenset({"BOOLEAN"})
_FALSE: Values = pa.scalar(False)
_SHOWN = 80


def comparable(what: str, arguments: Sequence[Argument]) -> DataType:
    """Return the common type to which arguments are cast for a comparison; STRING if all are NULL.

    Raises ConfigError, which names the function `what`, if the types are incompatible or values of
    the common type cannot be compared.
    """
    data_type = common_type(what, arguments)
    if data_type is not None and data_type.root in (*NESTED_ROOTS, "VARIANT", "BLOB"):
        raise argument_types_error(what, arguments)
    return data_type or TEXT


def _comparison(sign: str, kernel: PlainKernel) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        compared = comparable(sign, arguments)
        return Plan(BOOLEAN, (compared, compared), strict(kernel, pa.bool_()))

    return Function(2, 2, plan)


def not_distinct(left: Values, right: Values) -> Values:
    """Return an array that is true where both values are equal, or both are NULL, else false.

    NaN is equal to NaN, and -0.0 to 0.0.
    """
    known: Values = pc.fill_null(equal(left, right), _FALSE)
    return pc.or_(known, pc.and_(pc.is_null(left), pc.is_null(right)))


def _distinct(left: Values, right: Values) -> Values:
    return pc.invert(not_distinct(left, right))


def _deciding(sign: str, kernel: PlainKernel, *, by: bool) -> Function:
    """Return the function AND (`by` is False) or OR (`by` is True), computed by `kernel`.

    A left side equal to `by` decides the result of a row.
    """

    def plan(arguments: Sequence[Argument]) -> Plan:
        require(sign.upper(), arguments, _TRUE_OR_FALSE)
        return Plan(BOOLEAN, (BOOLEAN, BOOLEAN), run)

    def run(cells: Sequence[ExpressionCells]) -> ExpressionCells:
        left, right = cells
        decided = true_rows(left.values if by else pc.invert(left.values))
        failed = either(left.failed, only(right.failed, ~decided))
        return ExpressionCells(kernel(left.values, right.values), failed)

    return Function(2, 2, plan)


def _of_truth(name: str, kernel: PlainKernel) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        require(name.upper(), arguments, _TRUE_OR_FALSE)
        return Plan(BOOLEAN, (BOOLEAN,), strict(kernel, pa.bool_()))

    return Function(1, 1, plan)


def _is_null(arguments: Sequence[Argument]) -> Plan:
    own = (arguments[0].type or BOOLEAN).as_nullable()
    return Plan(BOOLEAN, (own,), strict(pc.is_null, pa.bool_()))


def _in(arguments: Sequence[Argument]) -> Plan:
    compared = comparable("IN", arguments)
    return Plan(BOOLEAN, (compared,) * len(arguments), _among(arguments[1:]))


def _among(items: Sequence[Argument]) -> Kernel:
    """Return the kernel of IN, which is true if an item equals the value, and else false or NULL.

    It is NULL if the value is NULL, or if no item equals the value and an item is NULL.
    """

    def of_constants(values: Values, *given: Values) -> Values:
        listed: Values = fold_zeros(pa.concat_arrays([value.slice(0, 1) for value in given]))
        result: Values = pc.is_in(fold_zeros(values), value_set=listed.drop_null())
        unknown = pc.is_null(values)
        if listed.null_count:
            unknown = pc.or_(unknown, pc.invert(result))
        return pc.if_else(unknown, pa.scalar(None, pa.bool_()), result)

    def of_values(values: Values, *given: Values) -> Values:
        result: Values = equal(values, given[0])
        for value in given[1:]:
            result = pc.or_kleene(result, equal(values, value))
        return result

    constant = all(item.is_constant for item in items)
    return strict(of_constants if constant else of_values, pa.bool_())


def _like(sign: str, *, ignore_case: bool) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        require(sign.upper(), arguments, CHARACTER_ROOTS)
        takes = (TEXT,) * len(arguments)
        if arguments[1].is_constant and arguments[1].constant is None:
            return Plan(BOOLEAN, takes, strict(_unknown, pa.bool_()))
        pattern = constant_text(f"the pattern of {sign.upper()}", arguments[1])
        if len(arguments) > 2:
            pattern = _backslashed(pattern, constant_text("ESCAPE", arguments[2]))
        elif (len(pattern) - len(pattern.rstrip("\\"))) % 2:
            raise ConfigError(f"the pattern of {sign.upper()} ends with its escape character")

        def like(texts: Values, *_: Values) -> Values:
            return pc.match_like(texts, pattern, ignore_case=ignore_case)

        return Plan(BOOLEAN, takes, strict(like, pa.bool_()))

    return Function(2, 3, plan)


def _unknown(texts: Values, *_: Values) -> Values:
    return pa.nulls(len(texts), pa.bool_())


def _backslashed(pattern: str, escape: str) -> str:
    """Rewrite a LIKE pattern with the escape character `escape` to use a backslash instead.

    Raises ConfigError if the escape character or its use is invalid.
    """
    if len(escape) != 1:
        raise ConfigError("ESCAPE takes one character")
    like_pattern, signs = "", iter(pattern)
    for sign in signs:
        if sign == escape:
            following = next(signs, "")
            if following not in ("%", "_", escape) or not following:
                raise ConfigError(f"in LIKE, '{escape}' must be followed by %, _ or itself")
            like_pattern += f"\\{following}" if following in "%_\\" else following
        else:
            like_pattern += "\\\\" if sign == "\\" else sign
    return like_pattern


def _matches(arguments: Sequence[Argument]) -> Plan:
    require("RLIKE", arguments, CHARACTER_ROOTS)
    pattern = constant_text("the pattern of RLIKE", arguments[1])

    def match(texts: Values, *_: Values) -> Values:
        return pc.match_substring_regex(texts, pattern)

    check_pattern(pattern, match)
    return Plan(BOOLEAN, (TEXT, TEXT), strict(match, pa.bool_()))


def check_pattern(pattern: str, kernel: PlainKernel) -> None:
    """Raise ConfigError if a regular expression is too large, or cannot be parsed by Arrow.

    `kernel` applies the expression to strings.
    """
    try:
        kernel(pa.array([""], pa.string()))
    except pa.ArrowInvalid as error:
        shown = pattern if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]}..."
        raise ConfigError(f"the pattern '{shown}' cannot be used: {error}") from error


def _is(values: Values, expected: bool) -> Values:
    truth = values if expected else pc.invert(values)
    return pa.array(np.asarray(pc.fill_null(truth, _FALSE)))


LOGIC_FUNCTIONS: Mapping[str, Function] = {
    "=": _comparison("=", equal),
    "<>": _comparison("<>", not_equal),
    "<": _comparison("<", less),
    "<=": _comparison("<=", less_equal),
    ">": _comparison(">", greater),
    ">=": _comparison(">=", greater_equal),
    "<=>": _comparison("<=>", not_distinct),
    "is distinct from": _comparison("is distinct from", _distinct),
    "and": _deciding("and", pc.and_kleene, by=False),
    "or": _deciding("or", pc.or_kleene, by=True),
    "not": _of_truth("not", pc.invert),
    "is true": _of_truth("is true", lambda values: _is(values, True)),
    "is false": _of_truth("is false", lambda values: _is(values, False)),
    "is null": Function(1, 1, _is_null),
    "in": Function(2, None, _in),
    "like": _like("like", ignore_case=False),
    "ilike": _like("ilike", ignore_case=True),
    "rlike": Function(2, 2, _matches),
}


MAX_DIGITS = 38
_FROM_TEXT = TIMESTAMP_ROOTS | {"DATE", "TIME"}


def _as_decimal(data_type: DataType) -> DataType:
    """Return the DECIMAL type that holds all values of an exact number type."""
    if data_type.root == "DECIMAL":
        return data_type.as_nullable()
    return DataType("DECIMAL", precision=INTEGER_DIGITS[data_type.root], scale=0)


def exact_type(argument: Argument) -> DataType:
    """Return the DECIMAL type of an integer or DECIMAL argument.

    The type of a constant integer has only as many digits as the constant. Raises ValueError for an
    untyped NULL.
    """
    if argument.is_constant and isinstance(argument.constant, int):
        digits = max(1, len(str(abs(argument.constant))))
        return DataType("DECIMAL", precision=min(digits, MAX_DIGITS), scale=0)
    if argument.type is None:
        raise ValueError("an untyped NULL is not a number")
    return _as_decimal(argument.type)


def common_type(what: str, arguments: Sequence[Argument]) -> DataType | None:
    """Return a type that holds the values of all arguments, or None if all are untyped NULLs.

    Numbers are compatible with numbers, strings with strings, DATE with TIMESTAMP, and types of
    dates and times with constant strings. Raises ConfigError, which names the function `what`, if
    types are incompatible.
    """
    result: DataType | None = None
    for argument in _texts_last(arguments):
        if argument.type is None:
            continue
        own = argument.type.as_nullable()
        if is_text(own):
            own = TEXT if result is None or is_text(result) or not argument.is_constant else own
        merged = own if result is None else _together(result, own, argument)
        if merged is None:
            raise argument_types_error(what, arguments)
        result = merged
    return result


def _texts_last(arguments: Iterable[Argument]) -> list[Argument]:
    """Return the arguments with constant strings last: the other types determine their cast."""
    return sorted(
        arguments, key=lambda argument: argument.is_constant and isinstance(argument.constant, str)
    )


def _together(left: DataType, right: DataType, argument: Argument) -> DataType | None:
    if argument.is_constant and is_text(right) and left.root in _FROM_TEXT:
        return left
    roots = {left.root, right.root}
    if roots <= NUMBER_ROOTS and roots & FLOATING_ROOTS and "DECIMAL" in roots:
        return DOUBLE
    if roots == {"DATE", "TIMESTAMP"}:
        return left if left.root == "TIMESTAMP" else right
    merged = merge_types(left, right)
    same_kind = roots <= NUMBER_ROOTS or len(roots) == 1 or (is_text(left) and is_text(right))
    if merged is None and roots <= NUMBER_ROOTS:
        raise ConfigError(f"no type has all digits of {left} and {right}; add a CAST")
    return merged if same_kind or merged is None or not is_text(merged) else None
