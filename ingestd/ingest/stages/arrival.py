"""Order the rows of one table from many blobs, in runs of bounded size, and find repeated ones.

Rows of a topic partition are ordered by offset. Rows of several topic partitions are ordered by the
position in the source's log: a key may change its partition (its bytes do if the type of a key
column changes), and its rows must still count in the order of the source.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.ingest.rows.blobs import OFFSET, POSITION, UNAVAILABLE_PREFIX, RowBlob
from ingestd.ingest.values.row_groups import stable_places

Numbers = npt.NDArray[np.int64]
RANK = "ingestd:rank"
"""Position of a row among all rows of the table in this task, from 0."""


@dataclass(frozen=True, slots=True)
class Run:
    """Rows in order, with their rank; `topics` has the number of each row's topic in the run."""

    rows: pa.Table
    topics: Numbers


def runs(
    blobs: Sequence[RowBlob],
    max_bytes: int,
    *,
    by_number: bool = False,
    whole: bool = False,
) -> Iterator[Run]:
    """Yield the rows of blobs in runs of about `max_bytes`, with at least one blob or row.

    Ranks order rows across runs; a run contains a rank only once. Rows of a table with left-out
    cells are one run, since an older value may be in any earlier row, and so are all rows with
    `whole`: for merges that cannot add rows of a key later. The rows of a run are sorted. With
    `by_number` they are in order of arrival, for callers that use only ranks, but no run has a row
    of lower rank than an earlier run, even if that splits blobs: changelog readers read the files
    of a snapshot in sequence, and take the last row of a key as the newest.
    """
    fills = any(
        name.startswith(UNAVAILABLE_PREFIX) for blob in blobs for name in blob.rows.column_names
    )
    together, in_order = whole or fills, fills or not by_number
    ranks = arrival_ranks(blobs)
    if by_number and not together and sum(blob.rows.nbytes for blob in blobs) > max_bytes:
        yield from _in_turn(blobs, ranks, max_bytes)
        return
    held: list[int] = []
    size = 0
    for number, blob in enumerate(blobs):
        if held and not together and size + blob.rows.nbytes > max_bytes:
            yield _run(blobs, ranks, held, in_order=in_order)
            held, size = [], 0
        held.append(number)
        size += blob.rows.nbytes
    if held:
        yield _run(blobs, ranks, held, in_order=in_order)


def _in_turn(blobs: Sequence[RowBlob], ranks: Sequence[Numbers], max_bytes: int) -> Iterator[Run]:
    """Yield runs of successive ranks; all rows of a blob are assumed to have the same size."""
    sizes = np.zeros(sum(len(rank) for rank in ranks))
    for blob, rank in zip(blobs, ranks, strict=True):
        sizes[rank] = blob.rows.nbytes / max(len(rank), 1)
    numbers = ((np.cumsum(sizes) - sizes) // max_bytes).astype(np.int64)
    borders = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1))
    for start, end in pairwise(borders.tolist()):
        parts, part_ranks = [], []
        for blob, rank in zip(blobs, ranks, strict=True):
            mine = np.flatnonzero((rank >= start) & (rank < end))
            if len(mine):
                parts.append(RowBlob(blob.origin, _picked(blob.rows, mine)))
                part_ranks.append(rank[mine])
        yield _run(parts, part_ranks, list(range(len(parts))), in_order=False)


def _picked(rows: pa.Table, places: Numbers) -> pa.Table:
    first, count = int(places[0]), len(places)
    if int(places[-1]) - first == count - 1:
        return rows.slice(first, count)
    return rows.take(places)


def arrival_ranks(blobs: Sequence[RowBlob]) -> list[Numbers]:
    """Return for each blob the rank of each of its rows, among the rows of all blobs."""
    partitions = {blob.origin.topic_partition: 0 for blob in blobs}
    numbers = {partition: number for number, partition in enumerate(sorted(partitions))}
    lengths = [blob.rows.num_rows for blob in blobs]
    offsets = _concatenated([blob.rows.column(OFFSET).to_numpy() for blob in blobs])
    owners = np.repeat([numbers[blob.origin.topic_partition] for blob in blobs], lengths)
    order = stable_places(owners, offsets)
    if len(numbers) > 1:
        positions = _concatenated([_positions(blob) for blob in blobs])[order]
        reached = _reached(positions, owners[order])
        order = order[np.argsort(reached, kind="stable")]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    borders = np.cumsum(lengths)[:-1]
    return np.split(ranks, borders)


def _positions(blob: RowBlob) -> Numbers:
    if POSITION not in blob.rows.column_names:
        return np.full(blob.rows.num_rows, -1, np.int64)
    return blob.rows.column(POSITION).to_numpy()


def _reached(positions: Numbers, owners: Numbers) -> Numbers:
    """Return the largest source position up to each row of a partition.

    It never decreases, even if rows were sent twice, so sorting by it keeps the order of
    partitions.
    """
    borders = np.flatnonzero(np.diff(owners)) + 1
    return _concatenated([np.maximum.accumulate(part) for part in np.split(positions, borders)])


def _concatenated(parts: list[Numbers]) -> Numbers:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _run(
    blobs: Sequence[RowBlob], ranks: Sequence[Numbers], picked: list[int], *, in_order: bool
) -> Run:
    topics: dict[tuple[str, str], int] = {}
    owners: list[int] = []
    for number in picked:
        one = blobs[number].origin
        owners.append(topics.setdefault((one.source, one.topic), len(topics)))
    tables = [blobs[number].rows.append_column(RANK, pa.array(ranks[number])) for number in picked]
    rows = pa.concat_tables(tables, promote_options="default")
    of_topic = np.repeat(owners, [table.num_rows for table in tables])
    rank = _concatenated([ranks[number] for number in picked])
    if in_order and bool((np.diff(rank) < 0).any()):
        order = np.argsort(rank)
        rows, of_topic = rows.take(order), of_topic[order]
    return Run(rows, of_topic)


def repeated_rows(
    rows: pa.Table, topics: npt.NDArray[np.int64], columns: list[str]
) -> npt.NDArray[np.bool_]:
    """Return a mask of rows with the topic, position and values of an earlier row; shape (rows,).

    A connector that was killed sends changes again. In a table without a primary key such rows
    would be duplicates. Rows without a position, and rows of a snapshot, which share one, are
    never repeats. `topics` is the number of the topic of each row.
    """
    repeated = np.zeros(rows.num_rows, np.bool_)
    positions = rows.column(POSITION).to_numpy()
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    twin = np.zeros(len(order), np.bool_)
    twin[1:] = ordered[1:] == ordered[:-1]
    twin[:-1] |= twin[1:]
    suspects = np.sort(order[twin & (ordered >= 0)])
    if not len(suspects):
        return repeated
    # These are few rows, so that Python values are affordable.
    values = rows.select(columns).take(suspects).to_pylist()
    seen: set[str] = set()
    for row, value in zip(suspects, values, strict=True):
        text = repr((int(topics[row]), int(positions[row]), value))
        repeated[row] = text in seen
        seen.add(text)
    return repeated
