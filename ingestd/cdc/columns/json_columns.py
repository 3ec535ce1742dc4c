"""Choose the fastest reader for a column, given its type and the kinds of its values.

A reader has the msgspec type of the JSON values, and converts them to Arrow. It raises an error if
a value does not fit; the caller then searches for the invalid value.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.columns import raw_cells, unavailable
from ingestd.cdc.columns.column_reader import (
    BINARY_ENCODING,
    BOOLEAN_ENCODING,
    TEXT_ENCODING,
    Build,
    ColumnReader,
    Values,
    any_reader,
    arrow_accepted,
    converting,
    decimal_numbers,
    float_encoding,
    from_present,
    integer_encoding,
    iso_encoding,
    present,
    raw_reader,
    temporal_encoding,
    unscaled_encoding,
)
from ingestd.cdc.columns.decimal_columns import (
    VariableScale,
    from_unscaled,
    unscaled_text,
    variable_scale_text,
)
from ingestd.cdc.columns.json_inference import (
    ELEMENT,
    ENTRY,
    INTEGER_KINDS,
    NUMBER_KINDS,
    TEXT_KINDS,
    JsonKinds,
    inner_kinds,
)
from ingestd.cdc.columns.source_text import SOURCE_MEANINGS, source_text_reader
from ingestd.cdc.columns.temporal_columns import read_integers, read_texts
from ingestd.cdc.columns.wire_column import Meaning, WireColumn
from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)


def choose_reader(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    """Return the fastest reader for a column whose values are of these kinds.

    Raises UnsupportedError if JSON values cannot be read as the type of the column.
    """
    refuse_unreadable(column.name, column.data_type)
    choose = _BY_MEANING.get(column.meaning) or _BY_ROOT.get(column.data_type.root)
    return choose(column, kinds) if choose else any_reader(column.data_type)


def refuse_unreadable(column: str, data_type: DataType) -> None:
    """Raise UnsupportedError, naming the column, if JSON values cannot be read as this type."""
    if data_type.root in _UNREADABLE:
        raise UnsupportedError(
            f"column {column}: JSON values cannot be read as data type {data_type}; declare "
            "another type for the column"
        )


def _text(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    if kinds <= TEXT_KINDS:
        return ColumnReader(str, arrow_accepted(pa.string()), unavailable.find_text, TEXT_ENCODING)
    return any_reader(column.data_type)


def _binary(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    if kinds <= TEXT_KINDS:
        return ColumnReader(
            bytes, arrow_accepted(pa.binary()), unavailable.find_bytes, BINARY_ENCODING
        )
    return any_reader(column.data_type)


def _boolean(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    if kinds <= {"bool"}:
        return ColumnReader(
            bool, arrow_accepted(pa.bool_()), unavailable.find_nothing, BOOLEAN_ENCODING
        )
    return any_reader(column.data_type)


def _any_json(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    return any_reader(column.data_type)


def _temporal(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    data_type = column.data_type
    if kinds <= INTEGER_KINDS:
        build = from_present(lambda values: read_integers(values, data_type))
        return ColumnReader(int, build, unavailable.find_nothing, temporal_encoding(data_type))
    if kinds <= TEXT_KINDS:
        build = from_present(lambda values: read_texts(values, data_type))
        return ColumnReader(str, build, unavailable.find_nothing, iso_encoding(data_type))
    return any_reader(data_type)


def _element_reader(column: WireColumn, inner: DataType, kinds: JsonKinds) -> ColumnReader:
    element = column.element or WireColumn("element", inner)
    reader = choose_reader(element, kinds)
    if reader.wire is msgspec.Raw:
        return reader
    return ColumnReader(reader.wire | None, reader.build, reader.find_unavailable)


def _array(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    inner = column.data_type.element
    if inner is None:
        return any_reader(column.data_type)
    element = _element_reader(column, inner, inner_kinds(ELEMENT, kinds))
    is_uniform = _is_uniform("array", ELEMENT, kinds, element)
    if not is_uniform and not _has_meaning(column):
        return any_reader(column.data_type)
    arrow_type: Any = to_arrow_type(column.data_type)

    def build(values: Values) -> Array:
        offsets, mask = _layout(values)
        items = element.build([item for value in values if value is not None for item in value])
        array: Array = pa.ListArray.from_arrays(offsets, items, type=arrow_type, mask=mask)
        return array

    wire = list.__class_getitem__(element.wire)
    if not is_uniform:
        return _one_by_one(wire, build)
    return ColumnReader(wire, from_present(build), unavailable.find_array)


def _map(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    inner, key = column.data_type.value, column.data_type.key
    if inner is None or key is None or key.root not in CHARACTER_ROOTS:
        return any_reader(column.data_type)
    element = _element_reader(column, inner, inner_kinds(ENTRY, kinds))
    is_uniform = _is_uniform("object", ENTRY, kinds, element)
    if not is_uniform and not _has_meaning(column):
        return any_reader(column.data_type)
    arrow_type: Any = to_arrow_type(column.data_type)

    def build(values: Values) -> Array:
        offsets, mask = _layout(values)
        entries = [entry for value in values if value is not None for entry in value.items()]
        keys = pa.array([name for name, _ in entries], pa.string())
        items = element.build([item for _, item in entries])
        array: Array = pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type, mask=mask)
        return array

    wire = dict.__class_getitem__((str, element.wire))
    if not is_uniform:
        return _one_by_one(wire, build)
    return ColumnReader(wire, from_present(build), unavailable.find_entry)


def _is_uniform(outer: str, prefix: str, kinds: JsonKinds, element: ColumnReader) -> bool:
    """Return whether all values are of the kind `outer`, and `element` decodes what is in them."""
    outers = {kind for kind in kinds if not kind.startswith(prefix)}
    return outers <= {outer} and element.wire is not msgspec.Raw


def _has_meaning(column: WireColumn) -> bool:
    """Return whether the type of the elements does not determine how these are read."""
    return column.element is not None and column.element.meaning is not Meaning.PLAIN


def _one_by_one(wire: Any, build: Build) -> ColumnReader:  # noqa: ANN401  (a msgspec type)
    """Return a reader that decodes values separately, so that only an invalid one fails.

    `wire` is the msgspec type of a valid value, and `build` builds the array from such values.
    """
    decode = msgspec.json.Decoder(wire | None).decode

    def build_any(values: Values) -> Array:
        return build([None if value is None else decode(value) for value in values])

    return ColumnReader(msgspec.Raw, from_present(build_any), unavailable.find_raw)


def _layout(values: Values) -> tuple[Any, Any]:
    """Return the offsets and the null mask of an array of lists or maps."""
    lengths = [0 if value is None else len(value) for value in values]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets), pa.array([value is None for value in values], pa.bool_())


def _integer(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    """Return the reader of an integer column: TINYINT, SMALLINT, INT or BIGINT."""
    data_type = column.data_type
    arrow_type = to_arrow_type(data_type)
    if kinds <= INTEGER_KINDS | {"big"}:
        encoding = integer_encoding(arrow_type)
        return ColumnReader(int, arrow_accepted(arrow_type), unavailable.find_nothing, encoding)
    return any_reader(data_type)


def _float(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    """Return the reader of a FLOAT or DOUBLE column; NaN and infinities are JSON strings."""
    data_type = column.data_type
    arrow_type = to_arrow_type(data_type)
    if not kinds <= NUMBER_KINDS | TEXT_KINDS:
        return any_reader(data_type)
    if data_type.root == "DOUBLE":
        build = converting(arrow_type, raw_cells.float_of)
    else:
        build = _build_singles(arrow_type)
    special = not kinds <= NUMBER_KINDS
    encoding = float_encoding(arrow_type, special=special)
    return ColumnReader(
        float | str if special else float, build, unavailable.find_nothing, encoding
    )


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


def _decimal_of_type(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    """Return the reader of a DECIMAL column without a schema.

    Its strings are quoted numbers, or base64 of unscaled integers with the scale of the type.
    """
    scale = column.data_type.scale or 0
    return _decimal(column.data_type, scale, kinds, base64="base64" in kinds)


def _decimal(data_type: DataType, scale: int, kinds: JsonKinds, *, base64: bool) -> ColumnReader:
    arrow_type = to_arrow_type(data_type)
    if base64 and kinds <= TEXT_KINDS:
        build = from_present(lambda values: from_unscaled(values, scale, arrow_type))
        encoding = unscaled_encoding(scale, arrow_type)
        return ColumnReader(bytes, build, unavailable.find_bytes, encoding)
    if not base64 and kinds <= NUMBER_KINDS | TEXT_KINDS:
        return decimal_numbers(data_type)
    find = unavailable.find_raw_bytes if base64 else unavailable.find_nothing
    return raw_reader(
        lambda raw: raw_cells.decimal_cell(raw, scale, base64=base64), arrow_type, find
    )


def _unscaled(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    """Return the reader for decimals that are sent as unscaled integers.

    If the column has too many digits for DECIMAL, its type is STRING, and the values become
    strings.
    """
    scale = column.scale
    if column.data_type.root == "DECIMAL":
        return _decimal(column.data_type, scale, kinds, base64=True)
    if kinds <= TEXT_KINDS:
        build = from_present(lambda values: pa.array(unscaled_text(values, scale), pa.string()))
        return ColumnReader(bytes, build, unavailable.find_bytes)
    return _number_text_reader(scale, base64=True)


def _number_text_reader(scale: int, *, base64: bool) -> ColumnReader:
    find = unavailable.find_raw_bytes if base64 else unavailable.find_nothing
    return raw_reader(
        lambda raw: raw_cells.number_text_cell(raw, scale, base64=base64), pa.string(), find
    )


def _variable_decimal(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    """Return the reader for decimals that contain their scale, which become strings."""
    if {kind for kind in kinds if not kind.startswith(ENTRY)} <= {"object"}:
        build = from_present(lambda values: pa.array(variable_scale_text(values), pa.string()))
        return ColumnReader(VariableScale, build, unavailable.find_nothing)
    return _number_text_reader(0, base64=False)


def _bits(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    """Return the reader for bit strings.

    A single bit becomes a boolean; longer bit strings become big-endian bytes.
    """
    if column.data_type.root == "BOOLEAN":
        if kinds <= {"bool"}:
            return ColumnReader(
                bool, arrow_accepted(pa.bool_()), unavailable.find_nothing, BOOLEAN_ENCODING
            )
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


_UNREADABLE = frozenset({"VARIANT", "MULTISET"})
_Choose = Callable[[WireColumn, JsonKinds], ColumnReader]
_BY_MEANING: Mapping[Meaning, _Choose] = {
    Meaning.UNSCALED: _unscaled,
    Meaning.VARIABLE_DECIMAL: _variable_decimal,
    Meaning.BITS: _bits,
    Meaning.JSON: _any_json,
    **dict.fromkeys(SOURCE_MEANINGS, source_text_reader),
}
_BY_ROOT: Mapping[str, _Choose] = {
    **dict.fromkeys(CHARACTER_ROOTS, _text),
    **dict.fromkeys(BINARY_ROOTS, _binary),
    **dict.fromkeys(INTEGER_ROOTS, _integer),
    **dict.fromkeys(TIMESTAMP_ROOTS | {"DATE", "TIME"}, _temporal),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _float),
    "BOOLEAN": _boolean,
    "DECIMAL": _decimal_of_type,
    "ARRAY": _array,
    "MAP": _map,
}
