"""Columns with their readers, and the ways of building Arrow arrays that readers share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET

from ingestd.cdc.columns import raw_cells, unavailable
from ingestd.cdc.columns.column_encoding import ColumnEncoding
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.record_errors import PARSE_ERRORS
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import DataType

WireType = Any
Value = Any
Values = Sequence[Any]
Build = Callable[[Values], Array]


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """The reader of a column.

    `wire` is the msgspec type of a value, `build` returns the Arrow array of values. `native` is
    the encoding in which the native reader builds the same array; None if it cannot.
    """

    wire: Any
    build: Build
    find_unavailable: unavailable.Find
    native: ColumnEncoding | None = None

    def read(self, values: Values) -> tuple[Array, npt.NDArray[np.bool_] | None]:
        """Return the Arrow array of decoded values, and a mask of omitted ones (None: no value).

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


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """A column with its reader; both None while all its values have been null."""

    name: str
    column: WireColumn | None
    reader: ColumnReader | None
    attribute: str

    @property
    def table_type(self) -> DataType | None:
        """Return the column's type in the table; None while all its values have been null."""
        return None if self.column is None else self.column.table_type

    @property
    def values_of(self) -> Callable[[Sequence[Any]], list[Any]]:
        """Return a function from rows to the column's values."""
        get = attrgetter(self.attribute)
        return lambda rows: list(map(get, rows))

    @property
    def wire(self) -> WireType:
        """The msgspec type of a value that may be null."""
        if self.reader is None:
            return None
        wire = self.reader.wire
        return wire if wire is msgspec.Raw else wire | None

    @property
    def default(self) -> Value:
        """The value of an absent field: the default in the message's schema, else UNSET."""
        if self.column is None or self.reader is None or self.column.default is None:
            return UNSET
        try:
            value = msgspec.json.decode(self.column.default, type=self.wire)
        except PARSE_ERRORS:
            return UNSET
        return UNSET if isinstance(value, list | dict | msgspec.Struct) else value


def present(values: Values) -> list[Any]:
    """Return the values with None for absent ones."""
    return [None if value is UNSET else value for value in values]


def plain(arrow_type: pa.DataType) -> Build:
    """Return a builder for values that Arrow accepts; absent ones are handled on failure."""

    def build(values: Values) -> Array:
        try:
            return pa.array(values, arrow_type)
        except (pa.ArrowException, OverflowError):
            return pa.array(present(values), arrow_type)

    return build


def converting(arrow_type: pa.DataType, convert: Callable[[Any], Any]) -> Build:
    """Return a builder that converts values only if Arrow does not accept them unchanged."""

    def build(values: Values) -> Array:
        try:
            return pa.array(values, arrow_type)
        except (pa.ArrowException, OverflowError):
            converted = [None if v is None else convert(v) for v in present(values)]
            return pa.array(converted, arrow_type)

    return build


def from_present(convert: Callable[[list[Any]], Array]) -> Build:
    """Return a builder for conversions that take None for absent values."""

    def build(values: Values) -> Array:
        return convert(present(values))

    return build


def raw_reader(convert: Callable[[bytes], Any], arrow_type: pa.DataType) -> ColumnReader:
    """Return a reader that converts JSON texts one by one."""

    def build(values: Values) -> Array:
        cells = [None if v is None or v is UNSET else convert(bytes(v)) for v in values]
        return pa.array(cells, arrow_type)

    return ColumnReader(msgspec.Raw, build, unavailable.find_raw)


def any_encoding(data_type: DataType) -> ColumnReader:
    """Return the slow reader, which accepts values in every form."""
    return raw_reader(lambda raw: raw_cells.read_cell(raw, data_type), to_arrow_type(data_type))
