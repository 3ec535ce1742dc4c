"""What reads the values of one column, and the ways of making Arrow arrays that readers share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET

from ingestd.cdc.columns import raw_cells, unavailable
from ingestd.cdc.native.column_encoding import ColumnEncoding
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import DataType

Values = Sequence[Any]
Build = Callable[[Values], Array]


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """`wire` is the msgspec type of a value, `build` makes the Arrow array of many.

    `native` makes the same array without either; None if only they can.
    """

    wire: Any
    build: Build
    find_unavailable: unavailable.Find
    native: ColumnEncoding | None = None

    def read(self, values: Values) -> tuple[Array, npt.NDArray[np.bool_] | None]:
        """The Arrow array of decoded values, and which of them the source left out (None: none).

        Raises one of `record_errors.BUILD_ERRORS` if any value does not fit.
        """
        if self.wire is str:
            array = self.build(values)
            if not unavailable.may_hold_text(array):
                return array, None
        left_out = self.find_unavailable(values)
        if not left_out:
            return self.build(values), None
        mask = np.zeros(len(values), np.bool_)
        mask[left_out] = True
        kept = [None if out else value for value, out in zip(values, mask, strict=True)]
        return self.build(kept), mask


def present(values: Values) -> list[Any]:
    """The values with null for those that are absent."""
    return [None if value is UNSET else value for value in values]


def plain(arrow_type: pa.DataType) -> Build:
    """Values that Arrow takes as they are; absent ones are rare, so they cost only when there."""

    def build(values: Values) -> Array:
        try:
            return pa.array(values, arrow_type)
        except (pa.ArrowException, OverflowError):
            return pa.array(present(values), arrow_type)

    return build


def converting(arrow_type: pa.DataType, convert: Callable[[Any], Any]) -> Build:
    """Values of which few need converting: all are tried as they are first."""

    def build(values: Values) -> Array:
        try:
            return pa.array(values, arrow_type)
        except (pa.ArrowException, OverflowError):
            converted = [None if v is None else convert(v) for v in present(values)]
            return pa.array(converted, arrow_type)

    return build


def from_present(convert: Callable[[list[Any]], Array]) -> Build:
    """For conversions that take null for absent."""

    def build(values: Values) -> Array:
        return convert(present(values))

    return build


def raw_reader(convert: Callable[[bytes], Any], arrow_type: pa.DataType) -> ColumnReader:
    """A reader that converts JSON texts one by one."""

    def build(values: Values) -> Array:
        cells = [None if v is None or v is UNSET else convert(bytes(v)) for v in values]
        return pa.array(cells, arrow_type)

    return ColumnReader(msgspec.Raw, build, unavailable.find_raw)


def any_encoding(data_type: DataType) -> ColumnReader:
    """The slow reader that takes values in every form they may have."""
    return raw_reader(lambda raw: raw_cells.read_cell(raw, data_type), to_arrow_type(data_type))
