"""Remove the blanks with which ORC files pad CHAR values, as Java does.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#orc
"""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.casts.evolution import masked_offsets
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.data_types import DataField, DataType, walk_types

_trimmed: Callable[..., Array] = pc.utf8_rtrim


def without_padding(rows: pa.Table, fields: Sequence[DataField]) -> pa.Table:
    """Return rows without blanks at the end of CHAR values, also within nested columns.

    `fields` are the columns of the file with their types; `rows` may have some of them.
    """
    for field in fields:
        number = rows.schema.get_field_index(field.name)
        if number >= 0 and _has_char(field.type):
            chunks: Any = [_unpadded(chunk, field.type) for chunk in rows.column(number).chunks]
            kind: Any = rows.schema.field(number).type
            rows = rows.set_column(number, field.name, pa.chunked_array(chunks, kind))
    return rows


def _has_char(t: DataType) -> bool:
    return any(part.root == "CHAR" for part in walk_types(t))


def _unpadded(column: Array, t: DataType) -> Array:
    array: Any = column
    arrow: Any = pa
    result: Array = array
    if t.root == "CHAR":
        result = _trimmed(array, characters=" ")
    elif t.root == "ROW" and _has_char(t):
        children = [
            _unpadded(child, field.type)
            for child, field in zip(array.flatten(), t.fields, strict=True)
        ]
        result = arrow.StructArray.from_arrays(
            children, fields=list(array.type), mask=array.is_null()
        )
    elif t.element is not None and t.root == "ARRAY":
        values = _unpadded(array.values, t.element)
        result = arrow.ListArray.from_arrays(masked_offsets(array), values, type=array.type)
    elif t.key is not None and t.value is not None:
        keys, items = _unpadded(array.keys, t.key), _unpadded(array.items, t.value)
        result = arrow.MapArray.from_arrays(masked_offsets(array), keys, items, array.type)
    return result
