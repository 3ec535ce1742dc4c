"""Options of the files of a table by level: format, compression and statistics.

`CoreOptions.at_level` and `CoreOptions.for_changelog` return the options of one kind of file.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#data-file
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.column_names import file_name_problem, nested_name_problem
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
    walk_types,
)
from ingestd.paimon.spec.option_types import Options, TableOption
from ingestd.paimon.spec.table_schema import TableSchema

COMPRESSIONS: Mapping[str, Mapping[str, str]] = {
    "parquet": {
        "zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "lz4": "lz4",
        "lz4_raw": "lz4", "none": "none", "uncompressed": "none",
    },
    "orc": {"zstd": "zstd", "snappy": "snappy", "lz4": "lz4", "zlib": "zlib",
            "none": "uncompressed"},
    "avro": {"zstd": "zstandard", "zstandard": "zstandard", "deflate": "deflate",
             "null": "null", "bzip2": "bzip2", "snappy": "snappy"},
}  # fmt: skip
"""File format -> compression by its name in table options -> its name in the library."""
_WITHOUT_JAVA = frozenset({("parquet", "brotli"), ("avro", "xz")})
"""Compressions that could be written here, but that Paimon's Java distribution cannot read."""
_TITLES = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}
_ORC_MEMORY_BLOCK = 1 << 16
_MOST_ORC_BLOCKS = 127
"""The length of a compressed chunk is stored in 23 bits."""
ORC_ZONE_OPTION = honoured.ORC_LEGACY_LTZ.name
"""Unless it is `false`, ORC files store TIMESTAMP WITH LOCAL TIME ZONE shifted by the time zone of
the writing process, which the file does not record.
"""
_FORMAT_OPTIONS = (honoured.FILE_FORMAT, honoured.FILE_FORMAT_PER_LEVEL, honoured.CHANGELOG_FORMAT)

_STATS_MODE = re.compile(r"none|counts|full|truncate\([1-9]\d*\)")
_AVRO_TIMESTAMP_PRECISION = 6
_AVRO_TIME_PRECISION = 3


def library_compression(file_format: str, compression: str) -> str:
    """Return the name of a compression in the library that writes a file format.

    Raises UnsupportedError if the format does not support the compression.
    """
    known = COMPRESSIONS[file_format]
    if compression not in known:
        raise UnsupportedError(
            f"'file.compression' = '{compression}' is not supported for {_TITLES[file_format]}; "
            f"use one of {sorted(known)}"
        )
    return known[compression]


@dataclass(frozen=True, slots=True)
class FileStyle:
    """Format, compression and statistics of the files of one level, or of changelog files.

    `stats_modes` has the statistics mode of each column by name.
    """

    file_format: str
    file_compression: str
    stats_modes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ParquetSettings:
    """The settings of Parquet files; sizes are in bytes.

    None means that the option is not set. `compression` and `zstd_level` take precedence over
    `file.compression` and `file.compression.zstd-level`. `dictionary` enables or disables
    dictionaries for all columns.
    """

    compression: str | None
    zstd_level: int | None
    row_group_size: int | None
    page_size: int
    dictionary: bool | None
    dictionary_size: int


@dataclass(frozen=True, slots=True)
class OrcSettings:
    """The settings of ORC files; sizes are in bytes.

    `index_stride` is the number of rows between two entries of the row index.
    `dictionary_threshold` is the largest share of distinct texts with which a column is
    dictionary-encoded.
    """

    stripe_size: int
    compression_block_size: int
    index_stride: int
    dictionary_threshold: float


def parquet_settings(options: Options) -> ParquetSettings:
    """Return the Parquet settings. Raises ConfigError for an invalid option value."""
    return ParquetSettings(
        compression=honoured.PARQUET_COMPRESSION.of(options) or None,
        zstd_level=honoured.PARQUET_ZSTD_LEVEL.of(options),
        row_group_size=honoured.BLOCK_SIZE.of(options) or honoured.PARQUET_BLOCK_SIZE.of(options),
        page_size=honoured.PARQUET_PAGE_SIZE.of(options),
        dictionary=honoured.PARQUET_DICTIONARY.of(options),
        dictionary_size=honoured.PARQUET_DICTIONARY_SIZE.of(options),
    )


