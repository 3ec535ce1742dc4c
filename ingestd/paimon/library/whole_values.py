"""Find values of which Arrow would silently lose a part when it converts them to a type.

For example, Arrow converts 1.5 to 1 for an integer column, and leaves out unknown fields of a row.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, time
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

FindLoss: TypeAlias = Callable[[Any], str | None]
"""Returns the part that would be lost of a value that Arrow can convert; None if nothing."""

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def loss_of(kind: pa.DataType) -> FindLoss | None:
    """Return a function that describes what a Python value loses in the Arrow type `kind`.

    The function returns None for a value that loses nothing. Returns None in place of a function
    for a type in which no value loses a part. The time of a value given for a date is not regarded
    as lost.
    """
    nested: Any = kind
    if pa.types.is_struct(kind):
        return _loss_of_struct({field.name: loss_of(field.type) for field in nested})
    if pa.types.is_map(kind):
        return _loss_of_map(loss_of(nested.key_type), loss_of(nested.item_type))
    if pa.types.is_list(kind):
        element = loss_of(nested.value_type)
        return None if element is None else lambda values: first_loss(element, _parts(values))
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        unit = _NANOSECONDS[nested.unit]
        return lambda value: _digits(value, unit) or _fraction(value)
    is_whole = pa.types.is_integer(kind) or pa.types.is_date(kind)
    return _fraction if is_whole else None


def first_loss(find: FindLoss | None, values: Iterable[Any]) -> str | None:
    """Return the description of the first loss among values; None if nothing is lost.

    `find` is a result of `loss_of` (None: no value loses a part).
    """
    if find is None:
        return None
    return next((loss for loss in map(find, values) if loss is not None), None)


def unknown_fields(given: pa.DataType, kind: pa.DataType) -> list[str]:
    """Return the names of the struct fields in the type `given` that the type `kind` lacks.

    Nested structs are compared as well, also in lists and maps; a name may be returned twice.
    """
    have, want = _children(given), _children(kind)
    if pa.types.is_struct(given) and pa.types.is_struct(kind):
        unknown = [name for name in have if name not in want]
    else:
        unknown = []
    for name in have.keys() & want.keys():
        unknown += unknown_fields(have[name], want[name])
    return unknown


def _children(kind: pa.DataType) -> dict[str, pa.DataType]:
    """Return the types in a nested type by field name; those of lists and maps by their role."""
    nested: Any = kind
    if pa.types.is_struct(kind):
        return {field.name: field.type for field in nested}
    if pa.types.is_map(kind):
        return {"key": nested.key_type, "value": nested.item_type}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {"element": nested.value_type}
    return {}


def _loss_of_struct(fields: Mapping[str, FindLoss | None]) -> FindLoss:
    """Return the function of a struct, given those of its fields by name."""

    def find(value: Any) -> str | None:  # noqa: ANN401  (a mapping, pairs, a tuple, or None)
        is_positional = isinstance(value, tuple)
        items = dict(zip(fields, value, strict=True) if is_positional else _parts(value))
        unknown = [str(name) for name in items if name not in fields]
        if unknown:
            return f"the field {', '.join(unknown)}"
        losses = (first_loss(fields[name], [item]) for name, item in items.items())
        return next((loss for loss in losses if loss is not None), None)

    return find


def _loss_of_map(key: FindLoss | None, item: FindLoss | None) -> FindLoss | None:
    """Return the function of a map, given those of its keys and of its values; None if both are."""
    if key is None and item is None:
        return None

    def find(value: Any) -> str | None:  # noqa: ANN401  (a mapping, pairs, or None)
        pairs = list(value.items() if isinstance(value, Mapping) else _parts(value))
        return first_loss(key, [pair[0] for pair in pairs]) or first_loss(
            item, [pair[1] for pair in pairs]
        )

    return find


def _parts(value: Any) -> Any:  # noqa: ANN401  (a collection)
    """Return a collection, or an empty one for None and other kinds of null."""
    return value if isinstance(value, Iterable) else ()


def _fraction(value: object) -> str | None:
    if isinstance(value, Decimal):
        cut = value.is_finite() and value != value.to_integral_value()
    else:
        cut = isinstance(value, float | np.floating) and value % 1 != 0
    return "the fraction" if cut else None


def _digits(value: object, unit: int) -> str | None:
    """Return the loss of a time in units of `unit` nanoseconds; None for other values."""
    if not isinstance(value, datetime | time):
        return None
    nanoseconds = value.microsecond * 1000 + getattr(value, "nanosecond", 0)
    return "digits of the second" if nanoseconds % unit else None
