"""Table options as typed values, and the refusal of tables that ingestd cannot keep right.

The tables of names behind the refusal live in `option_rules`.

Specification: https://paimon.apache.org/docs/1.4/maintenance/configurations/
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec import option_rules
from ingestd.paimon.spec.bucket_rules import (
    refuse_across_partitions,
    refuse_bucket_keys,
    refuse_postponed,
)
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
    changelog_style,
    data_file_styles,
    refuse_style,
    refuse_zoned_orc,
)
from ingestd.paimon.spec.merge_checks import refuse_functions
from ingestd.paimon.spec.option_values import (
    bool_option,
    int_option,
    millis_option,
    optional_int_option,
    size_option,
)
from ingestd.paimon.spec.paths import DEFAULT_PARTITION_NAME
from ingestd.paimon.spec.schema_rules import bucket_key_names, bucket_number
from ingestd.paimon.spec.table_schema import TableSchema

_MB = 1024 * 1024
_REWRITE_SIZE = "manifest.full-compaction-threshold-size"
_SYSTEM_STATS_MODE = "truncate(128)"
_UNSUPPORTED_ROOTS = frozenset({"BLOB", "VECTOR"})


class BucketMode(Enum):
    """How the bucket of a row is found.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/
    """

    HASH_FIXED = "fixed buckets"
    HASH_DYNAMIC = "dynamic buckets with a hash index"
    KEY_DYNAMIC = "dynamic buckets across partitions"
    BUCKET_UNAWARE = "no buckets"
    POSTPONE = "postponed buckets"


@dataclass(frozen=True, slots=True)
class CoreOptions:
    """The options that ingestd honours, with the defaults of the specification.

    Sizes in bytes, times in milliseconds, None where an option without default is not given.
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

    def stats_mode(self, column: str) -> str:
        """none, counts, truncate(n) or full: what statistics of a column are kept."""
        if column in SYSTEM_COLUMN_NAMES or column.startswith(KEY_PREFIX):
            return _SYSTEM_STATS_MODE
        return self.stats_modes[column]

    @property
    def dynamic_bucket_assigners(self) -> int:
        """How many assigners give the new keys of a partition their dynamic buckets.

        That is also how many buckets a partition begins with, if it gets enough keys; so there
        are no more assigners than there may be buckets.
        """
        asked = (self.dynamic_bucket_initial_buckets, self.dynamic_bucket_assigner_parallelism)
        wanted = min((one for one in asked if one), default=1)
        most = self.dynamic_bucket_max_buckets
        return min(wanted, most) if most > 0 else wanted

    @property
    def file_extension(self) -> str:
        """What follows the first dot of a data file's name."""
        if self.file_suffix_include_compression:
            return f"{self.file_compression}.{self.file_format}"
        return self.file_format

    def at_level(self, level: int) -> "CoreOptions":
        """The options for data files of a level, which may have a format of their own."""
        style = self.level_styles.get(level)
        return self if style is None else self._styled(style)

    def for_changelog(self) -> "CoreOptions":
        """The options for changelog files."""
        return self._styled(self.changelog_style)

    def _styled(self, style: FileStyle) -> "CoreOptions":
        return replace(
            self,
            file_format=style.file_format,
            file_compression=style.file_compression,
            stats_modes=style.stats_modes,
        )


def core_options(schema: TableSchema) -> CoreOptions:
    """The options of a table; ConfigError names one whose value cannot be understood."""
    options = schema.options
    number, flag = partial(int_option, options), partial(bool_option, options)
    size, optional = partial(size_option, options), partial(optional_int_option, options)
    styles = data_file_styles(schema)
    style = styles[None]
    return CoreOptions(
        bucket=bucket_number(options),
        bucket_keys=bucket_key_names(options) or schema.trimmed_primary_keys,
        bucket_function=options.get("bucket-function.type", "default").lower(),
        merge_engine=options.get("merge-engine", "deduplicate").lower(),
        changelog_producer=options.get("changelog-producer", "none").strip().lower(),
        file_format=style.file_format,
        file_compression=style.file_compression,
        zstd_level=number("file.compression.zstd-level", 1),
        number_deltas=options.get("ingestd.number-encoding", "").strip().lower() == "delta",
        target_file_size=size("target-file-size", (128 if schema.primary_keys else 256) * _MB),
        stats_modes=style.stats_modes,
        level_styles={level: own for level, own in styles.items() if level is not None},
        changelog_style=changelog_style(schema, styles.get(0, style)),
        file_suffix_include_compression=flag("file.suffix.include.compression", False),
        stats_dense_store=flag("metadata.stats-dense-store", True),
        dynamic_bucket_target_row_num=number("dynamic-bucket.target-row-num", 2_000_000),
        dynamic_bucket_initial_buckets=optional("dynamic-bucket.initial-buckets"),
        dynamic_bucket_max_buckets=number("dynamic-bucket.max-buckets", -1),
        dynamic_bucket_assigner_parallelism=optional("dynamic-bucket.assigner-parallelism"),
        partition_default_name=options.get("partition.default-name", DEFAULT_PARTITION_NAME),
        partition_legacy_name=flag("partition.legacy-name", True),
        manifest_target_file_size=size("manifest.target-file-size", 8 * _MB),
        manifest_merge_min_count=number("manifest.merge-min-count", 30),
        manifest_full_compaction_threshold=size(_REWRITE_SIZE, 16 * _MB),
        commit_max_retries=number("commit.max-retries", 10),
        commit_min_retry_wait_ms=millis_option(options, "commit.min-retry-wait", 10),
        commit_max_retry_wait_ms=millis_option(options, "commit.max-retry-wait", 10_000),
        commit_timeout_ms=millis_option(options, "commit.timeout", 600_000),
        data_file_prefix=options.get("data-file.prefix", "data-"),
        write_only=flag("write-only", False),
    )


