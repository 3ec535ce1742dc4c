"""Changes of one table in Avro, as columns for `cdc.assembly`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ingestd.cdc.assembly import TableChanges, assemble_valid
from ingestd.cdc.avro.cells import build_column, find_left_out, without
from ingestd.cdc.avro.envelope import Changes
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.avro.position_columns import source_positions, source_snapshots
from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.change_images import Cells, Image, OverlaidImage, invalid_values
from ingestd.cdc.columns.arrow_calls import keep_rows, members, take_rows, valid_marks
from ingestd.cdc.columns.wire_column import WireColumn, recast
from ingestd.cdc.operations import kinds_of_operations
from ingestd.cdc.record_errors import Reason, Reasons
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.row_selection import Indices, Mask


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """A column of rows or message keys, and its values as the array of an Avro node.

    If `node` is None, the array already has the type of the column.
    """

    column: WireColumn
    node: AvroNode | None
    array: Array

    def cells(self) -> Cells:
        """Return the cells in the type of the column. Raises one of `CELL_ERRORS`."""
        left_out = find_left_out(self.array)
        array = without(self.array, left_out)
        if self.node is None:
            return Cells(recast(array, self.column), left_out)
        return Cells(build_column(array, self.column, self.node), left_out)


@dataclass(frozen=True, slots=True)
class AvroChanges:
    """The changes of one table, with their columns.

    `keys` has a column for each field of the message key, or is None if messages have no key.
    `offsets` are the offsets of the records; shape (n,). `columns` are the columns of rows and
    keys, and `nodes` the Avro types of the row columns. `images` is whether before images are
    requested.
    """

    changes: Changes
    columns: Mapping[str, WireColumn]
    nodes: Mapping[str, AvroNode | None]
    keys: Mapping[str, AvroColumn] | None
    offsets: npt.NDArray[np.int64]
    images: bool = False

    def take(self, indices: Indices) -> "AvroChanges":
        """Return the changes at ascending indices."""
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
        """Return the changes as columns for assembly."""
        changes, size = self.changes, len(self.offsets)
        codes = "".join(changes.operations.tolist()).encode()
        keyed = _AvroImage(self.keys, np.ones(size, np.bool_)) if self.keys else None
        return TableChanges(
            source=changes.table,
            columns=list(self.columns.values()),
            key_names=tuple(self.keys or ()),
            kinds=kinds_of_operations(np.frombuffer(codes, np.uint8)),
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
    """Assemble the valid changes into a batch; add the reasons of invalid changes to `refused`.

    Its keys are the indices of messages in their group. Returns None if no change is valid.
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
        """See `Image`."""
        return np.zeros_like(self.there) if column.name in self.fields else self.there

    def cells(self, column: WireColumn, wanted: Mask | None = None) -> Cells | None:
        """See `Image`."""
        field = self._field(column, wanted)
        return None if field is None else field.cells()

    def invalid(self, column: WireColumn, wanted: Mask | None) -> Iterator[tuple[int, Reason]]:
        """See `Image`."""
        field = self._field(column, wanted)
        if field is not None:
            yield from invalid_values(
                column,
                field.array,
                lambda values_at: replace(
                    field, array=take_rows(values_at, np.arange(len(values_at)))
                ).cells(),
            )

    def overlaid(self, over: Mask, other: Image[WireColumn]) -> Image[WireColumn]:
        """See `Image`."""
        return OverlaidImage(over, self, other)

    def _field(self, column: WireColumn, wanted: Mask | None) -> AvroColumn | None:
        field = self.fields.get(column.name)
        if field is None or wanted is None:
            return field
        return replace(field, array=without(field.array, ~wanted))
