"""The rows of a change batch: their row kinds, and the images from which they are taken.

An insert becomes its after image, and a delete the key of its message (see `assembly` for messages
without a key). An update becomes its after image, preceded by a DELETE of the old key if it changed
the key.

For tables whose changelog contains before images, an update becomes two rows, -U and +U, or -D and
+I if it changed the key, and a delete becomes its complete before image. A change without a before
image, or an update whose before image lacks a key value, becomes one row.

`assembly` compares the keys, and takes cells from the images by the positions in the layout.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.row_selection import Indices, Mask

Kinds = npt.NDArray[np.int8]
ABSENT = -1
"""The position of a cell that is null in a row."""
NO_KIND = -1
"""The row kind of a message without a known operation."""


@dataclass(frozen=True, slots=True)
class OldKeys:
    """Masks (n,) of n changes, by the keys in their before images.

    `complete` marks before images that have a value in each key column, and `moved` before images
    whose key differs from the key of the after image.
    """

    complete: Mask
    moved: Mask


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The rows of n changes; all arrays have shape (rows,).

    `kinds` is the row kind of each row, and `changes` the index of its change. `keys` and `values`
    are the positions of the key cells and of the other cells of each row: 0 to n - 1 are those in
    the after images (for the key of a delete, in the message keys), n to 2n - 1 those in the before
    images, and `ABSENT` stands for no cells.
    """

    kinds: Kinds
    changes: Indices
    keys: Indices
    values: Indices


def row_layout(kinds: Kinds, old: OldKeys) -> RowLayout:
    """Return the rows of changes, with a DELETE of the old key before each update of a key.

    `kinds` (n,) are the row kinds of the changes, and `old` describes the keys in their before
    images. An update whose before image lacks a key value remains one row.
    """
    updates = (kinds == RowKind.UPDATE_AFTER) & old.complete & old.moved
    rows, inserted = _with_inserted(kinds, np.flatnonzero(updates))
    rows.kinds[inserted] = RowKind.DELETE
    rows.values[inserted] = ABSENT
    return rows


def row_layout_with_images(
    kinds: Kinds, old: OldKeys, before: Mask, *, partial: bool = False
) -> RowLayout:
    """Return the rows of changes, including the before images of updates and deletes.

    `kinds` (n,) are the row kinds of the changes, `old` describes the keys in their before images,
    and `before` is a mask (n,) of the changes that have a before image. If `partial`, the after
    image of an update that changed its key remains UPDATE_AFTER, because omitted values are read
    from the table only for updates.
    """
    updates = np.flatnonzero((kinds == RowKind.UPDATE_AFTER) & before & old.complete)
    rows, inserted = _with_inserted(kinds, updates)
    moved = old.moved[updates]
    rows.kinds[inserted] = np.where(moved, RowKind.DELETE, RowKind.UPDATE_BEFORE)
    if not partial:
        rows.kinds[inserted + 1] = np.where(moved, RowKind.INSERT, RowKind.UPDATE_AFTER)
    # The key of a delete is the message key, because its before image may lack the key.
    rows.values[
        (rows.kinds == RowKind.DELETE) & (rows.keys < len(kinds)) & before[rows.changes]
    ] += len(kinds)
    return rows


def _with_inserted(kinds: Kinds, updates: Indices) -> tuple[RowLayout, Indices]:
    """Return a layout with one row per change, and a row of the before image before each update.

    Also returns the indices of the inserted rows.
    """
    changes = np.insert(np.arange(len(kinds)), updates, updates)
    inserted = updates + np.arange(len(updates))
    keys = changes.copy()
    keys[inserted] += len(kinds)
    return RowLayout(kinds[changes], changes, keys, keys.copy()), inserted
