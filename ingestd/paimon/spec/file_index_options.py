"""Parse the table options for file indexes.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-file
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataType
from ingestd.paimon.spec.file_index import BITMAP, BLOOM_FILTER, BSI, DEFAULT_FPP, RANGE_BITMAP
from ingestd.paimon.spec.file_index_bitmap import BITMAP_VERSIONS, DEFAULT_BLOCK_SIZE, has_bitmap
from ingestd.paimon.spec.file_index_bsi import has_bsi
from ingestd.paimon.spec.file_index_range import default_chunk_size, has_range_bitmap
from ingestd.paimon.spec.hash64 import is_hashable
from ingestd.paimon.spec.option_types import Options, TableOption
from ingestd.paimon.spec.table_schema import TableSchema


@dataclass(frozen=True, slots=True)
class _Kind:
    """The options of a type of index, and whether columns of a type can have such an index."""

    columns: TableOption[tuple[str, ...]]
    settings: tuple[TableOption[object], ...]
    fits: Callable[[DataType], bool]


_KINDS: Mapping[str, _Kind] = {
    BLOOM_FILTER: _Kind(
        honoured.BLOOM_COLUMNS, (honoured.BLOOM_ITEMS, honoured.BLOOM_FPP), is_hashable
    ),
    BITMAP: _Kind(
        honoured.BITMAP_COLUMNS, (honoured.BITMAP_VERSION, honoured.BITMAP_BLOCK_SIZE), has_bitmap
    ),
    BSI: _Kind(honoured.BSI_COLUMNS, (), has_bsi),
    RANGE_BITMAP: _Kind(
        honoured.RANGE_BITMAP_COLUMNS, (honoured.RANGE_BITMAP_CHUNK_SIZE,), has_range_bitmap
    ),
}


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """An index of a column that the table options request; `kind` is the index type.

    With `key`, the values are those of a key of a MAP column. `items` is the number of values that
    a bloom filter is sized for (None: the number in the file), `fpp` its false-positive rate,
    `block_size` the size in bytes of a block of a bitmap index or of a chunk of a range-bitmap
    index, `version` that of a bitmap index.
    """

    column: str
    kind: str
    key: str | None = None
    items: int | None = None
    fpp: float = DEFAULT_FPP
    block_size: int = DEFAULT_BLOCK_SIZE
    version: int = 2

    @property
    def name(self) -> str:
        """The name of the indexed values in the container: `column` or `column[key]`."""
        return self.column if self.key is None else f"{self.column}[{self.key}]"


def column_indexes(schema: TableSchema) -> tuple[ColumnIndex, ...]:
    """Return the indexes that the options of a table request.

    Raises ConfigError for an invalid option, an unknown column, or one that cannot have the index.
    """
    indexes = []
    for kind in _KINDS:
        found = list(_columns(schema, kind))
        _check_settings(schema, kind, [index for index, _ in found])
        indexes += [_with_settings(schema.options, index, t) for index, t in found]
    return tuple(indexes)


def manifest_threshold(schema: TableSchema) -> int:
    """Return the maximum size in bytes of file indexes that are embedded in the manifest entry."""
    return honoured.INDEX_THRESHOLD.of(schema.options)


def _columns(schema: TableSchema, kind: str) -> Iterator[tuple[ColumnIndex, DataType]]:
    """Yield the indexes of a type without their settings, each with the type of its values."""
    option = _KINDS[kind].columns
    for name in option.of(schema.options):
        column, key = name, None
        if name.endswith("]") and "[" in name and name not in schema.field_names:
            column, _, key = name.removesuffix("]").partition("[")
        if column not in schema.field_names:
            raise ConfigError(f"option '{option.name}': unknown column '{column}'")
        t = schema.field(column).type
        if key is not None:
            t = _value_type(option.name, name, t)
        if not _KINDS[kind].fits(t):
            raise ConfigError(
                f"option '{option.name}': column '{name}' of type {t} cannot have an index of "
                f"type {kind}"
            )
        yield ColumnIndex(column, kind, key), t


def _value_type(option: str, name: str, t: DataType) -> DataType:
    """Return the type of the values of a MAP. Raises ConfigError for keys that are not texts."""
    if t.root != "MAP" or t.key is None or t.value is None or t.key.root not in CHARACTER_ROOTS:
        raise ConfigError(
            f"option '{option}': '{name}' is a key of a column of type {t}, not of a MAP whose "
            "keys are texts"
        )
    return t.value


def _check_settings(schema: TableSchema, kind: str, indexes: list[ColumnIndex]) -> None:
    option, settings = _KINDS[kind].columns, _KINDS[kind].settings
    prefix = option.name.removesuffix("columns")
    named = {name for index in indexes for name in (index.name, index.column)}
    expected = {setting.name_for(name) for name in named for setting in settings}
    for name in schema.options:
        if name.startswith(prefix) and name not in {option.name, *expected}:
            endings = sorted(setting.name.rpartition(".")[2] for setting in settings)
            raise ConfigError(
                f"option '{name}': expected {prefix}columns"
                + (f" or {prefix}<indexed column>.<{'|'.join(endings)}>" if endings else "")
            )


def _with_settings(options: Options, index: ColumnIndex, t: DataType) -> ColumnIndex:
    """Return an index with its settings; those of a key come before those of its column."""
    column, kind, key = index.column, index.kind, index.key

    def name(setting: TableOption[object]) -> str:
        return index.name if setting.name_for(index.name) in options else column

    if kind == BLOOM_FILTER:
        items = _items(options, name(honoured.BLOOM_ITEMS))
        fpp = _rate(options, name(honoured.BLOOM_FPP))
        return ColumnIndex(column, kind, key, items=items, fpp=fpp)
    if kind == BITMAP:
        version = _version(options, name(honoured.BITMAP_VERSION))
        size = honoured.BITMAP_BLOCK_SIZE.of(options, name(honoured.BITMAP_BLOCK_SIZE))
        return ColumnIndex(column, kind, key, block_size=size, version=version)
    if kind == RANGE_BITMAP:
        given = honoured.RANGE_BITMAP_CHUNK_SIZE.of(options, name(honoured.RANGE_BITMAP_CHUNK_SIZE))
        size = default_chunk_size(t) if given is None else given
        return ColumnIndex(column, kind, key, block_size=size)
    return index


def _version(options: Options, column: str) -> int:
    version = honoured.BITMAP_VERSION.of(options, column)
    if version not in BITMAP_VERSIONS:
        name = honoured.BITMAP_VERSION.name_for(column)
        raise ConfigError(f"option '{name}' = '{version}': the versions are 1 and 2")
    return version


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
