"""Cast values to another type, and report which values the type cannot hold."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.columns.temporal_columns import read_texts
from ingestd.cdc.columns.wire_column import texts_of
from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.evolution import cast_array
from ingestd.paimon.spec.arrow import (
    Values,
    cast_exactly,
    has_hexadecimals,
    new_infinities,
    to_arrow_type,
)
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    NESTED_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)
from ingestd.paimon.spec.row_selection import Mask

_DIGITS = {"ms": 3, "us": 6, "ns": 9}


def cast_values(column: Values, source: DataType, target: DataType) -> tuple[Values, Mask]:
    """Cast a chunked array; return the values, and a mask (n,) of the values that do not fit.

    Values that do not fit are null in the result. Times are rounded down to the precision of the
    target.
    """
    arrow_type = to_arrow_type(target)
    if column.type == arrow_type and not _may_not_fit(source, target):
        return _rounded_down(column, target), np.zeros(len(column), np.bool_)
    casts = [_cast_chunk(chunk, source, target, arrow_type) for chunk in column.chunks]
    marks = [mark for _, mark in casts]
    failed = np.concatenate(marks) if marks else np.zeros(0, np.bool_)
    return _rounded_down(_chunked([values for values, _ in casts], arrow_type), target), failed


def unsized(batch: ChangeBatch, declared: Mapping[str, DataType]) -> ChangeBatch:
    """Return the batch with STRING or BYTES for columns that are declared with a length.

    Only the types in the batch change, also those of the parts of nested values, and only of
    columns whose values are strings or bytes already: values in messages can be longer than the
    declared length.
    """
    plain = {n: _unsized(batch.types[n]) for n in declared if n in batch.types}
    same = {n: t for n, t in plain.items() if batch.columns.column(n).type == to_arrow_type(t)}
    return replace(batch, types={**batch.types, **same}) if same else batch


def _unsized(t: DataType) -> DataType:
    """Return the type with STRING and BYTES in place of the types with a length in it."""
    if t.root in CHARACTER_ROOTS | BINARY_ROOTS:
        return replace(t, root="STRING" if t.root in CHARACTER_ROOTS else "BYTES", length=None)
    if t.root not in NESTED_ROOTS:
        return t
    return replace(
        t,
        element=t.element and _unsized(t.element),
        key=t.key and _unsized(t.key),
        value=t.value and _unsized(t.value),
        fields=tuple(replace(field, type=_unsized(field.type)) for field in t.fields),
    )


def coalesced(columns: Iterable[tuple[Values, DataType]], target: DataType) -> Values:
    """Return, for each row, the first value that is not null in the columns, cast to `target`.

    Each column is a pair of values and their type. The type `target` must hold the values of all
    columns.
    """
    arrow_type: Values = to_arrow_type(target)
    return pc.coalesce(
        *(
            values if values.type == arrow_type else cast_values(values, data_type, target)[0]
            for values, data_type in columns
        )
    )


def _rounded_down(column: Values, t: DataType) -> Values:
    """Return a column in which times have no digits beyond the precision of their type."""
    if not _is_cut(t):
        return column
    return _chunked([_floor(chunk, t) for chunk in column.chunks], column.type)


def _is_cut(t: DataType) -> bool:
    """Return whether Arrow's type for this type of times has more digits than its precision."""
    return t.root in TIMESTAMP_ROOTS | {"TIME"} and (t.precision or 0) not in _DIGITS.values()


def _floor(times: Values, t: DataType) -> Values:
    """Return an array of a type for which `_is_cut` is true, rounded down to its precision."""
    digits = 3 if t.root == "TIME" else _DIGITS[times.type.unit]
    step = 10 ** max(digits - (t.precision or 0), 0)
    whole = pa.int32() if t.root == "TIME" else pa.int64()
    numbers = times.cast(whole).fill_null(0).to_numpy()
    if not (numbers % step).any():
        return times
    mask = times.is_null().to_numpy(zero_copy_only=False)
    return pa.array(numbers - numbers % step, whole, mask=mask).cast(times.type)


def _chunked(chunks: list[Values], arrow_type: Values) -> Values:
    return pa.chunked_array(chunks, arrow_type)


def _nulls(count: int, arrow_type: Values) -> Values:
    return pa.nulls(count, arrow_type)


def _may_not_fit(source: DataType, target: DataType) -> bool:
    """Return whether values of the same Arrow type, or parts of them, may not fit the target."""
    if target.length is not None and source.length != target.length:
        return True
    pairs = zip(_parts(source), _parts(target), strict=False)
    return any(_is_cut(part) or _may_not_fit(own, part) for own, part in pairs)


def _parts(t: DataType) -> list[DataType]:
    inner = [part for part in (t.element, t.key, t.value) if part is not None]
    return inner + [field.type for field in t.fields]


