"""Parse the options of a table, and refuse tables that ingestd does not support.

The options themselves are declared in `honoured_options` and `table_options`.

Specification: https://paimon.apache.org/docs/1.4/maintenance/configurations/#coreoptions
https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#fixed-bucket
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.bucket import takes_bucket_keys
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    KEY_PREFIX,
    SYSTEM_COLUMN_NAMES,
    DataField,
    walk_types,
)
from ingestd.paimon.spec.file_index_options import column_indexes, manifest_threshold
from ingestd.paimon.spec.file_options import (
    FileStyle,
    OrcSettings,
    ParquetSettings,
    changelog_style,
    data_file_styles,
    orc_settings,
    parquet_settings,
    refuse_style,
    refuse_zoned_orc,
)
from ingestd.paimon.spec.iceberg_rules import refuse_iceberg
from ingestd.paimon.spec.merge_checks import refuse_functions
from ingestd.paimon.spec.option_types import Access, Options, Support, TableOption
from ingestd.paimon.spec.schema_rules import bucket_number
from ingestd.paimon.spec.table_options import find_option, nearest_option, refuse_unknown_options
from ingestd.paimon.spec.table_schema import TableSchema

_MB = 1024 * 1024
_SYSTEM_STATS_MODE = "truncate(128)"
_NEEDED = {
    "mod": "one INT or BIGINT bucket key",
    "hive": "bucket keys that are numbers, texts, bytes, dates or times",
}


class BucketMode(Enum):
    """The way in which a table assigns rows to buckets.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#data-distribution
    """

    HASH_FIXED = "fixed buckets"
    HASH_DYNAMIC = "dynamic buckets with a hash index"
    KEY_DYNAMIC = "dynamic buckets across partitions"
    BUCKET_UNAWARE = "no buckets"
    POSTPONE = "postponed buckets"


@dataclass(frozen=True, slots=True)
class CoreOptions:
    """The values of table options for readers and writers, with the specification's defaults.

    Most fields are named after their option. `bucket_keys` are by default the trimmed primary key.
    `number_deltas` is whether integers in Parquet files are delta-encoded. `level_styles` has the
    levels with options of their own, `changelog_style` is for changelog files. Sizes are in bytes,
    times in milliseconds. None means that an option without a default is not set.
    """

    bucket: int
    bucket_keys: tuple[str, ...]
    bucket_function: str
    merge_engine: str
    changelog_producer: str
    file_format: str
    file_compression: str
    zstd_level: int
    number_deltas: bool
    parquet: ParquetSettings
    orc: OrcSettings
    target_file_size: int
    stats_modes: Mapping[str, str]
    level_styles: Mapping[int, FileStyle]
    changelog_style: FileStyle
    file_suffix_include_compression: bool
    stats_dense_store: bool
    dynamic_bucket_target_row_num: int
    dynamic_bucket_initial_buckets: int | None
    dynamic_bucket_max_buckets: int
    dynamic_bucket_assigner_parallelism: int | None
    partition_default_name: str
    partition_legacy_name: bool
    manifest_target_file_size: int
    manifest_merge_min_count: int
    manifest_full_compaction_threshold: int
    commit_max_retries: int
    commit_min_retry_wait_ms: int
    commit_max_retry_wait_ms: int
    commit_timeout_ms: int
    data_file_prefix: str
    write_only: bool
    row_tracking: bool

    def stats_mode(self, column: str) -> str:
        """Return the statistics mode of a column: none, counts, truncate(n) or full."""
        if column in SYSTEM_COLUMN_NAMES or column.startswith(KEY_PREFIX):
            return _SYSTEM_STATS_MODE
        return self.stats_modes[column]

    @property
    def dynamic_bucket_assigners(self) -> int:
        """The number of tasks that assign the dynamic buckets of a partition.

        Each task creates a bucket of its own, so this is also the number of buckets that a
        partition with enough keys begins with; it is at most the maximum number of buckets.
        """
        requested = (self.dynamic_bucket_initial_buckets, self.dynamic_bucket_assigner_parallelism)
        wanted = min((count for count in requested if count), default=1)
        most = self.dynamic_bucket_max_buckets
        return min(wanted, most) if most > 0 else wanted

    @property
    def file_extension(self) -> str:
        """The extension of data files, without the dot before it; it ends with the file format."""
        if self.file_suffix_include_compression:
            return f"{self.file_compression}.{self.file_format}"
        return self.file_format

    def at_level(self, level: int) -> "CoreOptions":
        """Return the options with format, compression and statistics for data files of a level."""
        style = self.level_styles.get(level)
        return self if style is None else self._styled(style)

    def for_changelog(self) -> "CoreOptions":
        """Return the options with format, compression and statistics for changelog files."""
        return self._styled(self.changelog_style)

    def _styled(self, style: FileStyle) -> "CoreOptions":
        return replace(
            self,
            file_format=style.file_format,
            file_compression=style.file_compression,
            stats_modes=style.stats_modes,
        )


def core_options(schema: TableSchema) -> CoreOptions:
    """Return the option values of a table. Raises ConfigError for an invalid value."""
    options = schema.options
    styles = data_file_styles(schema)
    style = styles[None]
    return CoreOptions(
        bucket=bucket_number(options),
        bucket_keys=honoured.BUCKET_KEY.of(options) or schema.trimmed_primary_keys,
        bucket_function=honoured.BUCKET_FUNCTION.of(options),
        merge_engine=honoured.MERGE_ENGINE.of(options),
        changelog_producer=honoured.CHANGELOG_PRODUCER.of(options),
        file_format=style.file_format,
        file_compression=style.file_compression,
        zstd_level=honoured.ZSTD_LEVEL.of(options),
        number_deltas=honoured.NUMBER_ENCODING.of(options) == "delta",
        parquet=parquet_settings(options),
        orc=orc_settings(options),
        target_file_size=_target_file_size(schema),
        stats_modes=style.stats_modes,
        level_styles={level: own for level, own in styles.items() if level is not None},
        changelog_style=changelog_style(schema, styles.get(0, style)),
        file_suffix_include_compression=honoured.FILE_SUFFIX_COMPRESSION.of(options),
        stats_dense_store=honoured.STATS_DENSE_STORE.of(options),
        dynamic_bucket_target_row_num=honoured.DYNAMIC_BUCKET_TARGET_ROWS.of(options),
        dynamic_bucket_initial_buckets=honoured.DYNAMIC_BUCKET_INITIAL.of(options),
        dynamic_bucket_max_buckets=honoured.DYNAMIC_BUCKET_MAX.of(options),
        dynamic_bucket_assigner_parallelism=honoured.DYNAMIC_BUCKET_ASSIGNERS.of(options),
        partition_default_name=honoured.PARTITION_DEFAULT_NAME.of(options),
        partition_legacy_name=honoured.PARTITION_LEGACY_NAME.of(options),
        manifest_target_file_size=honoured.MANIFEST_TARGET_SIZE.of(options),
        manifest_merge_min_count=honoured.MANIFEST_MERGE_MIN.of(options),
        manifest_full_compaction_threshold=honoured.MANIFEST_FULL_COMPACTION.of(options),
        commit_max_retries=honoured.COMMIT_MAX_RETRIES.of(options),
        commit_min_retry_wait_ms=honoured.COMMIT_MIN_RETRY_WAIT.of(options),
        commit_max_retry_wait_ms=honoured.COMMIT_MAX_RETRY_WAIT.of(options),
        commit_timeout_ms=honoured.COMMIT_TIMEOUT.of(options),
        data_file_prefix=honoured.DATA_FILE_PREFIX.of(options),
        write_only=honoured.WRITE_ONLY.of(options),
        row_tracking=honoured.ROW_TRACKING.of(options),
    )


def _target_file_size(schema: TableSchema) -> int:
    size = honoured.TARGET_FILE_SIZE.of(schema.options)
    return (128 if schema.primary_keys else 256) * _MB if size is None else size


def bucket_mode(schema: TableSchema) -> BucketMode:
    """Return the way in which a table assigns rows to buckets.

    Raises ConfigError for an invalid number of buckets.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#data-distribution
    """
    number = bucket_number(schema.options)
    if number == -2:
        return BucketMode.POSTPONE
    if number > 0:
        return BucketMode.HASH_FIXED
    if not schema.primary_keys:
        return BucketMode.BUCKET_UNAWARE
    inside = set(schema.partition_keys) <= set(schema.primary_keys)
    return BucketMode.HASH_DYNAMIC if inside else BucketMode.KEY_DYNAMIC


def refuse_unsupported(schema: TableSchema, *, for_write: bool) -> None:
    """Raise UnsupportedError, naming the option or column, if a table is not supported.

    Without `for_write`, only options that affect reading are checked. Unknown options, and options
    that are refused only for new tables, are accepted and have no effect. Raises ConfigError for an
    invalid option value.
    """
    _refuse_values(schema.options, Access.WRITE if for_write else Access.READ)
    for column in schema.fields:
        _refuse_column(column, for_write=for_write)
    if for_write:
        _refuse_place_defaults(schema)
        manifest_threshold(schema)
        column_indexes(schema)
        styles = data_file_styles(schema)
        for style in (*styles.values(), changelog_style(schema, styles[None])):
            refuse_style(style, schema.fields)
            refuse_zoned_orc(style.file_format, schema.fields, schema.options)
        refuse_iceberg(schema)
    refuse_functions(schema)
    _refuse_buckets(schema, for_write)
    _refuse_partition_names(schema)


def refuse_new_options(options: Options) -> None:
    """Validate the options of a new table.

    Raises ConfigError for an unknown option, with the most similar declared name, and
    UnsupportedError for an option or a value that new tables cannot have.
    """
    refuse_unknown_options(options)
    _refuse_values(options, Access.CREATE)


def ignored_options(options: Options) -> dict[str, str]:
    """Return, by name, why given options have no effect in ingestd; others are left out.

    Unknown options, and options refused for new tables only, are among them.
    """
    ignored = {}
    for name, value in options.items():
        option = find_option(name)
        if option is None:
            ignored[name] = f"unknown{nearest_option(name)}"
        elif option.refuses(value, Access.CREATE) or (
            option.support is Support.IGNORED and option.values is None
        ):
            ignored[name] = option.refusal or option.note
    return ignored


def _refuse_values(options: Options, access: Access) -> None:
    for name, value in options.items():
        option = find_option(name)
        if option is not None and option.refuses(value, access):
            raise _refusal(option, name, value)


def _refusal(option: TableOption[object], name: str, value: str) -> UnsupportedError:
    named = sorted(text for text in option.values or () if text)
    remedy = f"supported: {', '.join(named)}" if named else "remove it"
    honoured_option = option.support is Support.HONOURED
    why = option.refusal if honoured_option else option.note
    reason = f": {why}" if why else ""
    limit = " for writing" if option.refused_from is Access.WRITE and not honoured_option else ""
    return UnsupportedError(
        f"option '{name}' = '{value}' is not supported{limit}{reason}; {remedy}"
    )


def _refuse_column(column: DataField, *, for_write: bool) -> None:
    refused = {"BLOB", "VECTOR"} if for_write else {"VECTOR"}
    for t in walk_types(column.type):
        if t.root in refused:
            limit = " for writing" if t.root == "BLOB" else ""
            raise UnsupportedError(
                f"column '{column.name}': data type {t.root} ({column.type}) is not supported"
                f"{limit}"
            )


def _refuse_place_defaults(schema: TableSchema) -> None:
    for column in schema.select([*schema.partition_keys, *honoured.BUCKET_KEY.of(schema.options)]):
        if column.default_value is not None:
            raise UnsupportedError(
                f"column '{column.name}': default value '{column.default_value}' is not supported "
                "for writing, because the column decides where rows are"
            )


def _refuse_buckets(schema: TableSchema, for_write: bool) -> None:
    mode, options = bucket_mode(schema), core_options(schema)
    if not for_write:
        return
    if mode is BucketMode.POSTPONE:
        refuse_postponed(schema)
    if mode is BucketMode.KEY_DYNAMIC:
        refuse_across_partitions(schema)
    if mode in (BucketMode.HASH_FIXED, BucketMode.POSTPONE):
        refuse_bucket_keys(schema, options.bucket_function, options.bucket_keys)


def _refuse_partition_names(schema: TableSchema) -> None:
    for column in schema.select(schema.partition_keys):
        if column.type.root in BINARY_ROOTS:
            raise UnsupportedError(
                f"partition column '{column.name}': data type {column.type} is not supported: "
                "its values have no directory name"
            )


def refuse_bucket_keys(schema: TableSchema, function: str, keys: Sequence[str]) -> None:
    """Raise UnsupportedError if a bucket function does not support the types of the bucket key.

    `function` is a value of `bucket-function.type`, and `keys` are the columns of the bucket key.
    """
    columns = schema.select(keys)
    if not takes_bucket_keys(function, [column.type for column in columns]):
        named = ", ".join(f"{column.name} {column.type}" for column in columns)
        raise UnsupportedError(
            f"option 'bucket-function.type' = '{function}' needs "
            f"{_NEEDED.get(function, 'another name')}, not {named}"
        )


def refuse_across_partitions(schema: TableSchema) -> None:
    """Raise UnsupportedError for options that do not work in a table with keys across partitions.

    With these options, `rowkind.field` and (for deduplicate) `ignore-delete`, the old row of a key
    would not be deleted when the key moves to another partition.
    """
    options = schema.options
    if honoured.ROWKIND_FIELD.of(options):
        raise _across(schema, honoured.ROWKIND_FIELD)
    if honoured.MERGE_ENGINE.of(options) == "deduplicate" and honoured.IGNORE_DELETE.of(options):
        raise _across(schema, honoured.IGNORE_DELETE)


def refuse_postponed(schema: TableSchema) -> None:
    """Raise UnsupportedError for options that are not supported with postponed buckets."""
    producer = honoured.CHANGELOG_PRODUCER.of(schema.options)
    if producer == "input":
        raise UnsupportedError(
            "option 'changelog-producer' = 'input' is not supported with 'bucket' = '-2': rows "
            "that wait for their bucket have no changelog yet; set 'lookup', or a number of buckets"
        )


def _across(schema: TableSchema, option: TableOption[object]) -> UnsupportedError:
    name = option.given(schema.options) or option.name
    missing = sorted(set(schema.partition_keys) - set(schema.primary_keys))
    return UnsupportedError(
        f"option '{name}' = '{schema.options[name]}' is not supported where keys move between "
        f"partitions ('bucket' = '-1', primary key without partition keys {missing}): the row "
        "that moved could not be deleted; add them to the primary key or remove the option"
    )
