"""Readers of number columns: integers, floats, decimals in all forms, and bit strings."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.columns import raw_cells, unavailable
from ingestd.cdc.columns.column_encoding import (
    BOOLEAN_ENCODING,
    decimal_form,
    float_form,
    integer_form,
    unscaled_form,
)
from ingestd.cdc.columns.column_reader import (
    Build,
    ColumnReader,
    Values,
    any_encoding,
    converting,
    from_present,
    plain,
    present,
    raw_reader,
)
from ingestd.cdc.columns.decimal_columns import (
    VariableScale,
    from_unscaled,
    unscaled_text,
    variable_scale_text,
    within_reach,
)
from ingestd.cdc.columns.json_inference import ENTRY, INTEGER_KINDS, NUMBER_KINDS, TEXT_KINDS, Kinds
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import DataType


def integer_reader(column: WireColumn, kinds: Kinds) -> ColumnReader:
    """Return the reader of TINYINT to BIGINT."""
    data_type = column.data_type
    arrow_type = to_arrow_type(data_type)
    if kinds <= INTEGER_KINDS | {"big"}:
        form = integer_form(arrow_type)
        return ColumnReader(int, plain(arrow_type), unavailable.find_nothing, form)
    return any_encoding(data_type)


def float_reader(column: WireColumn, kinds: Kinds) -> ColumnReader:
    """Return the reader of FLOAT and DOUBLE; NaN and infinities are text."""
    data_type = column.data_type
    arrow_type = to_arrow_type(data_type)
    if not kinds <= NUMBER_KINDS | TEXT_KINDS:
        return any_encoding(data_type)
    if data_type.root == "DOUBLE":
        build = converting(arrow_type, raw_cells.float_of)
    else:
        build = _build_singles(arrow_type)
    special = not kinds <= NUMBER_KINDS
    form = float_form(arrow_type, special=special)
    return ColumnReader(float | str if special else float, build, unavailable.find_nothing, form)


def _build_singles(arrow_type: pa.DataType) -> Build:
    build = converting(arrow_type, raw_cells.single_of)

    def checked(values: Values) -> Array:
        array = build(values)
        if pc.any(pc.is_inf(array)).as_py():
            return pa.array(
                [None if v is None else raw_cells.single_of(v) for v in present(values)], arrow_type
            )
        return array

    return checked


def _is_base64(scale: int, kinds: Kinds) -> bool:
    """Return whether the strings of a decimal column are base64 unscaled integers.

    Strings that could be both (only digits, length a multiple of four) are numbers unless another
    value of the column is clearly base64, or the scale requires a decimal point.
    """
    return "text" in kinds or ("digits" in kinds and "numeral" not in kinds and scale > 0)


def decimal_reader(column: WireColumn, kinds: Kinds) -> ColumnReader:
    """Return the reader of DECIMAL; unscaled integers have the scale of the type."""
    return _decimal(column.data_type, column.data_type.scale or 0, kinds)


def _decimal(data_type: DataType, scale: int, kinds: Kinds) -> ColumnReader:
    arrow_type = to_arrow_type(data_type)
    base64 = _is_base64(scale, kinds)
    if base64 and kinds <= TEXT_KINDS:
        build = from_present(lambda values: from_unscaled(values, scale, arrow_type))
        form = unscaled_form(scale, arrow_type)
        return ColumnReader(bytes, build, unavailable.find_bytes, form)
    if not base64 and kinds <= NUMBER_KINDS | TEXT_KINDS:
        return decimal_numbers(data_type)
    return raw_reader(lambda raw: raw_cells.decimal_cell(raw, scale, base64=base64), arrow_type)


def decimal_numbers(data_type: DataType) -> ColumnReader:
    """Return the reader of DECIMAL from numbers, quoted or not."""
    arrow_type, scale = to_arrow_type(data_type), data_type.scale or 0

    def build(values: Values) -> Array:
        fit = [None if v is None else within_reach(v, scale) for v in present(values)]
        return pa.array(fit, arrow_type)

    return ColumnReader(Decimal, build, unavailable.find_nothing, decimal_form(data_type))


def unscaled_reader(column: WireColumn, kinds: Kinds) -> ColumnReader:
    """Return the reader of unscaled integers of one scale; text if too long for DECIMAL."""
    scale = column.scale
    if column.data_type.root == "DECIMAL":
        return _decimal(column.data_type, scale, kinds)
    if kinds <= TEXT_KINDS and _is_base64(scale, kinds):
        build = from_present(lambda values: pa.array(unscaled_text(values, scale), pa.string()))
        return ColumnReader(bytes, build, unavailable.find_bytes)
    return _number_text_reader(scale, base64=_is_base64(scale, kinds))


def _number_text_reader(scale: int, *, base64: bool) -> ColumnReader:
    return raw_reader(
        lambda raw: raw_cells.number_text_cell(raw, scale, base64=base64), pa.string()
    )


def variable_decimal_reader(column: WireColumn, kinds: Kinds) -> ColumnReader:
    """Return the reader of decimals with a scale of their own, as plain numbers."""
    if {kind for kind in kinds if not kind.startswith(ENTRY)} <= {"object"}:
        build = from_present(lambda values: pa.array(variable_scale_text(values), pa.string()))
        return ColumnReader(VariableScale, build, unavailable.find_nothing)
    return _number_text_reader(0, base64=False)


def bits_reader(column: WireColumn, kinds: Kinds) -> ColumnReader:
    """Return the reader of bit strings: one bit is a boolean, more are big-endian bytes."""
    if column.data_type.root == "BOOLEAN":
        if kinds <= {"bool"}:
            return ColumnReader(bool, plain(pa.bool_()), unavailable.find_nothing, BOOLEAN_ENCODING)
        build = from_present(
            lambda values: pa.array([None if v is None else any(v) for v in values], pa.bool_())
        )
    else:
        build = from_present(
            lambda values: pa.array(
                [None if v is None else _big_endian(v, column.width) for v in values], pa.binary()
            )
        )
    return ColumnReader(bytes, build, unavailable.find_bytes)


def _big_endian(little: bytes, width: int) -> bytes:
    return int.from_bytes(little, "little").to_bytes(width or len(little), "big")
