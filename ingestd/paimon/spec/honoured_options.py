"""Table options that ingestd implements, each declared once: name, type, default and effect.

`option.of(options)` returns the value. All other options are declared in `table_options`.

Specification: https://paimon.apache.org/docs/1.4/maintenance/configurations/#coreoptions
"""

from ingestd.paimon.spec.option_types import (
    Access,
    ChangeRule,
    TableOption,
    honoured,
    optional,
    parse_bool,
    parse_directory,
    parse_float,
    parse_int,
    parse_millis,
    parse_names,
    parse_size,
    parse_text,
    parse_word,
)
from ingestd.paimon.spec.paths import DEFAULT_PARTITION_NAME

_MB = 1024 * 1024
_NO_NAMES: tuple[str, ...] = ()
_SUCCESS_FILE: tuple[str, ...] = ("success-file",)


# Buckets and partitions.
BUCKET = honoured("bucket", parse_int, -1, "Number of buckets; -1: dynamic, -2: postponed.")
BUCKET_KEY = honoured(
    "bucket-key", parse_names, _NO_NAMES, "Columns whose hash gives the bucket.",
    change=ChangeRule.NEVER,
)  # fmt: skip
BUCKET_FUNCTION = honoured(
    "bucket-function.type", parse_word, "default", "How the bucket of a row is computed.",
    values=("default", "mod", "hive"), change=ChangeRule.NEVER,
)  # fmt: skip
DYNAMIC_BUCKET_TARGET_ROWS = honoured(
    "dynamic-bucket.target-row-num", parse_int, 2_000_000, "Rows after which a bucket is full."
)
DYNAMIC_BUCKET_INITIAL = optional(
    "dynamic-bucket.initial-buckets", parse_int, "Buckets with which a partition begins."
)
DYNAMIC_BUCKET_MAX = honoured(
    "dynamic-bucket.max-buckets", parse_int, -1, "Most buckets of a partition; -1: 32767."
)
DYNAMIC_BUCKET_ASSIGNERS = optional(
    "dynamic-bucket.assigner-parallelism", parse_int,
    "Assigners of dynamic buckets; new tables get the number of write tasks.",
)  # fmt: skip
POSTPONE_DEFAULT_BUCKETS = honoured(
    "postpone.default-bucket-num", parse_int, 1, "Buckets of a partition of postponed rows."
)
PARTITION_DEFAULT_NAME = honoured(
    "partition.default-name", parse_text, DEFAULT_PARTITION_NAME,
    "Directory name of null and empty values.",
)  # fmt: skip
PARTITIONED_IN_METASTORE = honoured(
    "metastore.partitioned-table", parse_bool, False,
    "Whether partitions are in the metastore `hive` as well; others have no partitions.",
)  # fmt: skip
PARTITION_LEGACY_NAME = honoured(
    "partition.legacy-name", parse_bool, True, "How dates and times are written in directory names."
)

