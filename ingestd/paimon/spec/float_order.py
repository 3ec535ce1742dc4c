"""The order of floating-point numbers: -0.0 is less than 0.0, and NaN is greater than all numbers.

Java's comparisons of `Float` and `Double` have this order.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.spec.arrow import Array, Column


def float_codes(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an integer for each number, shape (n,); the integers compare like the numbers in Java.

    -0.0 precedes 0.0, and NaN is last. `values` are float32 or float64; the integers have the same
    width.
    """
    whole = np.int32 if values.dtype == np.float32 else np.int64
    nan = values.dtype.type("nan")
    bits: npt.NDArray[Any] = np.where(np.isnan(values), nan, values).view(whole)
    return np.where(bits < 0, bits ^ np.iinfo(whole).max, bits)


def float_ranks(column: Column) -> Array:
    """Return an integer for each value of a column; the integers compare like the values in Java.

    -0.0 precedes 0.0, and NaN is last. The column is float32 or float64. Nulls remain null.
    """
    nulls: Any = column.is_null()
    # Arrow converts nulls to NaN.
    numbers = np.asarray(column.to_numpy() if column.null_count else column)
    ranks: Array = pa.array(float_codes(numbers), mask=np.asarray(nulls))
    return ranks
