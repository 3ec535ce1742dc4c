"""Files that are merged by picking rows: what decides is read first, the other columns follow.

A column's cells are taken as soon as it has been read, and the read ones let go of. Of a large
section columns are read in groups, two of them at a time, on two cores: what memory holds beside
the rows that stay is two groups, however large the section is.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ingestd.paimon.merge.base import Positions
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    NESTED_ROOTS,
    DataField,
    DataType,
)

GROUP_BYTES = 32 * 1024 * 1024
"""Bytes of files, or about so many, of which columns are read together."""
FILE_BYTES = 1024 * 1024
"""A file is not opened once more for less than this."""

ReadFields = Callable[[Sequence[DataField]], pa.Table]
PickRows = Callable[[pa.Table], Positions]
Picked = tuple[Positions, pa.Table]


@dataclass(frozen=True, slots=True)
class PickedSection:
    """Files of a section: `read` gives all their rows in columns, `pick` those that stay.

    `pick` looks at the columns `deciding`.
    """

    files: Sequence[DataFileMeta]
    read: ReadFields
    pick: PickRows
    deciding: Sequence[DataField]

    def rows(self, others: Sequence[DataField], *, at_once: bool = False) -> pa.Table:
        """The rows that stay, in the deciding columns and some others, ordered as picked.

        `at_once` reads all columns together, however large the files are.
        """
        groups = [] if at_once else column_groups(self.files, self.deciding, others)
        if not groups:
            return self._first((*self.deciding, *others))[1]
        with ThreadPoolExecutor(min(2, len(os.sched_getaffinity(0))), "columns") as pool:
            # The first one waits for none of the others, so that they may wait for it.
            first = pool.submit(self._first, self.deciding)
            rest = [pool.submit(self._taken, group, first) for group in groups]
            try:
                tables = [first.result()[1], *(future.result() for future in rest)]
            finally:
                for future in rest:
                    future.cancel()
        columns = {name: t.column(name) for t in tables for name in t.column_names}
        return pa.table(columns)

    def _first(self, fields: Sequence[DataField]) -> Picked:
        rows = self.read(fields)
        picked = self.pick(rows)
        columns = _columns(rows)
        del rows
        return picked, _take(columns, picked)

    def _taken(self, fields: Sequence[DataField], first: "Future[Picked]") -> pa.Table:
        columns = _columns(self.read(fields))
        return _take(columns, first.result()[0])


def column_groups(
    files: Sequence[DataFileMeta], deciding: Sequence[DataField], others: Sequence[DataField]
) -> list[list[DataField]]:
    """The other columns in the groups that they are read in; none if all can be read at once."""
    every = sum(file.file_size for file in files)
    least = max(GROUP_BYTES, FILE_BYTES * len(files))
    asked = sum(_weight(field.type) for field in (*deciding, *others))
    if every <= least or not others:
        return []
    size = max(1.0, asked * least / every)
    groups: list[list[DataField]] = []
    filled = size
    for field in others:
        weight = _weight(field.type)
        if filled + weight > size:
            groups.append([])
            filled = 0.0
        groups[-1].append(field)
        filled += weight
    return groups


def _weight(t: DataType) -> int:
    """About how much of a file a column takes: a guess that only the sizes of groups depend on."""
    if t.root in NESTED_ROOTS:
        return 8
    return 4 if t.root in CHARACTER_ROOTS or t.root in BINARY_ROOTS else 1


def _columns(rows: pa.Table) -> dict[str, Any]:
    return {name: rows.column(name) for name in rows.column_names}


def _take(columns: dict[str, Any], picked: Positions) -> pa.Table:
    """The cells of some rows; the columns are gone from `columns` one by one."""
    places = pa.array(picked)
    taken = {}
    for name in list(columns):
        # One array first: taking from chunks costs twice as much.
        taken[name] = columns.pop(name).combine_chunks().take(places)
    return pa.table(taken)