# Merging of rows.
MERGE_ENGINE = honoured(
    "merge-engine", parse_word, "deduplicate", "How rows of one key become one row.",
    values=("deduplicate", "partial-update", "aggregation", "first-row"),
    refused_from=Access.READ, change=ChangeRule.NEVER,
)  # fmt: skip
SEQUENCE_FIELD = honoured(
    "sequence.field", parse_names, _NO_NAMES, "Columns that decide which row of a key is newer."
)
SEQUENCE_ORDER = honoured(
    "sequence.field.sort-order", parse_word, "ascending",
    "Whether the row with the larger value is newer.",
)  # fmt: skip
ROWKIND_FIELD = optional(
    "rowkind.field", parse_text, "Column that contains the kind of a row.", change=ChangeRule.NEVER
)
IGNORE_DELETE = honoured(
    "ignore-delete", parse_bool, False, "Drops deletions.", change=ChangeRule.TO_TRUE,
    aliases=(
        "first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"
    ),
)  # fmt: skip
IGNORE_UPDATE_BEFORE = honoured(
    "ignore-update-before", parse_bool, False, "Drops -U rows.", change=ChangeRule.TO_TRUE
)
AGGREGATION_REMOVE = honoured(
    "aggregation.remove-record-on-delete", parse_bool, False, "A deletion removes the whole row.",
    change=ChangeRule.NEVER,
)  # fmt: skip
PARTIAL_UPDATE_REMOVE = honoured(
    "partial-update.remove-record-on-delete", parse_bool, False,
    "A deletion removes the whole row.", change=ChangeRule.NEVER,
)  # fmt: skip
REMOVE_ON_GROUP = honoured(
    "partial-update.remove-record-on-sequence-group", parse_names, _NO_NAMES,
    "Sequence columns of groups whose deletions remove the whole row.", change=ChangeRule.NEVER,
)  # fmt: skip
DEFAULT_FUNCTION = optional(
    "fields.default-aggregate-function", parse_text, "Aggregate function of all other columns."
)
AGGREGATE_FUNCTION = optional(
    "fields.<column>.aggregate-function", parse_text, "Aggregate function of a column."
)
IGNORE_RETRACT = honoured(
    "fields.<column>.ignore-retract", parse_bool, False, "The function skips retractions."
)
SEQUENCE_GROUP = honoured(
    "fields.<columns>.sequence-group", parse_names, _NO_NAMES,
    "Columns that are updated in the order of these.",
)  # fmt: skip
LIST_DELIMITER = honoured(
    "fields.<column>.list-agg-delimiter", parse_text, ",", "Delimiter of `listagg`."
)
DISTINCT = honoured(
    "fields.<column>.distinct", parse_bool, False, "`collect` and `listagg` keep each value once."
)
NESTED_KEY = honoured(
    "fields.<column>.nested-key",
    parse_names,
    _NO_NAMES,
    "Key of the rows of `nested_update` and `nested_partial_update`.",
)
COUNT_LIMIT = optional(
    "fields.<column>.count-limit", parse_int, "Most rows that `nested_update` keeps."
)
TIME_FIELD = optional(
    "fields.<column>.ts-field", parse_text, "Time field of `merge_map_with_keytime`."
)

