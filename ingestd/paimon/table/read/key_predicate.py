"""What is true of all rows of some keys, so that what certainly holds none of them is left out."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, INTEGER_ROOTS
from ingestd.paimon.spec.predicate import Comparison, IsIn, Predicate, all_of
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

MOST_VALUES = 1000
"""Of a column with more values only the first and the last are looked at."""


def keys_predicate(table: FileStoreTable, keys: pa.Table) -> Predicate | None:
    """A condition on the primary key columns that rows of `keys` meet, and some others may.

    Numbers and texts are looked at; None if there are none, or no keys.
    """
    if not keys.num_rows:
        return None
    parts: list[Predicate] = []
    for field in table.schema.select(table.schema.primary_keys):
        column = keys.column(field.name)
        simple = field.type.root in INTEGER_ROOTS or field.type.root in CHARACTER_ROOTS
        if simple and column.type == to_arrow_type(field.type) and not column.null_count:
            parts += _conditions(field.name, column)
    return all_of(parts)


def _conditions(name: str, column: Any) -> list[Predicate]:  # noqa: ANN401  (of any column type)
    values = pc.unique(column)
    if len(values) <= MOST_VALUES:
        return [IsIn(name, tuple(values.to_pylist()))]
    bounds: Any = pc.min_max(values)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return [Comparison(name, ">=", low), Comparison(name, "<=", high)]
