"""Initial types of primary key columns."""

from dataclasses import replace

from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.paimon.spec.data_types import DataType

_KEY_TYPES = {"TINYINT": DataType("INT"), "SMALLINT": DataType("INT")}


def key_column(column: WireColumn) -> WireColumn:
    """Return the column for use in a key, with TINYINT and SMALLINT widened to INT.

    The type of a key column cannot change later.
    """
    wide = _KEY_TYPES.get(column.data_type.root)
    return column if wide is None else replace(column, data_type=wide)
