"""Table options as typed values, and the refusal of tables that ingestd cannot keep right.

The tables of names behind the refusal live in `option_rules`. Specification: Schema (options).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec import option_rules
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    KEY_PREFIX,
    SYSTEM_COLUMN_NAMES,
    TIMESTAMP_ROOTS,
    DataField,
    walk_types,
)
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
_SYSTEM_STATS_MODE = "truncate(128)"
_STATS_MODE = re.compile(r"none|counts|full|truncate\([1-9]\d*\)")
_UNSUPPORTED_ROOTS = frozenset({"VARIANT", "BLOB", "VECTOR", "MULTISET"})
_MAX_TIMESTAMP_PRECISION = 6


class BucketMode(Enum):
    """How the bucket of a row is found. Specification: Bucket."""

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
    target_file_size: int
    stats_modes: Mapping[str, str]
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
    data_file_prefix: str
    write_only: bool

    def stats_mode(self, column: str) -> str:
        """none, counts, truncate(n) or full: what statistics of a column are kept."""
        if column in SYSTEM_COLUMN_NAMES or column.startswith(KEY_PREFIX):
            return _SYSTEM_STATS_MODE
        return self.stats_modes[column]


def core_options(schema: TableSchema) -> CoreOptions:
    """The options of a table; ConfigError names one whose value cannot be understood."""
    options = schema.options
    target_size = (128 if schema.primary_keys else 256) * _MB
    return CoreOptions(
        bucket=bucket_number(options),
        bucket_keys=bucket_key_names(options) or schema.trimmed_primary_keys,
        bucket_function=options.get("bucket-function.type", "default").lower(),
        merge_engine=options.get("merge-engine", "deduplicate").lower(),
        changelog_producer=options.get("changelog-producer", "none").lower(),
        file_format=options.get("file.format", "parquet").lower(),
        file_compression=options.get("file.compression", "zstd").lower(),
        zstd_level=int_option(options, "file.compression.zstd-level", 1),
        target_file_size=size_option(options, "target-file-size", target_size),
        stats_modes=_stats_modes(schema),
        stats_dense_store=bool_option(options, "metadata.stats-dense-store", True),
        dynamic_bucket_target_row_num=int_option(
            options, "dynamic-bucket.target-row-num", 2_000_000
        ),
        dynamic_bucket_initial_buckets=optional_int_option(
            options, "dynamic-bucket.initial-buckets"
        ),
        dynamic_bucket_max_buckets=int_option(options, "dynamic-bucket.max-buckets", -1),
        dynamic_bucket_assigner_parallelism=optional_int_option(
            options, "dynamic-bucket.assigner-parallelism"
        ),
        partition_default_name=options.get("partition.default-name", DEFAULT_PARTITION_NAME),
        partition_legacy_name=bool_option(options, "partition.legacy-name", True),
        manifest_target_file_size=size_option(options, "manifest.target-file-size", 8 * _MB),
        manifest_merge_min_count=int_option(options, "manifest.merge-min-count", 30),
        manifest_full_compaction_threshold=size_option(
            options, "manifest.full-compaction-threshold-size", 16 * _MB
        ),
        commit_max_retries=int_option(options, "commit.max-retries", 10),
        commit_min_retry_wait_ms=millis_option(options, "commit.min-retry-wait", 10),
        commit_max_retry_wait_ms=millis_option(options, "commit.max-retry-wait", 10_000),
        data_file_prefix=options.get("data-file.prefix", "data-"),
        write_only=bool_option(options, "write-only", False),
    )


def _stats_modes(schema: TableSchema) -> Mapping[str, str]:
    """Specification: SimpleStats. Columns past `metadata.stats-keep-first-n-columns` have none."""
    default = _stats_mode(schema.options, "metadata.stats-mode") or "truncate(16)"
    kept = int_option(schema.options, "metadata.stats-keep-first-n-columns", -1)
    modes = {}
    for i, name in enumerate(schema.field_names):
        own = _stats_mode(
            schema.options,
            f"{option_rules.FIELDS_PREFIX}{name}{option_rules.STATS_MODE_SUFFIX}",
        )
        modes[name] = own or (default if kept < 0 or i < kept else "none")
    return modes


def _stats_mode(options: Mapping[str, str], name: str) -> str | None:
    text = options.get(name)
    if text is None:
        return None
    if _STATS_MODE.fullmatch(text.lower()) is None:
        raise ConfigError(
            f"option '{name}' = '{text}': use none, counts, full or truncate(16) with any length"
        )
    return text.lower()


def bucket_mode(schema: TableSchema) -> BucketMode:
    """How rows of the table find their bucket. Specification: Bucket."""
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
        _refuse_column(column, for_write)
    _refuse_buckets(schema, for_write)
    _refuse_partition_names(schema)


def _refuse_value(name: str, value: str, for_write: bool) -> None:
    supported = option_rules.SUPPORTED_VALUES.get(name)
    if supported is None and for_write:
        supported = option_rules.WRITER_SUPPORTED_VALUES.get(name)
    if supported is not None and value.strip().lower() not in supported:
        raise UnsupportedError(_refusal(name, value, supported))


def _refuse_name(name: str, value: str, for_write: bool) -> None:
    if name.startswith(option_rules.MERGE_PREFIXES) or _is_merge_field_option(name):
        raise UnsupportedError(
            f"option '{name}' = '{value}' is not supported: only rows that replace each other as "
            "a whole (merge-engine deduplicate) are"
        )
    if for_write and not _is_known(name):
        raise UnsupportedError(
            f"option '{name}' = '{value}' is not supported for writing: what it asks of a writer "
            "is not implemented; remove it from the table"
        )


def _is_merge_field_option(name: str) -> bool:
    return name.startswith(option_rules.FIELDS_PREFIX) and not name.endswith(
        option_rules.STATS_MODE_SUFFIX
    )


def _is_known(name: str) -> bool:
    return (
        name in option_rules.SUPPORTED_VALUES
        or name in option_rules.WRITER_SUPPORTED_VALUES
        or name in option_rules.HONOURED_OPTIONS
        or name in option_rules.HARMLESS_OPTIONS
        or name.startswith((*option_rules.HARMLESS_PREFIXES, option_rules.FIELDS_PREFIX))
    )


def _refusal(name: str, value: str, supported: frozenset[str]) -> str:
    named = sorted(text for text in supported if text)
    remedy = f"supported: {', '.join(named)}" if named else "the option must not be set"
    return f"option '{name}' = '{value}' is not supported; {remedy}"


def _refuse_column(column: DataField, for_write: bool) -> None:
    for t in walk_types(column.type):
        if t.root in _UNSUPPORTED_ROOTS:
            raise UnsupportedError(
                f"column '{column.name}': data type {t.root} ({column.type}) is not supported"
            )
        if t.root in TIMESTAMP_ROOTS and (t.precision or 0) > _MAX_TIMESTAMP_PRECISION:
            raise UnsupportedError(
                f"column '{column.name}': data type {t} is not supported: Parquet files carry "
                f"timestamps up to precision {_MAX_TIMESTAMP_PRECISION} here"
            )
    if for_write and column.default_value is not None:
        raise UnsupportedError(
            f"column '{column.name}': default value '{column.default_value}' is not supported "
            "for writing"
        )


def _refuse_buckets(schema: TableSchema, for_write: bool) -> None:
    mode, options = bucket_mode(schema), core_options(schema)
    if mode is BucketMode.POSTPONE:
        raise UnsupportedError("option 'bucket' = '-2' (postponed buckets) is not supported")
    if not for_write:
        return
    if mode is BucketMode.KEY_DYNAMIC:
        missing = sorted(set(schema.partition_keys) - set(schema.primary_keys))
        raise UnsupportedError(
            f"primary key {list(schema.primary_keys)} without partition keys {missing} is not "
            "supported with option 'bucket' = '-1': keys would move between partitions; add "
            "them to the primary key or set a fixed number of buckets"
        )
    keys = options.bucket_keys
    if options.bucket_function == "mod" and (
        len(keys) != 1 or schema.field(keys[0]).type.root not in ("INT", "BIGINT")
    ):
        raise UnsupportedError(
            f"option 'bucket-function.type' = 'mod' needs one INT or BIGINT bucket key, not "
            f"{list(keys)}"
        )


def _refuse_partition_names(schema: TableSchema) -> None:
    for column in schema.select(schema.partition_keys):
        if column.type.root in BINARY_ROOTS:
            raise UnsupportedError(
                f"partition column '{column.name}': data type {column.type} is not supported: "
                "its values have no directory name"
            )
