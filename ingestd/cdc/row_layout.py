"""The rows that the changes of a table become: their row kinds, and the images they are taken from.

An insert is its after image, and a delete the key of its message. An update is its after image. If
it changed its key, a DELETE of the old key comes first.

For tables whose changelog contains before images, an update becomes two rows, -U and +U, or -D and
+I if it changed its key, and a delete becomes its whole before image. A change without a before
image stays one row, and so does an update whose before image lacks a key value.

`assembly` states what is known of the keys, and takes the cells of images by the positions that it
gets.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingestd.paimon.spec.data_types import RowKind

Kinds = npt.NDArray[np.int8]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
ABSENT = -1
"""The position of a cell that a row does not have."""
NO_KIND = -1
"""The row kind of a message without a known operation."""


@dataclass(frozen=True, slots=True)
class OldKeys:
    """What is known of the keys in before images; masks (n,) of changes.

    `complete` marks before images with a value in each key column, `moved` those of updates whose
    key differs from the after image.
    """

    complete: Mask
    moved: Mask


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Rows made of n changes.

    `kinds` and `changes` (rows,) are the row kind and the index of the change of each row. `keys`
    and `values` (rows,) are the positions of its key columns and of its other columns in the after
    images (0 to n - 1) followed by the before images (n to 2n - 1), or `ABSENT`.
    """

    kinds: Kinds
    changes: Indices
    keys: Indices
    values: Indices


def row_layout(kinds: Kinds, old: OldKeys) -> RowLayout:
    """Return the rows of changes, with a DELETE of the old key before updates that changed it."""
    updates = (kinds == RowKind.UPDATE_AFTER) & old.complete & old.moved
    rows, inserted = _with_inserted(kinds, np.flatnonzero(updates))
    rows.kinds[inserted] = RowKind.DELETE
    rows.values[inserted] = ABSENT
    return rows


def row_layout_with_images(
    kinds: Kinds, old: OldKeys, before: Mask, *, partial: bool = False
) -> RowLayout:
    """Return the rows of changes, with the before images of updates and deletes.

    `before` (n,) marks changes that have a before image. With `partial`, the after image of an
    update that changed its key stays UPDATE_AFTER: values that it omits are read from the table for
    updates only.
    """
    updates = np.flatnonzero((kinds == RowKind.UPDATE_AFTER) & before & old.complete)
    rows, inserted = _with_inserted(kinds, updates)
    moved = old.moved[updates]
    rows.kinds[inserted] = np.where(moved, RowKind.DELETE, RowKind.UPDATE_BEFORE)
    if not partial:
        rows.kinds[inserted + 1] = np.where(moved, RowKind.INSERT, RowKind.UPDATE_AFTER)
    # A delete has the key of its message, which its before image may lack.
    rows.values[
        (rows.kinds == RowKind.DELETE) & (rows.keys < len(kinds)) & before[rows.changes]
    ] += len(kinds)
    return rows


def _with_inserted(kinds: Kinds, updates: Indices) -> tuple[RowLayout, Indices]:
    """Return a row per change and one from the before image before each update; and where."""
    changes = np.insert(np.arange(len(kinds)), updates, updates)
    inserted = updates + np.arange(len(updates))
    keys = changes.copy()
    keys[inserted] += len(kinds)
    return RowLayout(kinds[changes], changes, keys, keys.copy()), inserted
