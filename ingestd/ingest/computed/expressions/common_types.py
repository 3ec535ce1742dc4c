"""The common type of several values, for the result of CASE and for comparisons."""

from collections.abc import Iterable, Sequence

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.function import (
    DOUBLE,
    FLOATING_ROOTS,
    NUMBER_ROOTS,
    TEXT,
    Argument,
    is_text,
    refuse_types,
)
from ingestd.ingest.values.type_merge import INTEGER_DIGITS, merge_types
from ingestd.paimon.spec.data_types import TIMESTAMP_ROOTS, DataType

MAX_DIGITS = 38
_FROM_TEXT = TIMESTAMP_ROOTS | {"DATE", "TIME"}


def as_decimal(data_type: DataType) -> DataType:
    """Return the DECIMAL type that holds all values of an exact number type."""
    if data_type.root == "DECIMAL":
        return data_type.as_nullable()
    return DataType("DECIMAL", precision=INTEGER_DIGITS[data_type.root], scale=0)


def exact_type(argument: Argument) -> DataType:
    """Return the DECIMAL type of an integer or DECIMAL argument.

    The type of a constant integer has only as many digits as the constant.
    """
    if argument.is_constant and isinstance(argument.constant, int):
        digits = max(1, len(str(abs(argument.constant))))
        return DataType("DECIMAL", precision=min(digits, MAX_DIGITS), scale=0)
    if argument.type is None:
        raise ValueError("an untyped NULL is not a number")
    return as_decimal(argument.type)


def common_type(what: str, arguments: Sequence[Argument]) -> DataType | None:
    """Return a type that holds the values of all arguments, or None if all are untyped NULLs.

    Numbers are compatible with numbers, strings with strings, and dates and times with each other
    and with constant strings. Raises ConfigError, which names the function `what`, if types are
    incompatible.
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
            raise refuse_types(what, arguments)
        result = merged
    return result


def _texts_last(arguments: Iterable[Argument]) -> list[Argument]:
    """Sort constant strings last, so that the type to which they are cast is known."""
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