# Data files.
FILE_FORMAT = honoured(
    "file.format", parse_word, "parquet", "Format of data files.",
    values=("parquet", "orc", "avro"), refusal="ingestd reads files of texts, but writes none",
)  # fmt: skip
FILE_FORMAT_PER_LEVEL = honoured(
    "file.format.per.level", parse_text, "", "Formats of levels, as `0:avro,5:parquet`."
)
FILE_COMPRESSION = honoured("file.compression", parse_word, "zstd", "Compression of data files.")
FILE_COMPRESSION_PER_LEVEL = honoured(
    "file.compression.per.level", parse_text, "", "Compressions of levels."
)
ZSTD_LEVEL = honoured("file.compression.zstd-level", parse_int, 1, "Level of zstd.")
FILE_SUFFIX_COMPRESSION = honoured(
    "file.suffix.include.compression", parse_bool, False, "File names contain the compression."
)
THIN_MODE = honoured(
    "data-file.thin-mode", parse_bool, False, "Data files have no second copy of the key columns."
)
DATA_FILE_PREFIX = honoured(
    "data-file.prefix", parse_text, "data-", "Prefix of the names of data files."
)
DATA_FILE_DIRECTORY = honoured(
    "data-file.path-directory", parse_directory, "", "Directory above the partitions.",
    change=ChangeRule.NEVER,
)  # fmt: skip
EXTERNAL_PATHS = honoured(
    "data-file.external-paths", parse_names, _NO_NAMES,
    "Directories of data files outside of the table, as URIs; one table each.",
)  # fmt: skip
EXTERNAL_STRATEGY = honoured(
    "data-file.external-paths.strategy", parse_word, "none",
    "Which external directory a new file gets; none: new files are in the table.",
    values=("none", "round-robin", "specific-fs", "entropy-inject"),
    refusal="files are not distributed by weights; choose 'round-robin'",
)  # fmt: skip
EXTERNAL_FS = honoured(
    "data-file.external-paths.specific-fs", parse_word, "",
    "Scheme of the external directories that `specific-fs` chooses.",
)  # fmt: skip
TARGET_FILE_SIZE = optional(
    "target-file-size", parse_size, "Size of data files; 128 MB with a key, else 256 MB."
)
CHANGELOG_FORMAT = optional(
    "changelog-file.format", parse_word, "Format of changelog files; by default that of data."
)
CHANGELOG_COMPRESSION = optional(
    "changelog-file.compression", parse_word,
    "Compression of changelog files; by default that of data.",
)  # fmt: skip
CHANGELOG_STATS_MODE = optional(
    "changelog-file.stats-mode", parse_word,
    "Statistics of changelog files; by default that of data.",
)  # fmt: skip
CHANGELOG_PREFIX = honoured(
    "changelog-file.prefix", parse_text, "changelog-", "Prefix of the names of changelog files."
)
BLOCK_SIZE = optional(
    "file.block-size", parse_size, "Size of a row group of Parquet or a stripe of ORC."
)
PARQUET_COMPRESSION = honoured(
    "parquet.compression", parse_word, "",
    "Compression of Parquet files before `file.compression`.",
    values=("zstd", "snappy", "gzip", "lz4", "lz4_raw", "uncompressed"),
)  # fmt: skip
PARQUET_ZSTD_LEVEL = optional(
    "parquet.compression.codec.zstd.level", parse_int,
    "Level of zstd in Parquet files before `file.compression.zstd-level`.",
)  # fmt: skip
PARQUET_BLOCK_SIZE = optional(
    "parquet.block.size", parse_int, "Bytes of a row group, if `file.block-size` is not set."
)
PARQUET_PAGE_SIZE = honoured(
    "parquet.page.size", parse_int, _MB, "Bytes of a page of a Parquet column."
)
PARQUET_DICTIONARY = optional(
    "parquet.enable.dictionary", parse_bool,
    "Whether columns have a dictionary; by default, columns of repeated texts have one.",
)  # fmt: skip
PARQUET_DICTIONARY_SIZE = honoured(
    "parquet.dictionary.page.size", parse_int, _MB, "Most bytes of a dictionary."
)
ORC_STRIPE_SIZE = honoured(
    "orc.stripe.size", parse_int, 64 * _MB, "Bytes of a stripe, if `file.block-size` is not set."
)
ORC_COMPRESS_SIZE = honoured(
    "orc.compress.size", parse_int, 64 << 10,
    "Bytes that are compressed together, rounded up to 64 KiB, at most 8128 KiB.",
)  # fmt: skip
ORC_INDEX_STRIDE = honoured(
    "orc.row.index.stride", parse_int, 10_000, "Rows between two entries of the row index."
)
ORC_DICTIONARY_THRESHOLD = honoured(
    "orc.dictionary.key.threshold", parse_float, 0.0,
    "Share of distinct texts up to which a column has a dictionary.",
)  # fmt: skip
STATS_MODE = honoured(
    "metadata.stats-mode", parse_word, "truncate(16)", "Statistics of each column."
)
STATS_MODE_PER_LEVEL = honoured(
    "metadata.stats-mode.per.level", parse_text, "", "Statistics of levels."
)
COLUMN_STATS_MODE = optional("fields.<column>.stats-mode", parse_word, "Statistics of one column.")
STATS_DENSE_STORE = honoured(
    "metadata.stats-dense-store", parse_bool, True, "Columns without statistics take no space."
)
STATS_FIRST_COLUMNS = honoured(
    "metadata.stats-keep-first-n-columns", parse_int, -1, "Only these columns have statistics."
)
ORC_LEGACY_LTZ = honoured(
    "orc.timestamp-ltz.legacy.type", parse_bool, True,
    "TIMESTAMP_LTZ of ORC files depends on the writer's time zone; new tables get `false`.",
)  # fmt: skip
NUMBER_ENCODING = honoured(
    "ingestd.number-encoding", parse_word, "plain", "Encoding of whole numbers in Parquet files.",
    values=("plain", "delta"),
)  # fmt: skip

