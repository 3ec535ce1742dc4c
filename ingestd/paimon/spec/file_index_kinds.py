"""The kinds of file indexes: the options of each, and how it is encoded and decoded.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-file
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.file_index_bitmap import (
    BITMAP_VERSIONS,
    DEFAULT_BLOCK_SIZE,
    decode_bitmap_index,
    encode_bitmap_index,
    has_bitmap,
)
from ingestd.paimon.spec.file_index_bloom import (
    DEFAULT_FPP,
    decode_bloom_index,
    encode_bloom_index,
)
from ingestd.paimon.spec.file_index_bsi import decode_bsi_index, encode_bsi_index, has_bsi
from ingestd.paimon.spec.file_index_cells import DecodedIndex, ExactIndex, ValueIndex
from ingestd.paimon.spec.file_index_range import (
    decode_range_bitmap,
    default_chunk_size,
    encode_range_bitmap,
    has_range_bitmap,
)
from ingestd.paimon.spec.hash64 import is_hashable
from ingestd.paimon.spec.option_types import Options, TableOption


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """An index of a column that the table options request; `kind` is the index type.

    With `key`, the indexed values are the values of this key in a MAP column. `items` is the number
    of values that a bloom filter is sized for (None: the number in the file), `fpp` its
    false-positive rate, `block_size` the size in bytes of a block of a bitmap index or of a chunk
    of a range-bitmap index, `version` the version of a bitmap index.
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

    def option_column(self, options: Options, setting: TableOption[object]) -> str:
        """Return the column name by which the option `setting` of this index is looked up.

        It is `column[key]` if `options` has an option of this name, else `column`.
        """
        return self.name if setting.name_for(self.name) in options else self.column


Decode = Callable[[bytes, DataType, str], DecodedIndex | None]


@dataclass(frozen=True, slots=True)
class IndexKind:
    """A kind of index.

    `columns` is the option with its columns, `settings` are its options for a column, and `fits`
    returns whether columns of a type can have such an index. `configure` returns an index of values
    of a type with its settings, and raises ConfigError for invalid ones. `encode` returns the bytes
    of an index of a column, or None if it cannot hold the values. `decode` returns None for a type
    or a layout that it does not support, and raises FormatError, naming the source that it is
    given, for a damaged index.
    """

    columns: TableOption[tuple[str, ...]]
    settings: tuple[TableOption[object], ...]
    fits: Callable[[DataType], bool]
    configure: Callable[[ColumnIndex, Options, DataType], ColumnIndex]
    encode: Callable[[Column, DataType, ColumnIndex], bytes | None]
    decode: Decode


def _exact(decode: Callable[[bytes, DataType, str], ValueIndex | None]) -> Decode:
    """Return a decoder of indexes from which all values of a column follow."""

    def decode_exact(data: bytes, t: DataType, source: str) -> DecodedIndex | None:
        index = decode(data, t, source)
        return None if index is None else ExactIndex(index)

    return decode_exact


def _configure_bloom(index: ColumnIndex, options: Options, _: DataType) -> ColumnIndex:
    items = _items(options, index.option_column(options, honoured.BLOOM_ITEMS))
    fpp = _rate(options, index.option_column(options, honoured.BLOOM_FPP))
    return replace(index, items=items, fpp=fpp)


def _configure_bitmap(index: ColumnIndex, options: Options, _: DataType) -> ColumnIndex:
    version = _version(options, index.option_column(options, honoured.BITMAP_VERSION))
    block_size = honoured.BITMAP_BLOCK_SIZE
    size = block_size.of(options, index.option_column(options, block_size))
    return replace(index, block_size=size, version=version)


def _configure_range(index: ColumnIndex, options: Options, t: DataType) -> ColumnIndex:
    chunk_size = honoured.RANGE_BITMAP_CHUNK_SIZE
    size = chunk_size.of(options, index.option_column(options, chunk_size))
    return replace(index, block_size=default_chunk_size(t) if size is None else size)


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


INDEX_KINDS: Mapping[str, IndexKind] = {
    "bloom-filter": IndexKind(
        honoured.BLOOM_COLUMNS,
        (honoured.BLOOM_ITEMS, honoured.BLOOM_FPP),
        is_hashable,
        _configure_bloom,
        lambda column, t, index: encode_bloom_index(column, t, index.items, index.fpp),
        decode_bloom_index,
    ),
    "bitmap": IndexKind(
        honoured.BITMAP_COLUMNS,
        (honoured.BITMAP_VERSION, honoured.BITMAP_BLOCK_SIZE),
        has_bitmap,
        _configure_bitmap,
        lambda column, t, index: encode_bitmap_index(column, t, index.block_size, index.version),
        _exact(decode_bitmap_index),
    ),
    "bsi": IndexKind(
        honoured.BSI_COLUMNS,
        (),
        has_bsi,
        lambda index, options, t: index,
        lambda column, t, index: encode_bsi_index(column, t),
        _exact(decode_bsi_index),
    ),
    "range-bitmap": IndexKind(
        honoured.RANGE_BITMAP_COLUMNS,
        (honoured.RANGE_BITMAP_CHUNK_SIZE,),
        has_range_bitmap,
        _configure_range,
        lambda column, t, index: encode_range_bitmap(column, t, index.block_size),
        _exact(decode_range_bitmap),
    ),
}
"""All kinds of indexes, by the type in the container of a data file and in the options."""
