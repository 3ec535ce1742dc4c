"""The order in which the rows of a table arrived, over all topic partitions.

Rows of one topic partition are ordered by offset, and rows of different topic partitions by their
position in the source's log. The delete and the insert of an update that changed the message key
have the same position, and the delete is ordered first, because both can change the same row: the
key of the table may be only a part of the message key.
"""

from collections.abc import Sequence

import numpy as np

from ingestd.ingest.rows.blobs import KIND, OFFSET, POSITION, RowBlob
from ingestd.ingest.rows.omitted_values import kept_deletes
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.grouping import pair_order
from ingestd.paimon.spec.row_selection import Indices, Mask


def arrival_ranks(blobs: Sequence[RowBlob]) -> list[Indices]:
    """Return the ranks of all rows by order of arrival: an array (rows,) for each blob.

    Ranks count over the rows of all blobs, from 0 for the row that arrived first. Rows of one topic
    partition are ordered by offset. Rows of several topic partitions are ordered by the largest
    source position that their partition has reached up to the row.
    """
    origins = [blob.origin for blob in blobs]
    partitions = [(origin.source, origin.topic, origin.partition) for origin in origins]
    numbers = {partition: number for number, partition in enumerate(sorted(set(partitions)))}
    lengths = [blob.rows.num_rows for blob in blobs]
    offsets = concatenated([blob.rows.column(OFFSET).to_numpy() for blob in blobs])
    owners = np.repeat([numbers[partition] for partition in partitions], lengths)
    order = pair_order(owners, offsets)
    if len(numbers) > 1:
        positions = concatenated([_positions(blob) for blob in blobs])[order]
        reached = _reached(positions, owners[order])
        by_position = np.argsort(reached, kind="stable")
        deletes = np.concatenate([_deletes(blob) for blob in blobs])
        if deletes.any() and _have_ties(reached[by_position], owners[order][by_position]):
            later = _after_deletes(deletes[order], reached, owners[order])
            by_position = np.lexsort((later, reached))
        order = order[by_position]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    borders = np.cumsum(lengths)[:-1]
    return np.split(ranks, borders)


def _positions(blob: RowBlob) -> Indices:
    if POSITION not in blob.rows.column_names:
        return np.full(blob.rows.num_rows, -1, np.int64)
    return blob.rows.column(POSITION).to_numpy()


def _reached(positions: Indices, owners: Indices) -> Indices:
    """Return the largest source position up to each row in its topic partition; shape (rows,).

    `owners` are the numbers of the topic partitions, in ascending order. The result never decreases
    within a topic partition, even if rows were sent twice, so sorting by it preserves the order of
    the rows there.
    """
    borders = np.flatnonzero(np.diff(owners)) + 1
    return concatenated([np.maximum.accumulate(piece) for piece in np.split(positions, borders)])


def _have_ties(reached: Indices, owners: Indices) -> bool:
    """Return whether rows of different topic partitions have reached the same known position.

    The rows must be sorted by the position that they have reached.
    """
    ties = (reached[1:] == reached[:-1]) & (owners[1:] != owners[:-1]) & (reached[1:] >= 0)
    return bool(ties.any())


def _deletes(blob: RowBlob) -> Mask:
    kinds = blob.rows.column(KIND).to_numpy()
    deletes: Mask = (kinds == RowKind.DELETE) | kept_deletes(blob.rows)
    return deletes


def _after_deletes(deletes: Mask, reached: Indices, owners: Indices) -> Mask:
    """Return a mask (rows,) of all rows except the deletes with which a position begins.

    A position begins with the first row of a topic partition that has reached it. Sorting the rows
    of a position by the mask preserves their order within each topic partition.
    """
    count = len(deletes)
    starts = np.ones(count, np.bool_)
    starts[1:] = (reached[1:] != reached[:-1]) | (owners[1:] != owners[:-1])
    start = np.maximum.accumulate(np.where(starts, np.arange(count), 0))
    newest_other = np.maximum.accumulate(np.where(deletes, -1, np.arange(count)))
    later: Mask = newest_other >= start
    return later


def concatenated(arrays: list[Indices]) -> Indices:
    """Concatenate arrays of indices; without arrays, return an empty one."""
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
