"""The narrowest type that holds the values of two types, to which schema evolution widens.

Files are not rewritten, so the result is limited to types to which both types can be cast on read.
"""

from collections.abc import Mapping
from dataclasses import replace

from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    NESTED_ROOTS,
    DataField,
    DataType,
)

INTEGER_DIGITS: Mapping[str, int] = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
"""Decimal digits of the integer types."""
_FLOATING = frozenset({"FLOAT", "DOUBLE"})
_EXACT_IN_FLOAT = frozenset({"TINYINT", "SMALLINT"})
_WITH_TEXT = CHARACTER_ROOTS | INTEGER_ROOTS | {"BOOLEAN", "DECIMAL", "DATE"}
"""Types whose values have exactly one text form, so that files with them can be read as STRING."""
_WITH_PRECISION = frozenset({"TIME", "TIMESTAMP", "TIMESTAMP_LTZ"})
_MAX_PRECISION = 38


def merge_types(one: DataType, other: DataType, *, fresh: bool = False) -> DataType | None:
    """Return the nullable type that holds the values of two types, or None if no type does.

    INT and BIGINT give BIGINT, DECIMAL(10, 2) and DECIMAL(8, 4) give DECIMAL(12, 4), VARCHAR(5) and
    VARCHAR(9) give VARCHAR(9). BIGINT and DOUBLE give DOUBLE; integers beyond 2^53 lose digits, as
    in a database whose column is changed in this way. Other different types with a plain text form
    (BOOLEAN, integers, DECIMAL, DATE, character types) give STRING. If `fresh`, the column has no
    files yet, and all different types that are neither nested nor binary give STRING.
    """
    one, other = one.as_nullable(), other.as_nullable()
    if one == other:
        return one
    if one.root in NESTED_ROOTS or other.root in NESTED_ROOTS:
        return _merge_nested(one, other)
    merged = _merge_same_family(one, other) or _merge_numbers(one, other)
    if merged is not None:
        return merged
    roots = {one.root, other.root}
    is_text = not roots & BINARY_ROOTS if fresh else roots <= _WITH_TEXT
    return DataType("STRING") if is_text else None


def _merge_same_family(one: DataType, other: DataType) -> DataType | None:
    roots = {one.root, other.root}
    if roots <= CHARACTER_ROOTS:
        return _longer(one, other, "VARCHAR", "STRING")
    if roots <= BINARY_ROOTS:
        return _longer(one, other, "VARBINARY", "BYTES")
    if roots <= INTEGER_ROOTS:
        return max(one, other, key=lambda t: INTEGER_DIGITS[t.root])
    if roots <= _FLOATING:
        return DataType("DOUBLE")
    if len(roots) == 1 and one.root in _WITH_PRECISION:
        return replace(one, precision=max(one.precision or 0, other.precision or 0))
    return None


def _longer(one: DataType, other: DataType, sized: str, unbounded: str) -> DataType:
    if unbounded in {one.root, other.root}:
        return DataType(unbounded)
    return DataType(sized, length=max(one.length or 0, other.length or 0))


def _merge_numbers(one: DataType, other: DataType) -> DataType | None:
    """Merge DECIMAL with DECIMAL or integers, and floating types with integers."""
    for floating, number in ((one, other), (other, one)):
        if floating.root in _FLOATING and number.root in INTEGER_ROOTS:
            return floating if number.root in _EXACT_IN_FLOAT else DataType("DOUBLE")
    sizes = [size for size in map(_decimal_size, (one, other)) if size is not None]
    if len(sizes) < 2:
        return None
    whole = max(digits for digits, _ in sizes)
    scale = max(digits for _, digits in sizes)
    if whole + scale > _MAX_PRECISION:
        return None
    return DataType("DECIMAL", precision=whole + scale, scale=scale)


def _decimal_size(t: DataType) -> tuple[int, int] | None:
    """Return the digits before and after the decimal point."""
    if t.root == "DECIMAL":
        return (t.precision or 0) - (t.scale or 0), t.scale or 0
    digits = INTEGER_DIGITS.get(t.root)
    return None if digits is None else (digits, 0)


def _merge_nested(one: DataType, other: DataType) -> DataType | None:
    if one.root != other.root:
        return None
    if one.root == "ROW":
        return _merge_rows(one, other)
    if one.key != other.key or one.length != other.length:
        return None
    if one.element is not None and other.element is not None:
        element = _merge_inner(one.element, other.element)
        return None if element is None else replace(one, element=element)
    if one.value is not None and other.value is not None:
        value = _merge_inner(one.value, other.value)
        return None if value is None else replace(one, value=value)
    return None


def _merge_inner(one: DataType, other: DataType) -> DataType | None:
    merged = merge_types(one, other)
    if merged is None or one.nullable or other.nullable:
        return merged
    return merged.not_null()


def _merge_rows(one: DataType, other: DataType) -> DataType | None:
    """Merge the fields of two ROW types by name; append new fields of `other` with new ids."""
    fields = {field.name: field for field in one.fields}
    next_id = max((field.id for field in one.fields), default=-1) + 1
    for field in other.fields:
        known = fields.get(field.name)
        if known is None:
            fields[field.name] = DataField(next_id, field.name, field.type.as_nullable())
            next_id += 1
            continue
        merged = _merge_inner(known.type, field.type)
        if merged is None:
            return None
        fields[field.name] = replace(known, type=merged)
    return replace(one, fields=tuple(fields.values()))