# File indexes and deletion vectors.
INDEX_THRESHOLD = honoured(
    "file-index.in-manifest-threshold", parse_size, 500, "Larger indexes get their own file."
)
INDEX_READ = honoured(
    "file-index.read.enabled", parse_bool, True, "Readers skip files by their indexes."
)
BLOOM_COLUMNS = honoured(
    "file-index.bloom-filter.columns", parse_names, _NO_NAMES, "Columns with a bloom filter."
)
BLOOM_ITEMS = optional(
    "file-index.bloom-filter.<column>.items", parse_int, "Values that a bloom filter is sized for."
)
BLOOM_FPP = honoured(
    "file-index.bloom-filter.<column>.fpp", parse_float, 0.1,
    "False-positive rate of a bloom filter.",
)  # fmt: skip
BITMAP_COLUMNS = honoured(
    "file-index.bitmap.columns", parse_names, _NO_NAMES, "Columns with a bitmap index."
)
BITMAP_VERSION = honoured(
    "file-index.bitmap.<column>.version", parse_int, 2, "Version of the layout, 1 or 2."
)
BITMAP_BLOCK_SIZE = honoured(
    "file-index.bitmap.<column>.index-block-size", parse_size, 16 * 1024,
    "Size of the blocks of a bitmap index.",
)  # fmt: skip
BSI_COLUMNS = honoured(
    "file-index.bsi.columns", parse_names, _NO_NAMES, "Columns of numbers with a bsi index."
)
RANGE_BITMAP_COLUMNS = honoured(
    "file-index.range-bitmap.columns", parse_names, _NO_NAMES, "Columns with a range-bitmap index."
)
RANGE_BITMAP_CHUNK_SIZE = optional(
    "file-index.range-bitmap.<column>.chunk-size", parse_size,
    "Size of the chunks of values; 16 kb, or a value a chunk of BOOLEAN, TINYINT and SMALLINT.",
)  # fmt: skip
INDEX_IN_DATA_DIR = honoured(
    "index-file-in-data-file-dir", parse_bool, False, "Index files are beside the data files.",
    change=ChangeRule.NEVER,
)  # fmt: skip
DELETION_VECTORS = honoured(
    "deletion-vectors.enabled", parse_bool, False, "Older rows are deleted by deletion vectors.",
    values=("true", "false"),
)  # fmt: skip
DELETION_VECTORS_BITMAP64 = honoured(
    "deletion-vectors.bitmap64", parse_bool, False, "New vectors have the 64-bit layout."
)
DELETION_VECTORS_MERGE = honoured(
    "deletion-vectors.merge-on-read", parse_bool, False,
    "Reads merge files of level 0 into tables with deletion vectors; of later versions.",
)  # fmt: skip
ROW_TRACKING = honoured(
    "row-tracking.enabled", parse_bool, False,
    "Rows of a keyless table have ids, and the snapshot that wrote them.",
    change=ChangeRule.NEVER,
)  # fmt: skip
INCREMENTAL_CLUSTERING = honoured(
    "clustering.incremental", parse_bool, False,
    "Files of a keyless table are compacted by Paimon's clustering job only, not by ingestd.",
)  # fmt: skip
DATA_EVOLUTION = honoured(
    "data-evolution.enabled", parse_bool, False,
    "Files may have other columns of rows that are there already.",
    values=("false",), change=ChangeRule.NEVER,
    refusal="ingestd reads such tables and writes no columns of rows that are there already",
)  # fmt: skip
DELETION_VECTORS_MODIFIABLE = honoured(
    "deletion-vectors.modifiable", parse_bool, False, "`deletion-vectors.enabled` may change."
)