def orc_settings(options: Options) -> OrcSettings:
    """Return the ORC settings. Raises ConfigError for an invalid option value."""
    return OrcSettings(
        stripe_size=honoured.BLOCK_SIZE.of(options) or honoured.ORC_STRIPE_SIZE.of(options),
        compression_block_size=_compression_block_size(options),
        index_stride=honoured.ORC_INDEX_STRIDE.of(options),
        dictionary_threshold=honoured.ORC_DICTIONARY_THRESHOLD.of(options),
    )


def _compression_block_size(options: Options) -> int:
    """Return the compression block size in bytes, rounded up to 64 KiB and limited to 8128 KiB.

    With other sizes, writing fails; with larger sizes, the process would crash.
    """
    blocks = -(-honoured.ORC_COMPRESS_SIZE.of(options) // _ORC_MEMORY_BLOCK)
    return min(max(blocks, 1), _MOST_ORC_BLOCKS) * _ORC_MEMORY_BLOCK


def data_file_styles(schema: TableSchema) -> dict[int | None, FileStyle]:
    """Return the file style of each level that has options of its own, by level.

    The key None has the style of all other levels. Raises ConfigError for an invalid option value.
    """
    options = schema.options
    formats = _per_level(options, honoured.FILE_FORMAT_PER_LEVEL)
    compressions = _per_level(options, honoured.FILE_COMPRESSION_PER_LEVEL)
    modes = _per_level(options, honoured.STATS_MODE_PER_LEVEL)
    for mode in modes.values():
        _checked_mode(honoured.STATS_MODE_PER_LEVEL.name, mode)
    general = _checked_mode(honoured.STATS_MODE.name, honoured.STATS_MODE.of(options))
    file_format, compression = (
        honoured.FILE_FORMAT.of(options),
        honoured.FILE_COMPRESSION.of(options),
    )
    levels: set[int | None] = {None, *formats, *compressions, *modes}
    return {
        level: FileStyle(
            formats.get(level, file_format),
            compressions.get(level, compression),
            _stats_modes(schema, modes.get(level, general)),
        )
        for level in levels
    }


def changelog_style(schema: TableSchema, base: FileStyle) -> FileStyle:
    """Return the style of changelog files; `base` provides the defaults.

    Raises ConfigError for an invalid option value.
    """
    options = schema.options
    mode = _stats_mode(honoured.CHANGELOG_STATS_MODE, options)
    return FileStyle(
        honoured.CHANGELOG_FORMAT.of(options) or base.file_format,
        honoured.CHANGELOG_COMPRESSION.of(options) or base.file_compression,
        base.stats_modes if mode is None else _stats_modes(schema, mode),
    )


def _per_level(options: Options, option: TableOption[str]) -> dict[int | None, str]:
    """Return the values of an option such as `0:avro,5:orc` by level."""
    text, by_level = option.of(options), dict[int | None, str]()
    for pair in filter(None, map(str.strip, text.split(","))):
        level, colon, value = pair.partition(":")
        if not (colon and value.strip() and level.strip().isdecimal()):
            raise ConfigError(
                f"option '{option.name}' = '{text}': write it like '0:avro,5:parquet'"
            )
        by_level[int(level)] = value.strip().lower()
    return by_level


def _stats_modes(schema: TableSchema, default: str) -> Mapping[str, str]:
    """Return the statistics mode of each column: its own or, if it has none, `default`.

    For columns after the first N, where N is `metadata.stats-keep-first-n-columns`, the default is
    "none".
    """
    kept = honoured.STATS_FIRST_COLUMNS.of(schema.options)
    modes = {}
    for i, name in enumerate(schema.field_names):
        own = _stats_mode(honoured.COLUMN_STATS_MODE, schema.options, name)
        modes[name] = own or (default if kept < 0 or i < kept else "none")
    return modes


def _stats_mode(
    option: TableOption[str | None], options: Options, column: str | None = None
) -> str | None:
    mode = option.of(options, column)
    if mode is None:
        return None
    return _checked_mode(option.name if column is None else option.name_for(column), mode)


def _checked_mode(name: str, mode: str) -> str:
    if _STATS_MODE.fullmatch(mode) is None:
        raise ConfigError(
            f"option '{name}' = '{mode}': use none, counts, full or truncate(16) with any length"
        )
    return mode


def refuse_style(style: FileStyle, fields: tuple[DataField, ...]) -> None:
    """Raise UnsupportedError if ingestd cannot write `fields` to files of a style.

    The message names the option or the column.
    """
    known = COMPRESSIONS.get(style.file_format)
    if known is None:
        raise UnsupportedError(
            f"file format '{style.file_format}' is not supported; set 'file.format' (and "
            f"'file.format.per.level', 'changelog-file.format') to one of {sorted(COMPRESSIONS)}"
        )
    if (style.file_format, style.file_compression) in _WITHOUT_JAVA:
        raise UnsupportedError(
            f"option 'file.compression' = '{style.file_compression}' is not supported for "
            f"{style.file_format}: Paimon's Java readers lack it; use one of {sorted(known)}"
        )
    if style.file_compression not in known:
        raise UnsupportedError(
            f"option 'file.compression' = '{style.file_compression}' is not supported for "
            f"{style.file_format}; use one of {sorted(known)}"
        )
    for column in fields:
        problem = file_name_problem(column.name, style.file_format)
        problem = problem or nested_name_problem(column.type, style.file_format)
        if problem is not None:
            raise UnsupportedError(
                f"column '{column.name}' {problem}; rename it, or set 'file.format' to 'parquet'"
            )
        for t in walk_types(column.type):
            if not _can_hold(style.file_format, t):
                raise UnsupportedError(
                    f"column '{column.name}': files of format {style.file_format} have no data "
                    f"type {t}; set 'file.format' to 'parquet'"
                )


def with_orc_zone(options: Options) -> dict[str, str]:
    """Return the options of a new table, with an option for timestamps if a format option is ORC.

    With this option, `orc.timestamp-ltz.legacy.type` = false, timestamps in ORC files do not depend
    on a time zone. A value that `options` already has is kept.
    """
    uses_orc = any("orc" in (option.of(options) or "").lower() for option in _FORMAT_OPTIONS)
    return {ORC_ZONE_OPTION: "false", **options} if uses_orc else dict(options)


def refuse_zoned_orc(file_format: str, fields: Sequence[DataField], options: Options) -> None:
    """Raise UnsupportedError, naming a column whose ORC values depend on the writer's time zone.

    Such a column is a TIMESTAMP WITH LOCAL TIME ZONE, unless `orc.timestamp-ltz.legacy.type` is
    false. Nothing is checked if `file_format` is not "orc".
    """
    if file_format != "orc" or not honoured.ORC_LEGACY_LTZ.of(options):
        return
    for column in fields:
        if any(t.root == "TIMESTAMP_LTZ" for t in walk_types(column.type)):
            raise UnsupportedError(
                f"column '{column.name}': ORC files of a table without '{ORC_ZONE_OPTION}' = "
                "'false' hold TIMESTAMP WITH LOCAL TIME ZONE shifted by the time zone of their "
                "writer; set it to 'false' if all their writers ran in UTC, else rewrite the table "
                "as Parquet with the engine that wrote it"
            )


def _can_hold(file_format: str, t: DataType) -> bool:
    if t.root == "VARIANT":
        return file_format == "parquet"
    if file_format != "avro":
        return True
    if t.root == "MULTISET":
        # Java stores a MULTISET of another element type as an array, and reads it as an ARRAY.
        return t.element is not None and t.element.root in CHARACTER_ROOTS
    if t.root in TIMESTAMP_ROOTS:
        return (t.precision or 0) <= _AVRO_TIMESTAMP_PRECISION
    return t.root != "TIME" or (t.precision or 0) <= _AVRO_TIME_PRECISION