def bucket_mode(schema: TableSchema) -> BucketMode:
    """How rows of the table find their bucket.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/
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
    """UnsupportedError, naming the option or column, if the table cannot be kept right here.

    A table that passes with `for_write` false can be read: merged rows as other readers see
    them. Writing refuses in addition every option of which nothing is known.
    """
    for name, value in schema.options.items():
        _refuse_value(name, value, for_write)
    for name, value in schema.options.items():
        _refuse_name(name, value, for_write)
    for column in schema.fields:
        _refuse_column(column)
    if for_write:
        _refuse_place_defaults(schema)
        manifest_threshold(schema)
        column_indexes(schema)
        styles = data_file_styles(schema)
        for style in (*styles.values(), changelog_style(schema, styles[None])):
            refuse_style(style, schema.fields)
            refuse_zoned_orc(style.file_format, schema.fields, schema.options)
    refuse_functions(schema)
    _refuse_buckets(schema, for_write)
    _refuse_partition_names(schema)


def _refuse_value(name: str, value: str, for_write: bool) -> None:
    supported = option_rules.SUPPORTED_VALUES.get(name)
    if supported is None and for_write:
        supported = option_rules.WRITER_SUPPORTED_VALUES.get(name)
    if supported is not None and value.strip().lower() not in supported:
        raise UnsupportedError(_refusal(name, value, supported))


def _refuse_name(name: str, value: str, for_write: bool) -> None:
    if _is_unknown_field_option(name):
        raise UnsupportedError(
            f"option '{name}' = '{value}' is not supported: how it changes the merging of rows is "
            "not implemented"
        )
    if for_write and not _is_known(name):
        raise UnsupportedError(
            f"option '{name}' = '{value}' is not supported for writing: what it asks of a writer "
            "is not implemented; remove it from the table"
        )


def _is_unknown_field_option(name: str) -> bool:
    return (
        name.startswith(option_rules.FIELDS_PREFIX)
        and name not in option_rules.HONOURED_OPTIONS
        and not name.endswith(option_rules.FIELD_SUFFIXES)
    )


def _is_known(name: str) -> bool:
    return (
        name in option_rules.SUPPORTED_VALUES
        or name in option_rules.WRITER_SUPPORTED_VALUES
        or name in option_rules.HONOURED_OPTIONS
        or name in option_rules.HARMLESS_OPTIONS
        or name.startswith(option_rules.KNOWN_PREFIXES)
    )


def _refusal(name: str, value: str, supported: frozenset[str]) -> str:
    named = sorted(text for text in supported if text)
    remedy = f"supported: {', '.join(named)}" if named else "the option must not be set"
    return f"option '{name}' = '{value}' is not supported; {remedy}"


def _refuse_column(column: DataField) -> None:
    for t in walk_types(column.type):
        if t.root in _UNSUPPORTED_ROOTS:
            raise UnsupportedError(
                f"column '{column.name}': data type {t.root} ({column.type}) is not supported"
            )


def _refuse_place_defaults(schema: TableSchema) -> None:
    for column in schema.select([*schema.partition_keys, *bucket_key_names(schema.options)]):
        if column.default_value is not None:
            raise UnsupportedError(
                f"column '{column.name}': default value '{column.default_value}' is not supported "
                "for writing, because the column decides where rows lie"
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
