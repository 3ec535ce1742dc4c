"""A column of a row plan: its type, its reader and its default."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET

from ingestd.cdc.columns.column_reader import ColumnReader
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.record_errors import PARSE_ERRORS
from ingestd.paimon.spec.data_types import DataType

WireType = Any
Value = Any


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