def _cast_chunk(
    chunk: Values, source: DataType, target: DataType, arrow_type: pa.DataType
) -> tuple[Values, Mask]:
    try:
        return _cast(chunk, source, target, arrow_type), np.zeros(len(chunk), np.bool_)
    except (ValueError, ArithmeticError, pa.ArrowNotImplementedError, UnsupportedError):
        if len(chunk) == 1:
            return _nulls(1, arrow_type), np.ones(1, np.bool_)
    # Bisection finds a few bad values among many good ones in few casts.
    half = len(chunk) // 2
    left, left_failed = _cast_chunk(chunk.slice(0, half), source, target, arrow_type)
    right, right_failed = _cast_chunk(chunk.slice(half), source, target, arrow_type)
    return pa.concat_arrays([left, right]), np.concatenate([left_failed, right_failed])


def _cast(chunk: Values, source: DataType, target: DataType, arrow_type: pa.DataType) -> Values:
    if chunk.null_count == len(chunk):
        return _nulls(len(chunk), arrow_type)
    if target.root in NESTED_ROOTS:
        return _cast_nested(chunk, source, target)
    if target.root in CHARACTER_ROOTS:
        texts: Values = _texts(chunk, source)
        if target.length is not None and _longest(texts) > target.length:
            raise pa.ArrowInvalid(f"longer than {target.length} characters")
        return texts
    if target.length is not None and _longest(chunk) > target.length:
        raise pa.ArrowInvalid(f"longer than {target.length} bytes")
    if target.root in ("FLOAT", "DOUBLE"):
        return _floats(chunk, arrow_type)
    if source.root in CHARACTER_ROOTS:
        return _from_texts(chunk, target, arrow_type)
    return cast_exactly(chunk, arrow_type)


def _from_texts(texts: Values, target: DataType, arrow_type: pa.DataType) -> Values:
    if target.root in TIMESTAMP_ROOTS | {"DATE", "TIME"}:
        return read_texts(texts.to_pylist(), target)
    if target.root in INTEGER_ROOTS and has_hexadecimals(texts):
        raise pa.ArrowInvalid("not an integer")
    return cast_exactly(texts, arrow_type)


def _texts(chunk: Values, source: DataType) -> Values:
    """Return the text of values: that of columns of messages that are declared as STRING."""
    if source.root in NESTED_ROOTS:
        return cast_array(chunk, source, DataType("STRING"))
    return texts_of(chunk, source)


def _floats(chunk: Values, arrow_type: pa.DataType) -> Values:
    if pa.types.is_decimal(chunk.type):
        return cast_exactly(chunk, arrow_type)
    floats: Values = pc.cast(chunk, arrow_type, safe=False)
    if new_infinities(chunk, floats):
        raise pa.ArrowInvalid(f"out of range of {arrow_type}")
    return floats


def _cast_nested(values: Values, source: DataType, target: DataType) -> Values:
    """Cast nested values, of which each part is cast like a column with its type.

    Fields of rows are matched by name; other fields of the source are left out. Raises ArrowInvalid
    if a part does not fit, or is null and NOT NULL in the target.
    """
    arrow_type: Values = to_arrow_type(target)
    arrow: Values = pa
    mask = values.is_null() if values.null_count else None
    if source.root != target.root or values.type != to_arrow_type(source):
        return values.cast(arrow_type)
    if target.root == "ROW" and target.fields:
        children = _cast_fields(values, source, target)
        return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=mask)
    rows = values.take(pa.array(np.arange(len(values))))  # an array that starts at 0
    if target.root == "ARRAY" and source.element and target.element:
        elements = _cast_part(rows.values, source.element, target.element)
        return arrow.ListArray.from_arrays(rows.offsets, elements, arrow_type, mask=mask)
    if target.root == "MAP" and source.key and target.key and source.value and target.value:
        keys = _cast_part(rows.keys, source.key, target.key)
        items = _cast_part(rows.items, source.value, target.value)
        return arrow.MapArray.from_arrays(rows.offsets, keys, items, arrow_type, mask=mask)
    return values.cast(arrow_type)


def _cast_fields(rows: Values, source: DataType, target: DataType) -> list[Values]:
    parts = {
        field.name: (part, field.type)
        for field, part in zip(source.fields, rows.flatten(), strict=True)
    }
    return [
        _cast_part(*parts[field.name], field.type, rows.null_count)
        if field.name in parts
        else _nulls(len(rows), to_arrow_type(field.type))
        for field in target.fields
    ]


def _cast_part(values: Values, source: DataType, target: DataType, nulls: int = 0) -> Values:
    """Cast a part of nested values, which has `nulls` nulls because of the values around it."""
    if not target.nullable and values.null_count > nulls:
        raise pa.ArrowInvalid(f"a null in {target}")
    arrow_type: Values = to_arrow_type(target)
    if values.type != arrow_type or _may_not_fit(source, target):
        values = _cast(values, source, target, arrow_type)
    return _floor(values, target) if _is_cut(target) else values


def _longest(values: Values) -> int:
    """Return the length of the longest string in characters, or of the longest binary in bytes."""
    is_text = pa.types.is_string(values.type)
    lengths: Values = pc.utf8_length(values) if is_text else pc.binary_length(values)
    return int(pc.max(lengths).as_py() or 0)
