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


def merge_types(left: DataType, right: DataType, *, fresh: bool = False) -> DataType | None:
    """Return the nullable type that holds the values of two types, or None if no type does.

    INT and BIGINT give BIGINT, DECIMAL(10, 2) and DECIMAL(8, 4) give DECIMAL(12, 4), VARCHAR(5) and
    VARCHAR(9) give VARCHAR(9). BIGINT and DOUBLE give DOUBLE; integers beyond 2^53 lose digits, as
    in a database whose column is changed in this way. Other different types with a plain text form
    (BOOLEAN, integers, DECIMAL, DATE, character types) give STRING. If `fresh`, the column has no
    files yet, and all other different types that are neither nested nor binary give STRING.
    """
    left, right = left.as_nullable(), right.as_nullable()
    if left == right:
        return left
    if left.root in NESTED_ROOTS or right.root in NESTED_ROOTS:
        return _merge_nested(left, right)
    merged = _merge_same_family(left, right) or _merge_numbers(left, right)
    if merged is not None:
        return merged
    roots = {left.root, right.root}
    is_text = not roots & BINARY_ROOTS if fresh else roots <= _WITH_TEXT
    return DataType("STRING") if is_text else None


def _merge_same_family(left: DataType, right: DataType) -> DataType | None:
    roots = {left.root, right.root}
    if roots <= CHARACTER_ROOTS:
        return _longer(left, right, "VARCHAR", "STRING")
    if roots <= BINARY_ROOTS:
        return _longer(left, right, "VARBINARY", "BYTES")
    if roots <= INTEGER_ROOTS:
        return max(left, right, key=lambda t: INTEGER_DIGITS[t.root])
    if roots <= _FLOATING:
        return DataType("DOUBLE")
    if len(roots) == 1 and left.root in _WITH_PRECISION:
        return replace(left, precision=max(left.precision or 0, right.precision or 0))
    return None


def _longer(left: DataType, right: DataType, sized: str, unbounded: str) -> DataType:
    if unbounded in {left.root, right.root}:
        return DataType(unbounded)
    return DataType(sized, length=max(left.length or 0, right.length or 0))


def _merge_numbers(left: DataType, right: DataType) -> DataType | None:
    """Merge DECIMAL with DECIMAL or integers, and floating types with integers.

    Returns None for other types, and if a DECIMAL would have too many digits.
    """
    for floating, number in ((left, right), (right, left)):
        if floating.root in _FLOATING and number.root in INTEGER_ROOTS:
            return floating if number.root in _EXACT_IN_FLOAT else DataType("DOUBLE")
    sizes = [size for size in map(_decimal_size, (left, right)) if size is not None]
    if len(sizes) < 2:
        return None
    whole = max(digits for digits, _ in sizes)
    scale = max(digits for _, digits in sizes)
    if whole + scale > _MAX_PRECISION:
        return None
    return DataType("DECIMAL", precision=whole + scale, scale=scale)


def _decimal_size(t: DataType) -> tuple[int, int] | None:
    """Return the digits before and after the decimal point, or None for an inexact type."""
    if t.root == "DECIMAL":
        return (t.precision or 0) - (t.scale or 0), t.scale or 0
    digits = INTEGER_DIGITS.get(t.root)
    return None if digits is None else (digits, 0)


def _merge_nested(left: DataType, right: DataType) -> DataType | None:
    if left.root != right.root:
        return None
    if left.root == "ROW":
        return _merge_rows(left, right)
    if left.key != right.key or left.length != right.length:
        return None
    if left.element is not None and right.element is not None:
        element = _merge_inner(left.element, right.element)
        return None if element is None else replace(left, element=element)
    if left.value is not None and right.value is not None:
        value = _merge_inner(left.value, right.value)
        return None if value is None else replace(left, value=value)
    return None


def _merge_inner(left: DataType, right: DataType) -> DataType | None:
    merged = merge_types(left, right)
    if merged is None or left.nullable or right.nullable:
        return merged
    return merged.not_null()


def _merge_rows(left: DataType, right: DataType) -> DataType | None:
    """Merge two ROW types by field name; return None if the types of a field cannot be merged.

    New fields of `right` are appended with new ids.
    """
    fields = {field.name: field for field in left.fields}
    next_id = max((field.id for field in left.fields), default=-1) + 1
    for field in right.fields:
        known = fields.get(field.name)
        if known is None:
            fields[field.name] = DataField(next_id, field.name, field.type.as_nullable())
            next_id += 1
            continue
        merged = _merge_inner(known.type, field.type)
        if merged is None:
            return None
        fields[field.name] = replace(known, type=merged)
    return replace(left, fields=tuple(fields.values()))