# Changelogs and compaction.
CHANGELOG_PRODUCER = honoured(
    "changelog-producer", parse_word, "none", "What writes changelog files.",
    values=("none", "input", "lookup", "full-compaction"),
)  # fmt: skip
ROW_DEDUPLICATE = honoured(
    "changelog-producer.row-deduplicate", parse_bool, False,
    "No change is written for a row that stays equal.",
)  # fmt: skip
DEDUPLICATE_IGNORE = honoured(
    "changelog-producer.row-deduplicate-ignore-fields", parse_names, _NO_NAMES,
    "Columns that `row-deduplicate` ignores.",
)  # fmt: skip
STREAMING_READ_OVERWRITE = honoured(
    "streaming-read-overwrite", parse_bool, False,
    "Refused together with a changelog producer that compacts.",
)  # fmt: skip
FORCE_LOOKUP = honoured(
    "force-lookup", parse_bool, False, "Compaction always looks up older rows.",
    values=("true", "false"), change=ChangeRule.NEVER,
)  # fmt: skip
LOOKUP_COMPACT = honoured(
    "lookup-compact", parse_word, "radical", "Whether level 0 is compacted at once (`radical`)."
)
LOOKUP_COMPACT_INTERVAL = optional(
    "lookup-compact.max-interval", parse_int, "Level-0 files that `gentle` waits for."
)
WRITE_ONLY = honoured(
    "write-only", parse_bool, False, "ingestd neither compacts nor expires the table.",
    aliases=("write.compaction-skip",),
)  # fmt: skip
COMPACTION_TRIGGER = honoured(
    "num-sorted-run.compaction-trigger", parse_int, 5, "Sorted runs that start a compaction."
)
STOP_TRIGGER = optional(
    "num-sorted-run.stop-trigger",
    parse_int,
    "Sorted runs above which writers wait; by default trigger + 3.",
)
NUM_LEVELS = optional("num-levels", parse_int, "Levels of a bucket; by default trigger + 1.")
DELTA_COMMITS = optional(
    "full-compaction.delta-commits", parse_int, "Commits between two full compactions."
)
SIZE_AMPLIFICATION = honoured(
    "compaction.max-size-amplification-percent", parse_int, 200,
    "Size of upper levels that starts a full compaction.",
)  # fmt: skip
SIZE_RATIO = honoured(
    "compaction.size-ratio", parse_int, 1, "Difference in size at which runs are merged."
)
OFFPEAK_START = honoured(
    "compaction.offpeak.start.hour", parse_int, -1, "Start of the off-peak hours."
)
OFFPEAK_END = honoured("compaction.offpeak.end.hour", parse_int, -1, "End of the off-peak hours.")
OFFPEAK_RATIO = honoured("compaction.offpeak-ratio", parse_int, 0, "Size ratio in off-peak hours.")
OPTIMIZATION_INTERVAL = optional(
    "compaction.optimization-interval", parse_millis, "Time between full compactions."
)
TOTAL_SIZE_THRESHOLD = optional(
    "compaction.total-size-threshold", parse_size, "Smaller buckets are always compacted fully."
)
INCREMENTAL_SIZE_THRESHOLD = optional(
    "compaction.incremental-size-threshold", parse_size, "Size of new files for a full compaction."
)
FORCE_UP_LEVEL_0 = honoured(
    "compaction.force-up-level-0", parse_bool, False, "No file stays on level 0."
)
FORCE_REWRITE = honoured(
    "compaction.force-rewrite-all-files", parse_bool, False, "A full compaction rewrites all."
)
COMPACTION_MIN_FILES = honoured(
    "compaction.min.file-num", parse_int, 5, "Small files of a keyless table that are merged."
)
DELETE_RATIO = honoured(
    "compaction.delete-ratio-threshold", parse_float, 0.2, "Deleted rows that cause a rewrite."
)
OPEN_FILE_COST = honoured(
    "source.split.open-file-cost", parse_size, 4 * _MB, "Cost of a file when files are grouped."
)

