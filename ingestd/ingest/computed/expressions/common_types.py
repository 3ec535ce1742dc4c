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
    """Return the DECIMAL type of an exact number.

    A constant has only as many digits as it needs.
    """
    if argument.is_constant and isinstance(argument.constant, int):
        digits = max(1, len(str(abs(argument.constant))))
        return DataType("DECIMAL", precision=min(digits, MAX_DIGITS), scale=0)
    if argument.type is None:
        raise ValueError("an untyped NULL is not a number")
    return as_decimal(argument.type)


def common_type(what: str, arguments: Sequence[Argument]) -> DataType | None:
    """Return a type that holds the values of all arguments, or None if all are NULL.

    Numbers are compatible with numbers, strings with strings, and dates and times with each other
    and with constant strings. Raises ConfigError if types are incompatible.
    """
    found: DataType | None = None
    for one in _texts_last(arguments):
        if one.type is None:
            continue
        own = one.type.as_nullable()
        if is_text(own):
            own = TEXT if found is None or is_text(found) or not one.is_constant else own
        merged = own if found is None else _together(found, own, one)
        if merged is None:
            raise refuse_types(what, arguments)
        found = merged
    return found


def _texts_last(arguments: Iterable[Argument]) -> list[Argument]:
    """Sort constant strings last, so that the type to which they are cast is known."""
    return sorted(arguments, key=lambda one: one.is_constant and isinstance(one.constant, str))


def _together(one: DataType, other: DataType, argument: Argument) -> DataType | None:
    if argument.is_constant and is_text(other) and one.root in _FROM_TEXT:
        return one
    roots = {one.root, other.root}
    if roots <= NUMBER_ROOTS and roots & FLOATING_ROOTS and "DECIMAL" in roots:
        return DOUBLE
    if roots == {"DATE", "TIMESTAMP"}:
        return one if one.root == "TIMESTAMP" else other
    merged = merge_types(one, other)
    same_kind = roots <= NUMBER_ROOTS or len(roots) == 1 or (is_text(one) and is_text(other))
    if merged is None and roots <= NUMBER_ROOTS:
        raise ConfigError(f"no type has all digits of {one} and {other}; add a CAST")
    return merged if same_kind or merged is None or not is_text(merged) else None
