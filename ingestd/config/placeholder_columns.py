"""Placeholder columns for checking the options of tables before any message was read.

A column without a declared type gets one that fits the options; the real types are checked when the
table is created.
"""

from collections.abc import Mapping

from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import DataField, DataType
from ingestd.paimon.spec.merge_rules import columns_named, function_name

UNKNOWN_KEY = "key"
"""Stands for the columns of a message key that no message has shown yet."""

_TEXT = DataType("STRING")
_OF_FUNCTION: Mapping[str, DataType] = {
    "sum": DataType("BIGINT"),
    "product": DataType("BIGINT"),
    "bool_and": DataType("BOOLEAN"),
    "bool_or": DataType("BOOLEAN"),
    "collect": DataType("ARRAY", element=_TEXT),
    "merge_map": DataType("MAP", key=_TEXT.not_null(), value=_TEXT),
}
"""Types that aggregate functions take, where they do not take text."""


def placeholder_key(settings: TableSettings) -> tuple[str, ...]:
    """Return a primary key with all columns that the settings require in it."""
    needed = [*settings.partition_keys, *_bucket_keys(settings)]
    return tuple(dict.fromkeys([*needed, UNKNOWN_KEY]))


def placeholder_columns(settings: TableSettings) -> dict[str, DataType]:
    """Return every column that the settings name, with its type."""
    keys = settings.primary_keys
    names = [
        *(placeholder_key(settings) if keys is None else keys),
        *settings.partition_keys,
        *_bucket_keys(settings),
        *columns_named(settings.options),
        *settings.column_types,
    ]
    names += sorted(settings.shape.added())
    found = {name: settings.column_types.get(name) or _imagined(settings, name) for name in names}
    return found or {UNKNOWN_KEY: _TEXT}


def _bucket_keys(settings: TableSettings) -> tuple[str, ...]:
    return honoured.BUCKET_KEY.of(settings.options)


def _imagined(settings: TableSettings, name: str) -> DataType:
    added = settings.shape.added_type(name, settings.column_types)
    if added is not None:
        return added
    if name in (*settings.partition_keys, *_bucket_keys(settings), *(settings.primary_keys or ())):
        return _TEXT
    function = function_name(settings.options, name)
    if function in ("nested_update", "nested_partial_update"):
        nested = honoured.NESTED_KEY.named(name).of(settings.options)
        return DataType("ARRAY", element=_row(*nested, "of"))
    if function == "merge_map_with_keytime":
        time = honoured.TIME_FIELD.named(name).of(settings.options) or "time"
        return DataType("MAP", key=_TEXT.not_null(), value=_row(f"{time} of", time))
    return _OF_FUNCTION.get(function or "", _TEXT)


def _row(*names: str) -> DataType:
    distinct = dict.fromkeys(names)
    return DataType("ROW", fields=tuple(DataField(i, n, _TEXT) for i, n in enumerate(distinct)))