# Commits, manifests, overwrites and schemas.
MANIFEST_TARGET_SIZE = honoured(
    "manifest.target-file-size", parse_size, 8 * _MB, "Size of manifests."
)
MANIFEST_MERGE_MIN = honoured(
    "manifest.merge-min-count", parse_int, 30, "Small manifests that are merged."
)
MANIFEST_FULL_COMPACTION = honoured(
    "manifest.full-compaction-threshold-size", parse_size, 16 * _MB,
    "Size of changed manifests that starts a rewrite of all.",
)  # fmt: skip
COMMIT_MAX_RETRIES = honoured("commit.max-retries", parse_int, 10, "Attempts after a conflict.")
COMMIT_MIN_RETRY_WAIT = honoured(
    "commit.min-retry-wait", parse_millis, 10, "Wait before the first further attempt."
)
COMMIT_MAX_RETRY_WAIT = honoured(
    "commit.max-retry-wait", parse_millis, 10_000, "Longest wait between two attempts."
)
COMMIT_TIMEOUT = honoured("commit.timeout", parse_millis, 600_000, "Time limit of all attempts.")
DYNAMIC_OVERWRITE = honoured(
    "dynamic-partition-overwrite",
    parse_bool,
    True,
    "An overwrite replaces the partitions of its rows.",
)
OVERWRITE_UPGRADE = honoured(
    "overwrite-upgrade", parse_bool, True, "An overwrite puts files on the top level."
)
COLUMN_BEFORE_PARTITION = honoured(
    "add-column-before-partition",
    parse_bool,
    False,
    "New columns are added before the partition columns.",
)
NOT_NULL_DISABLED = honoured(
    "alter-column-null-to-not-null.disabled", parse_bool, True, "No column becomes NOT NULL."
)
EXPLICIT_CASTS_DISABLED = honoured(
    "disable-explicit-type-casting",
    parse_bool,
    False,
    "Types change only by casts that are implicit.",
)
PIPELINES = optional("ingestd.pipelines", parse_text, "Pipelines that write the table.")
COLUMN_CHANGES = optional("ingestd.column-changes", parse_text, "Renamed and dropped columns.")
SOURCE_COMMENTS = optional(
    "ingestd.source-comments", parse_text, "Digests of the comments that are from the source."
)

