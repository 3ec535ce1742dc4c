"""Columns in which every value inside a null struct is null itself.

Arrow leaves open what is stored inside of a null. The library's ORC writer takes it for values
unless all structs above have nulls, too, and then all later rows have those of their neighbours.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array


def nulls_pushed_down(array: Array) -> Array:
    """Return the same values with a null wherever one of the structs around is null.

    Columns without a struct are returned as they are.
    """
    nested: Any = array
    kind: Any = array.type
    made: Array
    if not _has_struct(kind):
        return array
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        children = [nulls_pushed_down(child) for child in nested.flatten()]
        from_children: Any = pa.StructArray.from_arrays
        made = from_children(children, fields=fields, mask=nested.is_null())
    elif pa.types.is_map(kind):
        entries = nested.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        keys, items = (nulls_pushed_down(column) for column in entries.flatten().flatten())
        from_entries: Any = pa.MapArray.from_arrays
        made = from_entries(_offsets(entries), keys, items, type=kind, mask=nested.is_null())
    else:
        from_values: Any = pa.ListArray.from_arrays
        values = nulls_pushed_down(nested.flatten())
        made = from_values(_offsets(nested), values, type=kind, mask=nested.is_null())
    return made


def _has_struct(kind: pa.DataType) -> bool:
    nested: Any = kind
    if pa.types.is_map(kind):
        return _has_struct(nested.key_type) or _has_struct(nested.item_type)
    if pa.types.is_list(kind):
        return _has_struct(nested.value_type)
    return pa.types.is_struct(kind)


def _offsets(lists: Array) -> Array:
    """Where the lists begin if those that are null have no elements, and the last one ends."""
    compute: Any = pc
    lengths = compute.fill_null(compute.list_value_length(lists), 0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
