"""Format partitions, keys and column statistics for system tables, as Paimon does in Java."""

from collections.abc import Mapping, Sequence

from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.paths import java_text
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


def partition_text(table: FileStoreTable, partition: bytes) -> str:
    """Return a serialized partition as `{value, value}`.

    Values are cast to text, but binary values are hexadecimal; null is `null`.
    """
    cells = table.partition_values(partition)
    names = table.schema.partition_keys
    values = zip(names, table.partition_types, cells, strict=True)
    return "{" + ", ".join(_cell(name, t, value, legacy=False) for name, t, value in values) + "}"


def partition_name(table: FileStoreTable, partition: bytes) -> str:
    """Return a serialized partition as `column=value/column=value`.

    Values are cast to text, but binary values are hexadecimal; null and blank values are replaced
    by the option `partition.default-name`.
    """
    cells = table.partition_values(partition)
    default = table.options.partition_default_name
    names = table.schema.partition_keys
    return "/".join(
        f"{name}={_named(name, t, value, default)}"
        for name, t, value in zip(names, table.partition_types, cells, strict=True)
    )


def _named(name: str, t: DataType, value: object, default: str) -> str:
    """Return a value cast to text, or `default` for null and blank text."""
    text = "" if value is None else _cell(name, t, value, legacy=False)
    return text if text.strip() else default


def key_text(types: Sequence[DataType], key: bytes) -> str | None:
    """Return a serialized key as `[value, value]`; None for a key without columns."""
    cells = deserialize_row(types, key)
    if not cells:
        return None
    pairs = zip(types, cells, strict=True)
    return "[" + ", ".join(_cell("key", t, value, legacy=True) for t, value in pairs) + "]"


def bounds_text(types: Mapping[str, DataType], values: Mapping[str, object]) -> str:
    """Return bounds as `{column=value, column=value}`, ordered by column.

    Dates are numbers of days since 1970.
    """
    names = sorted(values)
    cells = (f"{name}={_cell(name, types[name], values[name], legacy=True)}" for name in names)
    return "{" + ", ".join(cells) + "}"


def counts_text(counts: Mapping[str, int | None]) -> str:
    """Return counts as `{column=count, column=count}`, ordered by column; None is `null`."""
    shown = {name: "null" if count is None else str(count) for name, count in counts.items()}
    return "{" + ", ".join(f"{name}={shown[name]}" for name in sorted(shown)) + "}"


def _cell(name: str, t: DataType, value: object, *, legacy: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return value.hex()
    return java_text(name, t, value, legacy=legacy)
