"""The changes of column types that are allowed in tables with existing files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

from collections.abc import Mapping

from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

_NUMERIC = INTEGER_ROOTS | {"FLOAT", "DOUBLE", "DECIMAL"}
_TO_NUMBER = _NUMERIC | CHARACTER_ROOTS | {"BOOLEAN"}
_TO_TEXT = _NUMERIC | CHARACTER_ROOTS | BINARY_ROOTS | {"BOOLEAN", "ARRAY", "MAP", "ROW"}
_TO_TIMESTAMP = TIMESTAMP_ROOTS | CHARACTER_ROOTS | {"INT", "BIGINT", "DATE", "TIME"}

_CASTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("CHAR", "VARCHAR"), _TO_TEXT),
    "STRING": _TO_TEXT | TIMESTAMP_ROOTS | {"DATE", "TIME"},
    "BOOLEAN": CHARACTER_ROOTS | INTEGER_ROOTS,
    **dict.fromkeys(BINARY_ROOTS, BINARY_ROOTS | CHARACTER_ROOTS),
    **dict.fromkeys(("DECIMAL", "TINYINT", "SMALLINT", "FLOAT", "DOUBLE"), _TO_NUMBER),
    **dict.fromkeys(("INT", "BIGINT"), _TO_NUMBER | TIMESTAMP_ROOTS),
    "DATE": TIMESTAMP_ROOTS | CHARACTER_ROOTS,
    "TIME": TIMESTAMP_ROOTS | CHARACTER_ROOTS,
    **dict.fromkeys(TIMESTAMP_ROOTS, _TO_TIMESTAMP),
}
"""New root -> the old roots that it may replace."""

_IMPLICIT: Mapping[str, frozenset[str]] = {
    "SMALLINT": frozenset({"TINYINT", "SMALLINT"}),
    "INT": frozenset({"TINYINT", "SMALLINT", "INT"}),
    "BIGINT": INTEGER_ROOTS,
    "FLOAT": INTEGER_ROOTS | {"FLOAT", "DECIMAL"},
    "DOUBLE": _NUMERIC,
    "DECIMAL": _NUMERIC,
    **dict.fromkeys(("VARCHAR", "STRING"), CHARACTER_ROOTS),
    **dict.fromkeys(("VARBINARY", "BYTES"), BINARY_ROOTS),
    "DATE": frozenset({"TIMESTAMP"}),
    "TIME": frozenset({"TIMESTAMP"}),
    **dict.fromkeys(TIMESTAMP_ROOTS, TIMESTAMP_ROOTS),
}
"""The subset of `_CASTS` that `disable-explicit-type-casting` allows."""


def can_cast(old: DataType, new: DataType, *, explicit: bool = True) -> bool:
    """Return whether a column of type `old` may change to `new`; existing files keep the old type.

    Without `explicit`, only the casts that SQL performs implicitly are allowed. The nullability of
    the column is ignored, but the nullability of nested types is not.
    """
    if old.as_nullable() == new.as_nullable():
        return True
    table = _CASTS if explicit else _IMPLICIT
    return old.root in table.get(new.root, frozenset())
