"""Convert the changes of one table in Avro to columns for `cdc.assembly`.

Arrays of Avro values become table columns, in which values that Debezium omitted are marked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.assembly import TableChanges, assemble_valid
from ingestd.cdc.avro.arrow_types import json_texts
from ingestd.cdc.avro.envelope import Changes, source_positions, source_snapshots
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.avro.record_columns import record_columns
from ingestd.cdc.base import ChangeBatch, ColumnTypes
from ingestd.cdc.change_images import Cells, Image, OverlaidImage, invalid_values
from ingestd.cdc.columns import unavailable
from ingestd.cdc.columns.arrow_calls import (
    byte_lengths,
    entries,
    equal,
    flattened,
    if_else,
    keep_rows,
    list_lengths,
    make_list,
    make_map,
    make_struct,
    marks_of,
    members,
    take,
    take_or_null,
    valid_marks,
)
from ingestd.cdc.columns.decimal_columns import from_unscaled, plain_number, unscaled_text
from ingestd.cdc.columns.json_columns import choose_reader
from ingestd.cdc.columns.json_inference import kinds_of
from ingestd.cdc.columns.temporal_columns import read_texts, time_of_day
from ingestd.cdc.columns.wire_column import Meaning, WireColumn, key_column, recast
from ingestd.cdc.operations import kinds_of_operations
from ingestd.cdc.record_errors import Reason, Reasons
from ingestd.paimon.spec.arrow import Array, list_offsets, to_arrow_type
from ingestd.paimon.spec.data_types import TIMESTAMP_ROOTS
from ingestd.paimon.spec.row_selection import Indices, Mask

_MOST_DIGITS = 100_000
"""Maximum absolute scale of a decimal whose value contains its scale."""
_LONGEST_UNSCALED = 16

_texts_left_out = pa.array(unavailable.TEXTS)


def _build_column(array: Array, column: WireColumn, node: AvroNode) -> Array:
    """Convert the values of an Avro node to the table type of a column.

    Raises one of `record_errors.BUILD_ERRORS` if a value does not fit the type.
    """
    return recast(_build(array, column, node.present), column)


def _find_left_out(array: Array) -> Mask | None:
    """Return a mask (n,) of placeholders for omitted values, or None if there are none."""
    if pa.types.is_string(array.type):
        return _marks(pc.is_in(array, _texts_left_out))
    if pa.types.is_binary(array.type):
        return _marks(equal(array, pa.scalar(unavailable.BYTES)))
    if pa.types.is_map(array.type):
        return _among(array, unavailable.find_entry, dict)
    if pa.types.is_list(array.type) and _may_hold_placeholders(array.type.value_type):
        return _among(array, unavailable.find_array, list)
    return None


def _may_hold_placeholders(items: pa.DataType) -> bool:
    types = pa.types
    return types.is_string(items) or types.is_binary(items) or types.is_integer(items)


def _without(array: Array, left_out: Mask | None) -> Array:
    """Return the array with omitted values replaced by null."""
    if left_out is None:
        return array
    return if_else(pa.array(left_out), pa.scalar(None, array.type), array)


def _marks(booleans: Any) -> Mask | None:  # noqa: ANN401  (an Arrow array of booleans)
    marks = marks_of(booleans)
    return marks if marks.any() else None


def _among(array: Array, find: unavailable.Find, convert: Callable[[Any], Any]) -> Mask | None:
    """Return a mask (n,) of placeholders in an array of lists or maps, or None if there are none.

    Only values with the length of a placeholder are examined.
    """
    lengths = list_lengths(array)
    candidates = np.flatnonzero((lengths == 1) | (lengths == len(unavailable.CODES)))
    values = take(array, pa.array(candidates)).to_pylist()
    placeholders = find([convert(value) for value in values])
    if not placeholders:
        return None
    marks = np.zeros(len(array), np.bool_)
    marks[candidates[placeholders]] = True
    return marks


def _build(array: Array, column: WireColumn, node: AvroNode) -> Array:
    build = _BY_MEANING.get(column.meaning, _through_json)
    return build(array, column, node)


def _plain(array: Array, column: WireColumn, node: AvroNode) -> Array:
    build = _BY_ROOT.get(column.data_type.root)
    if build is not None:
        return build(array, column, node)
    target = to_arrow_type(column.data_type)
    return array if array.type == target else array.cast(target)


def _json(array: Array, column: WireColumn, node: AvroNode) -> Array:
    return pa.array(json_texts(array, node), pa.string())


def _unscaled(array: Array, column: WireColumn, node: AvroNode) -> Array:
    if column.data_type.root != "DECIMAL":
        return pa.array(unscaled_text(array.to_pylist(), column.scale), pa.string())
    longest = pc.max(byte_lengths(array)).as_py() or 0
    values: Any = array
    if column.scale < 0 or longest > _LONGEST_UNSCALED or array.offset:
        values = array.to_pylist()
    return from_unscaled(values, column.scale, to_arrow_type(column.data_type))


def _variable_decimal(array: Array, column: WireColumn, node: AvroNode) -> Array:
    texts: list[str | None] = []
    for cell in array.to_pylist():
        if cell is not None and abs(cell["scale"]) > _MOST_DIGITS:
            raise ValueError(f"out of range of a decimal's scale: {cell['scale']}")
        texts.append(
            None
            if cell is None
            else plain_number(int.from_bytes(cell["value"], "big", signed=True), cell["scale"])
        )
    return pa.array(texts, pa.string())


def _integers(array: Array, column: WireColumn, node: AvroNode) -> Array:
    return array.cast(pa.int64())


def _temporal(array: Array, column: WireColumn, node: AvroNode) -> Array:
    data_type = column.data_type
    target = to_arrow_type(data_type)
    if pa.types.is_string(array.type):
        try:
            return array.cast(target)
        except pa.ArrowInvalid:
            return read_texts(array.to_pylist(), data_type)
    if data_type.root == "TIME":
        return time_of_day(array.cast(pa.int64()), 1)
    if data_type.root in TIMESTAMP_ROOTS:
        return array.cast(pa.int64()).cast(target)
    return array.cast(target)


def _array(array: Array, column: WireColumn, node: AvroNode) -> Array:
    element = _element(column)
    items = _build(flattened(array), element, node.children[0].present)
    target: Any = to_arrow_type(column.data_type)
    return make_list(list_offsets(list_lengths(array)), items, type=target, mask=array.is_null())


def _map(array: Array, column: WireColumn, node: AvroNode) -> Array:
    keys, values = entries(array)
    lengths = list_lengths(array)
    last = _last_entries(keys, lengths)
    if len(last) < len(keys):
        keys, values = keep_rows(keys, last), keep_rows(values, last)
        maps = np.repeat(np.arange(len(lengths)), lengths)[last]
        lengths = np.bincount(maps, minlength=len(lengths))
    items = _build(values, _element(column), node.children[0].present)
    target: Any = to_arrow_type(column.data_type)
    return make_map(list_offsets(lengths), keys, items, type=target, mask=array.is_null())


def _last_entries(keys: Array, lengths: Indices) -> Indices:
    """Return the indices of the last entry with each key in its map, ascending.

    `keys` are the keys of all entries of maps with these `lengths`. Avro's own readers take the
    last value if a key is repeated, and Paimon's maps must not repeat keys.
    """
    encoded: Any = keys.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    pairs = np.repeat(np.arange(len(lengths)), lengths) * (len(encoded.dictionary) or 1) + codes
    first = np.unique(pairs[::-1], return_index=True)[1]
    return np.sort(len(pairs) - 1 - first)


def _element(column: WireColumn) -> WireColumn:
    if column.element is not None:
        return column.element
    inner = column.data_type.element or column.data_type.value
    if inner is None:
        raise ValueError(f"column {column.name} has no elements")
    return WireColumn("element", inner)


def _row(array: Array, column: WireColumn, node: AvroNode) -> Array:
    target: Any = to_arrow_type(column.data_type)
    columns = zip(record_columns(node), node.children, flattened(array), strict=True)
    arrays = [_build(values, inner, child.present) for inner, child, values in columns]
    return make_struct(arrays, fields=list(target), mask=array.is_null())


def _through_json(array: Array, column: WireColumn, node: AvroNode) -> Array:
    """Build a column by converting its values to JSON texts and reading these as JSON columns.

    This is for meanings that only readers of JSON columns support.
    """
    texts = [
        None if json_text is None else json_text.encode() for json_text in json_texts(array, node)
    ]
    kinds = frozenset(kind for text in texts if text is not None for kind in kinds_of(text))
    reader = choose_reader(column, kinds)
    return reader.read(_decoded(texts, reader.wire))[0]


def _decoded(texts: Sequence[bytes | None], wire: Any) -> list[Any]:  # noqa: ANN401
    decode = msgspec.json.Decoder(wire).decode
    return [None if text is None else decode(text) for text in texts]


_Build = Callable[[Array, WireColumn, AvroNode], Array]
_BY_MEANING: Mapping[Meaning, _Build] = {
    Meaning.PLAIN: _plain,
    Meaning.JSON: _json,
    Meaning.UNSCALED: _unscaled,
    Meaning.VARIABLE_DECIMAL: _variable_decimal,
    Meaning.MICRO_TIME: _integers,
    Meaning.NANO_TIME: _integers,
    Meaning.NANO_TIMESTAMP: _integers,
}
_BY_ROOT: Mapping[str, _Build] = {
    **dict.fromkeys(TIMESTAMP_ROOTS | {"DATE", "TIME"}, _temporal),
    "ARRAY": _array,
    "MAP": _map,
    "ROW": _row,
}


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """A column of rows or message keys, and its values as the array of an Avro node.

    If `node` is None, the array already has the type of the column.
    """

    column: WireColumn
    node: AvroNode | None
    array: Array

    def cells(self) -> Cells:
        """Return the cells in the type of the column.

        Raises ValueError, TypeError, ArithmeticError, RecursionError, ArrowException or
        MsgspecError if a value does not fit.
        """
        left_out = _find_left_out(self.array)
        array = _without(self.array, left_out)
        if self.node is None:
            return Cells(recast(array, self.column), left_out)
        return Cells(_build_column(array, self.column, self.node), left_out)


@dataclass(frozen=True, slots=True)
class AvroChanges:
    """The changes of one table, with their columns.

    `columns` are the columns of rows and keys. `nodes` are the Avro types of the row columns; None
    for a column whose array already has the type of the column. `keys` has a column for each field
    of the message key, or is None if messages have no key. `offsets` are the offsets of the
    records; shape (n,). `images` states whether before images are requested.
    """

    changes: Changes
    columns: Mapping[str, WireColumn]
    nodes: Mapping[str, AvroNode | None]
    keys: Mapping[str, AvroColumn] | None
    offsets: npt.NDArray[np.int64]
    images: bool = False

    @classmethod
    def of(
        cls,
        changes: Changes,
        columns: Mapping[str, WireColumn],
        nodes: Mapping[str, AvroNode | None],
        keys: Mapping[str, AvroColumn] | None,
        declared: ColumnTypes,
        offsets: npt.NDArray[np.int64],
        *,
        images: bool = False,
    ) -> "AvroChanges":
        """Return changes whose row and key columns have the `declared` types.

        `columns` and `nodes` are those of rows. The type of a key column is the one in rows, if
        rows have the column.
        """
        of_keys = {
            name: key_column(columns.get(name, field.column))
            for name, field in (keys or {}).items()
        }
        typed = {
            name: column.declared_as(declared.get(name))
            for name, column in {**columns, **of_keys}.items()
        }
        keys = keys and {name: replace(field, column=typed[name]) for name, field in keys.items()}
        return cls(changes, typed, nodes, keys, offsets, images)

    def take(self, indices: Indices) -> "AvroChanges":
        """Return only the changes at these ascending indices."""
        if len(indices) == len(self.offsets):
            return self

        def kept(array: Any) -> Any:  # noqa: ANN401  (an Arrow array or None)
            return None if array is None else keep_rows(array, indices)

        old = self.changes
        changes = Changes(
            old.table,
            old.indices[indices],
            old.operations[indices],
            kept(old.before),
            kept(old.after),
            {name: kept(array) for name, array in old.source.items()},
        )
        keys = self.keys and {
            name: replace(key, array=kept(key.array)) for name, key in self.keys.items()
        }
        return replace(self, changes=changes, keys=keys, offsets=self.offsets[indices])

    def by_column(self) -> TableChanges[WireColumn]:
        """Return these changes as `TableChanges`, from which `assemble_changes` builds a batch."""
        changes, size = self.changes, len(self.offsets)
        operations = changes.operations
        codes = operations.view(np.uint32)[:: operations.itemsize // 4]
        keyed = _AvroImage(self.keys, np.ones(size, np.bool_)) if self.keys else None
        return TableChanges(
            source=changes.table,
            columns=list(self.columns.values()),
            key_names=tuple(self.keys or ()),
            kinds=kinds_of_operations(codes.astype(np.uint8)),
            after=self._image(changes.after),
            before=self._image(changes.before),
            key=keyed,
            offset=self.offsets,
            position=source_positions(changes.source, size),
            snapshot_row=source_snapshots(changes.source, size),
            images=self.images,
        )

    def _image(self, image: Array | None) -> "_AvroImage":
        if image is None:
            return _AvroImage({}, np.zeros(len(self.offsets), np.bool_))
        fields = {
            name: AvroColumn(self.columns[name], self.nodes[name], array)
            for name, array in members(image).items()
            if name in self.nodes
        }
        return _AvroImage(fields, valid_marks(image))


def change_batch(table: AvroChanges, refused: Reasons) -> ChangeBatch | None:
    """Return a batch of the valid changes; add the reasons of the invalid changes to `refused`.

    Keys of `refused` are the indices of the messages, as in `Changes.indices`. Returns None if no
    change is valid.
    """
    batch, bad = assemble_valid(len(table.offsets), lambda indices: table.take(indices).by_column())
    messages = table.changes.indices
    refused.update({int(messages[index]): reason for index, reason in bad.items()})
    return batch


@dataclass(frozen=True, slots=True)
class _AvroImage:
    """The images of one kind, which have one schema, so each existing image has all fields."""

    fields: Mapping[str, AvroColumn]
    there: Mask

    def lacking(self, column: WireColumn) -> Mask:
        """Return a mask (n,) of the changes whose image exists, but lacks this field."""
        return np.zeros_like(self.there) if column.name in self.fields else self.there

    def cells(self, column: WireColumn, wanted: Mask | None = None) -> Cells | None:
        """Return the cells (n,) of a column, or None if no image has it.

        Raises ValueError, TypeError, ArithmeticError, RecursionError, ArrowException or
        MsgspecError if a value does not fit.
        """
        field = self._field(column, wanted)
        return None if field is None else field.cells()

    def invalid(self, column: WireColumn, wanted: Mask | None) -> Iterator[tuple[int, Reason]]:
        """Yield the (index, reason) of each value for which `cells` raises."""
        field = self._field(column, wanted)
        if field is not None:
            yield from invalid_values(
                column,
                field.array,
                lambda values_at: replace(
                    field, array=take_or_null(values_at, np.arange(len(values_at)))
                ).cells(),
            )

    def overlaid(self, over: Mask, other: Image[WireColumn]) -> Image[WireColumn]:
        """Return these images, replaced by those of `other` where the mask is set."""
        return OverlaidImage(over, self, other)

    def _field(self, column: WireColumn, wanted: Mask | None) -> AvroColumn | None:
        field = self.fields.get(column.name)
        if field is None or wanted is None:
            return field
        return replace(field, array=_without(field.array, ~wanted))
