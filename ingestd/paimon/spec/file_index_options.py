"""Parse the table options for file indexes.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-file
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.file_index import BITMAP, BLOOM_FILTER, DEFAULT_FPP
from ingestd.paimon.spec.file_index_bitmap import DEFAULT_BLOCK_SIZE, has_bitmap
from ingestd.paimon.spec.hash64 import is_hashable
from ingestd.paimon.spec.option_types import Options, TableOption
from ingestd.paimon.spec.table_schema import TableSchema

_COLUMNS: Mapping[str, TableOption[tuple[str, ...]]] = {
    BLOOM_FILTER: honoured.BLOOM_COLUMNS,
    BITMAP: honoured.BITMAP_COLUMNS,
}
_SETTINGS: Mapping[str, tuple[TableOption[object], ...]] = {
    BLOOM_FILTER: (honoured.BLOOM_ITEMS, honoured.BLOOM_FPP),
    BITMAP: (honoured.BITMAP_VERSION, honoured.BITMAP_BLOCK_SIZE),
}
_FITS = {BLOOM_FILTER: is_hashable, BITMAP: has_bitmap}


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """An index of a column that the table options request; `kind` is the index type.

    `items` is the number of values that a bloom filter is sized for (None: the number in the file),
    `fpp` its false-positive rate, `block_size` the size in bytes of a block of a bitmap index.
    """

    column: str
    kind: str
    items: int | None = None
    fpp: float = DEFAULT_FPP
    block_size: int = DEFAULT_BLOCK_SIZE


def column_indexes(schema: TableSchema) -> tuple[ColumnIndex, ...]:
    """Return the indexes that the options of a table request.

    Raises ConfigError for an invalid option or an unknown column, UnsupportedError for an index
    that is not implemented.
    """
    indexes = []
    for kind in (BLOOM_FILTER, BITMAP):
        columns = list(_columns(schema, kind))
        _check_settings(schema, kind, columns)
        indexes += [_column_index(schema, kind, column) for column in columns]
    return tuple(indexes)


def manifest_threshold(schema: TableSchema) -> int:
    """Return the maximum size in bytes of file indexes that are embedded in the manifest entry.

    Raises ConfigError for an invalid option value.
    """
    return honoured.INDEX_THRESHOLD.of(schema.options)


def _columns(schema: TableSchema, kind: str) -> Iterator[str]:
    name = _COLUMNS[kind].name
    for column in _COLUMNS[kind].of(schema.options):
        if column.endswith("]") and "[" in column and column not in schema.field_names:
            raise UnsupportedError(
                f"option '{name}' = '{schema.options[name]}': indexes of single map keys are not "
                "supported"
            )
        if column not in schema.field_names:
            raise ConfigError(f"option '{name}': unknown column '{column}'")
        if not _FITS[kind](schema.field(column).type):
            raise ConfigError(
                f"option '{name}': column '{column}' of type {schema.field(column).type} cannot "
                f"have an index of type {kind}"
            )
        yield column


def _check_settings(schema: TableSchema, kind: str, columns: list[str]) -> None:
    prefix = _COLUMNS[kind].name.removesuffix("columns")
    expected = {setting.name_for(column) for column in columns for setting in _SETTINGS[kind]}
    for name in schema.options:
        if name.startswith(prefix) and name not in {_COLUMNS[kind].name, *expected}:
            endings = sorted(setting.name.rpartition(".")[2] for setting in _SETTINGS[kind])
            raise ConfigError(
                f"option '{name}': expected {prefix}columns or {prefix}<indexed column>."
                f"<{'|'.join(endings)}>"
            )


def _column_index(schema: TableSchema, kind: str, column: str) -> ColumnIndex:
    options = schema.options
    if kind == BLOOM_FILTER:
        items, fpp = _items(options, column), _rate(options, column)
        return ColumnIndex(column, kind, items=items, fpp=fpp)
    version = honoured.BITMAP_VERSION.of(options, column)
    if version != 2:
        name = honoured.BITMAP_VERSION.name_for(column)
        raise UnsupportedError(f"option '{name}' = '{version}' is not supported; use 2")
    size = honoured.BITMAP_BLOCK_SIZE.of(options, column)
    return ColumnIndex(column, kind, block_size=size)


def _items(options: Options, column: str) -> int | None:
    items = honoured.BLOOM_ITEMS.of(options, column)
    if items is not None and items <= 0:
        name = honoured.BLOOM_ITEMS.name_for(column)
        raise ConfigError(f"option '{name}' = '{items}': use a number above 0")
    return items


def _rate(options: Options, column: str) -> float:
    try:
        rate = honoured.BLOOM_FPP.of(options, column)
    except ConfigError:
        rate = -1.0
    if not 0 < rate < 1:
        name = honoured.BLOOM_FPP.name_for(column)
        raise ConfigError(f"option '{name}' = '{options[name]}': use a number between 0 and 1")
    return rate
