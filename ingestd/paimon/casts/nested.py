"""Cast nested columns to types with NOT NULL fields inside, child by child.

A NOT NULL field contains nulls wherever the enclosing ROW is null. Arrow's own cast rejects these
nulls, because it does not take the enclosing struct into account.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.paimon.spec.arrow import Array


def cast_nested_chunks(chunks: Sequence[Array], target: pa.DataType) -> Any:  # noqa: ANN401
    """Apply `cast_nested` to each chunk of a column."""
    parts: Any = [cast_nested(chunk, target) for chunk in chunks]
    kind: Any = target
    return pa.chunked_array(parts, kind)


def cast_nested(array: Array, target: pa.DataType) -> Array:
    """Return the values in another type with the same nesting.

    Raises ArrowInvalid if the nesting differs.
    """
    nested: Any = array
    kind: Any = target
    if pa.types.is_struct(target) and pa.types.is_struct(array.type):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        if [f.name for f in fields] != [f.name for f in nested.type]:
            raise pa.ArrowInvalid(f"{array.type} has other fields than {target}")
        children = [
            cast_nested(child, f.type) for child, f in zip(nested.flatten(), fields, strict=True)
        ]
        if not children:
            return array
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pa.types.is_map(target) and pa.types.is_map(array.type):
        keys = cast_nested(nested.keys, kind.key_type)
        items = cast_nested(nested.items, kind.item_type)
        make: Any = pa.MapArray.from_arrays
        pairs: Array = make(_offsets(nested), keys, items, kind)
        return pairs
    if pa.types.is_list(target) and pa.types.is_list(array.type):
        values = cast_nested(nested.values, kind.value_type)
        make = pa.ListArray.from_arrays
        lists: Array = make(_offsets(nested), values, type=kind)
        return lists
    return array.cast(target)


def _offsets(nested: Any) -> Array:  # noqa: ANN401  # ListArray or MapArray
    """Return the list offsets, null for null collections."""
    offsets: Array = nested.offsets
    nulls = nested.is_null().to_numpy(zero_copy_only=False)
    masked_offsets: Array = pa.array(offsets.to_numpy(), mask=np.append(nulls, False))
    return masked_offsets
