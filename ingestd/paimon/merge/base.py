"""The registry of merge engines, and the order of keys.

A merge engine takes rows in any order and returns one row per key. Numeric keys compare by value,
strings and binary keys by their bytes.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.stable_order import stable_order
from ingestd.paimon.merge.text_ranks import text_ranks
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.merge_rules import MergeRules

MERGE_ENGINES: Mapping[str, str] = {
    "aggregation": "ingestd.paimon.merge.aggregation",
    "deduplicate": "ingestd.paimon.merge.deduplicate",
    "first-row": "ingestd.paimon.merge.first_row",
    "partial-update": "ingestd.paimon.merge.partial_update",
}
"""Merge engine name -> module with the functions of `MergeEngine`."""

Ranks = npt.NDArray[Any]
"""Numbers that compare like the values of a column."""
Positions = npt.NDArray[np.int64]
"""Row positions in a table, from 0."""


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Rows grouped by key.

    `order` (n,) holds row positions by key, from oldest to newest within a key; `first` (n,) marks
    the positions of `order` at which a key begins."""

    order: Positions
    first: npt.NDArray[np.bool_]

    @property
    def last(self) -> npt.NDArray[np.bool_]:
        """Marks the positions of `order` at which a key ends."""
        if not len(self.first):
            return self.first
        return np.append(self.first[1:], True)


class MergeEngine(Protocol):
    """A module of this package.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
    """

    def merge(
        self, rows: pa.Table, key_columns: Sequence[str], keys: SortedKeys, rules: MergeRules
    ) -> pa.Table:
        """Return one row per key, ordered by key; `keys` holds the order of the input rows.

        A key may have no row if all its rows are ignored.
        """
        ...


@runtime_checkable
class PickingEngine(Protocol):
    """A merge engine that returns some of its input rows unchanged.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
    """

    def pick(self, rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> Positions:
        """Return the positions of the rows of `merge`; `rows` needs only system columns."""
        ...


def load_merge_engine(name: str) -> MergeEngine:
    """Return the merge engine of that name. Raises UnsupportedError if there is none."""
    module = MERGE_ENGINES.get(name)
    if module is None:
        raise UnsupportedError(
            f"'merge-engine' = '{name}' is not supported; only {sorted(MERGE_ENGINES)} are"
        )
    return cast("MergeEngine", import_module(module))


def key_order(table: pa.Table, key_columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return row positions ordered by key; rows of one key keep their order."""
    return sort_keys(table, key_columns).order


def sort_keys(
    table: pa.Table,
    key_columns: Sequence[str],
    sequence: npt.NDArray[np.int64] | None = None,
) -> SortedKeys:
    """Sort the rows of a table by key (no nulls), sequence number and row position.

    Raises ValueError without key columns, or if a column's type cannot be a key.
    """
    ranks = [rank for name in key_columns for rank in column_ranks(table.column(name))]
    if not ranks:
        raise ValueError("rows cannot be sorted without key columns")
    falls = sequence is not None and bool(np.any(sequence[1:] < sequence[:-1]))
    order = stable_order([*ranks, sequence] if sequence is not None and falls else ranks)
    return SortedKeys(order, _starts([rank[order] for rank in ranks]))


def is_key_sorted(table: pa.Table, key_columns: Sequence[str]) -> bool:
    """Return whether each key is greater than the one before it."""
    ranks = [rank for name in key_columns for rank in column_ranks(table.column(name))]
    greater = np.zeros(max(table.num_rows - 1, 0), bool)
    equal = ~greater
    for rank in ranks:
        greater |= equal & (rank[1:] > rank[:-1])
        equal &= rank[1:] == rank[:-1]
    return bool(greater.all())


def _starts(ranks: Sequence[Ranks]) -> npt.NDArray[np.bool_]:
    first = np.zeros(len(ranks[0]), bool)
    first[:1] = True
    for rank in ranks:
        first[1:] |= rank[1:] != rank[:-1]
    return first


def column_ranks(column: Column) -> list[Ranks]:
    """Return arrays that order a column, the most significant one first.

    Raises ValueError if the column has nulls or a type that cannot be a key.
    """
    array = _whole(column)
    if array.null_count:
        raise ValueError("a key column has nulls")
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return text_ranks(array)
    if pa.types.is_decimal128(kind):
        return _decimal_ranks(array)
    if pa.types.is_floating(kind):
        # In Java, too, -0.0 and 0.0 are the same key.
        return [float_codes(array.to_numpy() + 0)]
    if pa.types.is_boolean(kind):
        return [array.cast(pa.uint8()).to_numpy()]
    if pa.types.is_integer(kind):
        return [array.to_numpy()]
    if pa.types.is_temporal(kind):
        return [array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_numpy()]
    raise ValueError(f"a column of type {kind} cannot be a key")


def _whole(column: Column) -> Array:
    if isinstance(column, pa.Array):
        return column
    # Text of more than 2 GiB does not fit into one array and stays in chunks.
    whole: Any = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        raise ValueError("a key column has more text than one array can hold")
    array: Array = whole
    return array


def _decimal_ranks(array: Array) -> list[Ranks]:
    """Return the two halves of 128-bit numbers, or only the lower one if it holds every value."""
    kind: Any = array.type
    data: Any = array.buffers()[1]
    words = np.frombuffer(data, np.int64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    low = np.ascontiguousarray(words[:, 0])
    if kind.precision <= 18:
        return [low]
    return [np.ascontiguousarray(words[:, 1]), low.view(np.uint64)]


def float_codes(values: Ranks) -> Ranks:
    """Return integers in the order of floating-point numbers: NaN is last, -0.0 is before 0.0."""
    whole = np.int32 if values.dtype == np.float32 else np.int64
    bits: Ranks = np.where(np.isnan(values), values.dtype.type("nan"), values).view(whole)
    return np.where(bits < 0, bits ^ np.iinfo(whole).max, bits)
