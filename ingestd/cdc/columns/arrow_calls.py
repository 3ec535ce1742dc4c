"""Functions of pyarrow, typed for arrays of any type, which its stubs do not support."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.row_selection import Mask

take: Callable[[Array, Array], Array] = pc.take
if_else: Callable[[Array, Any, Array], Array] = pc.if_else
equal: Callable[[Array, Any], Array] = pc.equal
nulls: Callable[..., Array] = pa.nulls
byte_lengths: Callable[..., Array] = pc.binary_length
to_array: Callable[..., Array] = pa.array
make_list: Callable[..., Array] = pa.ListArray.from_arrays
make_map: Callable[..., Array] = pa.MapArray.from_arrays
make_struct: Callable[..., Array] = pa.StructArray.from_arrays
py_buffer: Callable[[Any], pa.Buffer] = pa.py_buffer


def marks_of(array: Array) -> Mask:
    """Convert an Arrow boolean array to a NumPy mask (n,); null becomes False."""
    marks: Mask = array.fill_null(False).to_numpy(zero_copy_only=False)
    return marks


def valid_marks(array: Array) -> Mask:
    """Return a mask (n,) of the values that are not null."""
    return marks_of(array.is_valid())


def take_or_null(array: Array, rows: npt.NDArray[np.int64]) -> Array:
    """Return the values of an array at these indices; a negative index yields null."""
    absent = rows < 0
    return take(array, pa.array(rows, mask=absent if absent.any() else None))


def keep_rows(array: Array, rows: npt.NDArray[np.int64]) -> Array:
    """Return the values of an array at these indices, which must be ascending and distinct."""
    return array if len(rows) == len(array) else take(array, pa.array(rows))


def flattened(array: Any) -> Any:  # noqa: ANN401  (an Arrow array of lists, maps or structs)
    """Return the elements of all lists as one array, or the fields of structs as a list of arrays.

    A null list has no elements, and the fields of a null struct are null.
    """
    return array.flatten()


def members(array: Array) -> dict[str, Array]:
    """Return the fields of structs by name, with nulls where the struct is null.

    The result is empty if the array is not a struct array.
    """
    if not pa.types.is_struct(array.type):
        return {}
    fields: Any = array.type
    return dict(zip([field.name for field in fields], flattened(array), strict=True))


def struct_of(arrays: Mapping[str, Array], rows: int) -> Array:
    """Build a struct array of length `rows` from arrays by field name."""
    if not arrays:
        return pa.array([{}] * rows, pa.struct([]))
    return make_struct(list(arrays.values()), names=list(arrays))


def entries(array: Array) -> tuple[Array, Array]:
    """Return the keys and the values of all maps that are not null, each as one flat array."""
    whole: Any = take(array, pa.array(np.flatnonzero(valid_marks(array))))
    return whole.keys, whole.items


def list_lengths(array: Any) -> npt.NDArray[np.int64]:  # noqa: ANN401  (lists or maps)
    """Return the number of elements of each list or map, with 0 for null."""
    lengths: npt.NDArray[np.int64] = np.diff(array.offsets.to_numpy()).astype(np.int64)
    return np.where(valid_marks(array), lengths, 0)
