"""Which file indexes a writer makes of which columns.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec.file_index import BITMAP, BLOOM_FILTER
from ingestd.paimon.spec.file_index_bitmap import DEFAULT_BLOCK_SIZE, has_bitmap
from ingestd.paimon.spec.file_index_bloom import DEFAULT_FPP
from ingestd.paimon.spec.hash64 import is_hashable
from ingestd.paimon.spec.option_values import int_option, optional_int_option, size_option
from ingestd.paimon.spec.table_schema import TableSchema

DEFAULT_THRESHOLD = 500
"""Bytes from which on indexes go into a file of their own."""

_PREFIX = "file-index."
_COLUMNS = "columns"
_SETTINGS: Mapping[str, frozenset[str]] = {
    BLOOM_FILTER: frozenset({"items", "fpp"}),
    BITMAP: frozenset({"version", "index-block-size"}),
}
_FITS = {BLOOM_FILTER: is_hashable, BITMAP: has_bitmap}


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """One index of one column.

    `items` is the number of values a bloom filter is sized for (None: those of the file),
    `fpp` its rate of false positives, `block_size` the bytes of a block of a bitmap index.
    """

    column: str
    kind: str
    items: int | None = None
    fpp: float = DEFAULT_FPP
    block_size: int = DEFAULT_BLOCK_SIZE


def column_indexes(schema: TableSchema) -> tuple[ColumnIndex, ...]:
    """The indexes that the options of a table ask for.

    ConfigError names an option that cannot be understood or speaks of a column that is not
    there; UnsupportedError one that asks for what is not implemented.
    """
    indexes = []
    for kind in (BLOOM_FILTER, BITMAP):
        columns = list(_columns(schema, kind))
        _check_settings(schema, kind, columns)
        indexes += [_column_index(schema, kind, column) for column in columns]
    return tuple(indexes)


def manifest_threshold(schema: TableSchema) -> int:
    """Bytes up to which the indexes of a file stand in its manifest entry."""
    return size_option(schema.options, "file-index.in-manifest-threshold", DEFAULT_THRESHOLD)


def _columns(schema: TableSchema, kind: str) -> Iterator[str]:
    name = f"{_PREFIX}{kind}.{_COLUMNS}"
    for part in schema.options.get(name, "").split(","):
        column = part.strip()
        if not column:
            continue
        if column.endswith("]") and "[" in column and column not in schema.field_names:
            raise UnsupportedError(
                f"option '{name}' = '{schema.options[name]}': indexes of single map keys are not "
                "supported"
            )
        if column not in schema.field_names:
            raise ConfigError(f"option '{name}': there is no column '{column}'")
        if not _FITS[kind](schema.field(column).type):
            raise ConfigError(
                f"option '{name}': column '{column}' of type {schema.field(column).type} cannot "
                f"have an index of type {kind}"
            )
        yield column


def _check_settings(schema: TableSchema, kind: str, columns: list[str]) -> None:
    prefix = f"{_PREFIX}{kind}."
    known = {f"{column}.{setting}" for column in columns for setting in _SETTINGS[kind]}
    for name in schema.options:
        rest = name.removeprefix(prefix)
        if rest != name and rest != _COLUMNS and rest not in known:
            raise ConfigError(
                f"option '{name}': expected {prefix}{_COLUMNS} or {prefix}<indexed column>."
                f"<{'|'.join(sorted(_SETTINGS[kind]))}>"
            )


def _column_index(schema: TableSchema, kind: str, column: str) -> ColumnIndex:
    prefix, options = f"{_PREFIX}{kind}.{column}.", schema.options
    if kind == BLOOM_FILTER:
        items = optional_int_option(options, f"{prefix}items")
        if items is not None and items <= 0:
            raise ConfigError(f"option '{prefix}items' = '{items}': use a number above 0")
        return ColumnIndex(column, kind, items=items, fpp=_fpp(options, f"{prefix}fpp"))
    version = int_option(options, f"{prefix}version", 2)
    if version != 2:
        raise UnsupportedError(f"option '{prefix}version' = '{version}' is not supported; use 2")
    size = size_option(options, f"{prefix}index-block-size", DEFAULT_BLOCK_SIZE)
    return ColumnIndex(column, kind, block_size=size)


def _fpp(options: Mapping[str, str], name: str) -> float:
    try:
        rate = float(options.get(name, DEFAULT_FPP))
    except ValueError:
        rate = -1.0
    if not 0 < rate < 1:
        raise ConfigError(f"option '{name}' = '{options[name]}': use a number between 0 and 1")
    return rate