# Expiry, tags and reads.
SNAPSHOT_MIN = honoured(
    "snapshot.num-retained.min", parse_int, 10, "Fewest snapshots that are kept."
)
SNAPSHOT_MAX = honoured(
    "snapshot.num-retained.max", parse_int, 2**31 - 1, "Most snapshots that are kept."
)
SNAPSHOT_TIME = honoured(
    "snapshot.time-retained", parse_millis, 3_600_000, "How long snapshots are kept."
)
CHANGELOG_MIN = optional(
    "changelog.num-retained.min", parse_int, "Fewest changelogs kept; by default as snapshots."
)
CHANGELOG_MAX = optional(
    "changelog.num-retained.max", parse_int, "Most changelogs kept; by default as snapshots."
)
CHANGELOG_TIME = optional(
    "changelog.time-retained",
    parse_millis,
    "How long changelogs are kept; by default as snapshots.",
)
EXPIRE_LIMIT = honoured(
    "snapshot.expire.limit", parse_int, 50, "Most snapshots that expire at a time."
)
CLEAN_DIRECTORIES = honoured(
    "snapshot.clean-empty-directories", parse_bool, False, "Expiry removes empty directories.",
    aliases=("snapshot.expire.clean-empty-directories",),
)  # fmt: skip
CONSUMER_EXPIRATION = optional(
    "consumer.expiration-time", parse_millis, "How long an idle consumer holds snapshots."
)
CONSUMER_CHANGELOG_ONLY = honoured(
    "consumer.changelog-only", parse_bool, False, "Consumers hold changelogs, not snapshots."
)
RECORD_EXPIRE_TIME = optional(
    "record-level.expire-time", parse_millis,
    "Age of a row of a table with a primary key after which compactions drop it.",
)  # fmt: skip
RECORD_TIME_FIELD = optional(
    "record-level.time-field", parse_text,
    "Column with the time from which a row ages: INT in seconds, BIGINT in seconds or "
    "milliseconds, or TIMESTAMP.",
)  # fmt: skip
PARTITION_EXPIRATION = optional(
    "partition.expiration-time", parse_millis, "Age at which partitions are dropped."
)
PARTITION_STRATEGY = honoured(
    "partition.expiration-strategy", parse_word, "values-time",
    "Age by the partition's values or by `update-time`.",
)  # fmt: skip
PARTITION_MAX = honoured(
    "partition.expiration-max-num", parse_int, 100, "Most partitions dropped at a time."
)
PARTITION_BATCH = optional(
    "partition.expiration-batch-size", parse_int, "Partitions that one snapshot drops."
)
PARTITION_FORMATTER = optional(
    "partition.timestamp-formatter", parse_text, "Format of the time in partition values."
)
PARTITION_PATTERN = optional(
    "partition.timestamp-pattern", parse_text, "Pattern of the partition values that form a time."
)
PARTITION_IDLE_TIME = optional(
    "partition.idle-time-to-done", parse_millis,
    "Time without new rows after which a partition is marked as done.",
)  # fmt: skip
PARTITION_INTERVAL = optional(
    "partition.time-interval", parse_millis, "Length of the time of a partition, such as `1 d`."
)
PARTITION_DONE_ACTION = honoured(
    "partition.mark-done-action", parse_names, _SUCCESS_FILE, "How a partition is marked.",
    values=(*_SUCCESS_FILE, "done-partition"), refused_from=Access.CREATE,
    refusal="partitions are marked by success files and in the metastore 'hive', not by requests",
)  # fmt: skip
PARTITION_DONE_MODE = honoured(
    "partition.mark-done-action.mode", parse_word, "process-time",
    "Whether the idle time is one of the clock or of the watermark.",
    values=("process-time", "watermark"), refused_from=Access.CREATE,
)  # fmt: skip
TAG_CREATION = honoured(
    "tag.automatic-creation", parse_word, "none", "Tags by `process-time` or `watermark`."
)
TAG_PERIOD = honoured("tag.creation-period", parse_word, "daily", "Period of a tag.")
TAG_DURATION = optional(
    "tag.creation-period-duration", parse_millis, "Length of a period, if it is another one."
)
TAG_DELAY = honoured("tag.creation-delay", parse_millis, 0, "Wait after the end of a period.")
TAG_FORMATTER = honoured("tag.period-formatter", parse_word, "with_dashes", "Names of tags.")
TAG_MAX = optional("tag.num-retained-max", parse_int, "Most automatic tags.")
TAG_TIME = optional("tag.default-time-retained", parse_millis, "How long a tag is kept.")
TAG_TIME_EXPIRE = honoured(
    "tag.time-expire-enabled", parse_bool, True, "Tags with a retention time expire."
)
TAG_COMPLETION = honoured(
    "tag.automatic-completion", parse_bool, False, "Periods without a snapshot get a tag too."
)
TAG_CALLBACKS = honoured(
    "tag.callbacks", parse_text, "", "Refused: Java code cannot run.", values=[""],
    refused_from=Access.CREATE,
)  # fmt: skip
TAG_SUCCESS_FILE = honoured(
    "tag.create-success-file", parse_bool, False, "A new tag gets a success file beside the tags."
)
WATERMARK_ZONE = honoured(
    "sink.watermark-time-zone", parse_text, "UTC", "Time zone of tags by watermark."
)
PROCESS_ZONE = optional(
    "sink.process-time-zone", parse_text, "Time zone of tags by time; by default the machine's."
)
SCAN_MODE = honoured(
    "scan.mode", parse_word, "default", "What a batch read reads.", aliases=("log.scan",)
)
SCAN_SNAPSHOT = optional("scan.snapshot-id", parse_int, "Snapshot to read.")
SCAN_TAG = optional("scan.tag-name", parse_text, "Tag to read.")
SCAN_TIMESTAMP = optional(
    "scan.timestamp-millis", parse_int, "Time as of which the table is read.",
    aliases=("log.scan.timestamp-millis",),
)  # fmt: skip
SCAN_TIME = optional(
    "scan.timestamp", parse_text, "Time as of which the table is read, in the machine's time zone."
)
SCAN_WATERMARK = optional(
    "scan.watermark",
    parse_int,
    "Watermark in milliseconds; the first snapshot that reached it is read.",
)
SCAN_VERSION = optional(
    "scan.version", parse_text, "Tag, snapshot id, or `watermark-` and a watermark, to read."
)
INCREMENTAL = optional(
    "incremental-between", parse_text, "Snapshots between which changes are read."
)
INCREMENTAL_MODE = honoured(
    "incremental-between-scan-mode", parse_word, "auto", "Files that such a read uses."
)
SCAN_FALLBACK = optional(
    "scan.fallback-branch", parse_text,
    "Branch from which reads take the partitions that the table does not have.",
)  # fmt: skip

HONOURED: tuple[TableOption[object], ...] = tuple(
    option for option in globals().values() if isinstance(option, TableOption)
)
"""All options declared in this module, in the order of their declarations."""
