"""Choose the fastest reader of a column by its type and the kinds of its values.

A reader has the msgspec type of the JSON values, and converts them to Arrow. It raises if a cell
does not fit; the caller finds out which.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ingestd.cdc.columns import unavailable
from ingestd.cdc.columns.column_encoding import (
    BINARY_ENCODING,
    BOOLEAN_ENCODING,
    TEXT_ENCODING,
    iso_form,
    temporal_form,
)
from ingestd.cdc.columns.column_reader import (
    ColumnReader,
    Values,
    any_encoding,
    from_present,
    plain,
)
from ingestd.cdc.columns.json_inference import (
    ELEMENT,
    ENTRY,
    INTEGER_KINDS,
    TEXT_KINDS,
    Kinds,
    inner_kinds,
)
from ingestd.cdc.columns.number_readers import (
    bits_reader,
    decimal_reader,
    float_reader,
    integer_reader,
    unscaled_reader,
    variable_decimal_reader,
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


def choose_reader(column: WireColumn, kinds: Kinds) -> ColumnReader:
    """Return the fastest reader of a column whose values are of these kinds.

    Raises UnsupportedError if JSON values cannot be read as the column's type.
    """
    refuse_unreadable(column.name, column.data_type)
    choose = _BY_MEANING.get(column.meaning) or _BY_ROOT.get(column.data_type.root)
    return choose(column, kinds) if choose else any_encoding(column.data_type)


def refuse_unreadable(column: str, data_type: DataType) -> None:
    """Raise UnsupportedError for a type that cannot be read from JSON values."""
    if data_type.root in _UNREADABLE:
        raise UnsupportedError(
            f"column {column}: JSON values are not read as data type {data_type}; declare another "
            "type for the column"
        )


def _text(column: WireColumn, kinds: Kinds) -> ColumnReader:
    if kinds <= TEXT_KINDS:
        return ColumnReader(str, plain(pa.string()), unavailable.find_text, TEXT_ENCODING)
    return any_encoding(column.data_type)


def _binary(column: WireColumn, kinds: Kinds) -> ColumnReader:
    if kinds <= TEXT_KINDS:
        return ColumnReader(bytes, plain(pa.binary()), unavailable.find_bytes, BINARY_ENCODING)
    return any_encoding(column.data_type)


def _boolean(column: WireColumn, kinds: Kinds) -> ColumnReader:
    if kinds <= {"bool"}:
        return ColumnReader(bool, plain(pa.bool_()), unavailable.find_nothing, BOOLEAN_ENCODING)
    return any_encoding(column.data_type)


def _any_json(column: WireColumn, kinds: Kinds) -> ColumnReader:
    return any_encoding(column.data_type)


def _temporal(column: WireColumn, kinds: Kinds) -> ColumnReader:
    data_type = column.data_type
    if kinds <= INTEGER_KINDS:
        build = from_present(lambda values: read_integers(values, data_type))
        return ColumnReader(int, build, unavailable.find_nothing, temporal_form(data_type))
    if kinds <= TEXT_KINDS:
        build = from_present(lambda values: read_texts(values, data_type))
        return ColumnReader(str, build, unavailable.find_nothing, iso_form(data_type))
    return any_encoding(data_type)


def _element_reader(column: WireColumn, inner: DataType, kinds: Kinds) -> ColumnReader:
    element = column.element or WireColumn("element", inner)
    reader = choose_reader(element, kinds)
    if reader.wire is msgspec.Raw:
        return reader
    return ColumnReader(reader.wire | None, reader.build, reader.find_unavailable)


def _array(column: WireColumn, kinds: Kinds) -> ColumnReader:
    inner = column.data_type.element
    outer = {kind for kind in kinds if not kind.startswith(ELEMENT)}
    if inner is None or not outer <= {"array"}:
        return any_encoding(column.data_type)
    element = _element_reader(column, inner, inner_kinds(ELEMENT, kinds))
    if element.wire is msgspec.Raw:
        return any_encoding(column.data_type)
    arrow_type: Any = to_arrow_type(column.data_type)

    def build(values: list[Any]) -> Array:
        offsets, mask = _layout(values)
        items = element.build([item for value in values if value is not None for item in value])
        array: Array = pa.ListArray.from_arrays(offsets, items, type=arrow_type, mask=mask)
        return array

    wire = list.__class_getitem__(element.wire)
    return ColumnReader(wire, from_present(build), unavailable.find_array)


def _map(column: WireColumn, kinds: Kinds) -> ColumnReader:
    inner, key = column.data_type.value, column.data_type.key
    outer = {kind for kind in kinds if not kind.startswith(ENTRY)}
    if inner is None or key is None or key.root not in CHARACTER_ROOTS or not outer <= {"object"}:
        return any_encoding(column.data_type)
    element = _element_reader(column, inner, inner_kinds(ENTRY, kinds))
    if element.wire is msgspec.Raw:
        return any_encoding(column.data_type)
    arrow_type: Any = to_arrow_type(column.data_type)

    def build(values: list[Any]) -> Array:
        offsets, mask = _layout(values)
        entries = [entry for value in values if value is not None for entry in value.items()]
        keys = pa.array([name for name, _ in entries], pa.string())
        items = element.build([item for _, item in entries])
        array: Array = pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type, mask=mask)
        return array

    wire = dict.__class_getitem__((str, element.wire))
    return ColumnReader(wire, from_present(build), unavailable.find_entry)


def _layout(values: Values) -> tuple[Any, Any]:
    """Return the offsets and the null mask of lists or maps."""
    lengths = [0 if value is None else len(value) for value in values]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets), pa.array([value is None for value in values], pa.bool_())


_UNREADABLE = frozenset({"VARIANT", "MULTISET"})
_Choose = Callable[[WireColumn, Kinds], ColumnReader]
_BY_MEANING: Mapping[Meaning, _Choose] = {
    Meaning.UNSCALED: unscaled_reader,
    Meaning.VARIABLE_DECIMAL: variable_decimal_reader,
    Meaning.BITS: bits_reader,
    Meaning.JSON: _any_json,
    **dict.fromkeys(SOURCE_MEANINGS, source_text_reader),
}
_BY_ROOT: Mapping[str, _Choose] = {
    **dict.fromkeys(CHARACTER_ROOTS, _text),
    **dict.fromkeys(BINARY_ROOTS, _binary),
    **dict.fromkeys(INTEGER_ROOTS, integer_reader),
    **dict.fromkeys(TIMESTAMP_ROOTS | {"DATE", "TIME"}, _temporal),
    **dict.fromkeys(("FLOAT", "DOUBLE"), float_reader),
    "BOOLEAN": _boolean,
    "DECIMAL": decimal_reader,
    "ARRAY": _array,
    "MAP": _map,
}
