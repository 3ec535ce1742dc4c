"""Merging a few rows without a table.

merge([{"k": 1, "v": 2}, {"k": 1, "v": 3, "_kind": 3}], {"v": "INT"}, engine="aggregation")
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.base import merge_rows
from ingestd.paimon.spec.arrow import column_of, column_values
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, parse_type
from ingestd.paimon.spec.merge_rules import FieldFunction, MergeRules


def rows_of(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any]) -> pa.Table:
    """Rows with the key ``k`` in the order in which they were written."""
    columns = {"k": "INT", **types}
    cells = {
        name: column_of([row.get(name) for row in rows], parse_type(t))
        for name, t in columns.items()
    }
    kinds = pa.array([row.get("_kind", 0) for row in rows], pa.int8())
    numbers = pa.array(np.arange(len(rows)))
    return pa.table({SEQUENCE_NUMBER: numbers, VALUE_KIND: kinds, **cells})


def merge(
    rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any], **rules: Any
) -> list[dict[str, Any]]:
    """What the rows become, with ``_kind`` where it is no insert."""
    merged = merge_rows(rows_of(rows, types), ["k"], MergeRules(**rules))
    names = [name for name in merged.column_names if name != SEQUENCE_NUMBER]
    cells = zip(*(column_values(merged.column(name)) for name in names), strict=True)
    found = [dict(zip(names, row, strict=True)) for row in cells]
    return [_told(row) for row in found]


def _told(row: dict[str, Any]) -> dict[str, Any]:
    kind = row.pop(VALUE_KIND)
    return {**row, "_kind": kind} if kind else row


def aggregate(function: str, t: Any, cells: Sequence[Any], **options: Any) -> Any:
    """The value of one key's cells; a cell in a tuple of its own is taken back."""
    rows = [
        {"k": 1, "v": cell[0], "_kind": 3} if isinstance(cell, tuple) else {"k": 1, "v": cell}
        for cell in cells
    ]
    functions = {"v": FieldFunction(function, **options)}
    (row,) = merge(rows, {"v": t}, engine="aggregation", functions=functions)
    return row["v"]
