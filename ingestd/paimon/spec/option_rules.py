"""Tables of what is done with each table option: honoured, harmless, or refused.

An option of which nothing is known is harmless to a reader that leaves it alone, but a writer
has to know it: it may change what other writers and readers expect of the files.
"""

from collections.abc import Mapping

SUPPORTED_VALUES: Mapping[str, frozenset[str]] = {
    "type": frozenset({"table"}),
    "branch": frozenset({"main"}),
    "merge-engine": frozenset({"deduplicate", "partial-update", "aggregation", "first-row"}),
    "file.format": frozenset({"parquet", "orc", "avro"}),
    "manifest.format": frozenset({"avro"}),
    "data-evolution.enabled": frozenset({"false"}),
    "pk-clustering-override": frozenset({"false"}),
    "chain-table.enabled": frozenset({"false"}),
    "query-auth.enabled": frozenset({"false"}),
    "primary-key.nullable": frozenset({"false"}),
    "sequence.snapshot-ordering": frozenset({"false"}),
    "record-level.expire-time": frozenset(),
    "scan.fallback-branch": frozenset(),
    "scan.primary-branch": frozenset(),
    "scan.fallback-snapshot-branch": frozenset(),
    "scan.fallback-delta-branch": frozenset(),
    "blob-field": frozenset(),
    "blob-descriptor-field": frozenset(),
    "vector-field": frozenset(),
}
"""Values with which a table can be read and written; none at all: the option must be absent."""

WRITER_SUPPORTED_VALUES: Mapping[str, frozenset[str]] = {
    "bucket-function.type": frozenset({"default", "mod", "hive"}),
    "deletion-vectors.enabled": frozenset({"true", "false"}),
    "changelog-producer": frozenset({"none", "input", "lookup", "full-compaction"}),
    "data-file.thin-mode": frozenset({"false"}),
    "data-file.external-paths": frozenset(),
    "data-file.path-directory": frozenset(),
    "manifest.compression": frozenset({"zstd"}),
    "manifest.delete-file-drop-stats": frozenset({"false"}),
    "row-tracking.enabled": frozenset({"false"}),
    "force-lookup": frozenset({"true", "false"}),
    "commit.force-compact": frozenset({"false"}),
    "commit.force-create-snapshot": frozenset({"false"}),
    "commit.discard-duplicate-files": frozenset({"false"}),
    "commit.callbacks": frozenset({""}),
    "snapshot.ignore-empty-commit": frozenset({"true"}),
    "clustering.incremental": frozenset({"false"}),
    "visibility-callback.enabled": frozenset({"false"}),
    "metadata.iceberg.storage": frozenset({"disabled"}),
    "ingestd.number-encoding": frozenset({"plain", "delta"}),
}
"""Values with which a table can be written; readers need not care."""

HONOURED_OPTIONS = frozenset(
    {"bucket", "bucket-key", "file.compression", "file.compression.per.level",
     "file.compression.zstd-level", "file.format.per.level", "file.suffix.include.compression",
     "changelog-file.format", "changelog-file.compression", "changelog-file.stats-mode",
     "changelog-file.prefix",
     "target-file-size", "metadata.stats-mode.per.level",
     "metadata.stats-mode", "metadata.stats-dense-store", "metadata.stats-keep-first-n-columns",
     "dynamic-bucket.target-row-num", "dynamic-bucket.initial-buckets",
     "dynamic-bucket.max-buckets", "dynamic-bucket.assigner-parallelism",
     "partition.default-name", "partition.legacy-name", "data-file.prefix", "write-only",
     "postpone.default-bucket-num", "index-file-in-data-file-dir",
     "manifest.target-file-size", "manifest.merge-min-count",
     "manifest.full-compaction-threshold-size",
     "full-compaction.delta-commits",
     "num-levels", "lookup-compact", "lookup-compact.max-interval", "source.split.open-file-cost",
     "commit.max-retries", "commit.min-retry-wait", "commit.max-retry-wait",
     "commit.timeout",
     "add-column-before-partition", "alter-column-null-to-not-null.disabled",
     "disable-explicit-type-casting",
     "sequence.field", "sequence.field.sort-order", "rowkind.field",
     "ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete",
     "partial-update.ignore-delete", "ignore-update-before",
     "aggregation.remove-record-on-delete", "partial-update.remove-record-on-delete",
     "partial-update.remove-record-on-sequence-group", "fields.default-aggregate-function",
     "file-index.read.enabled", "file-index.in-manifest-threshold"}
)  # fmt: skip
"""Options that have an effect here, with any value that can be understood."""

HONOURED_PREFIXES = ("file-index.bloom-filter.", "file-index.bitmap.")
"""Beginnings of names of such options: they end in columns and what is set for them."""

HARMLESS_OPTIONS = frozenset(
    {
        # How other engines read.
        "auto-create", "batch-scan-mode", "bucket-append-ordered", "consumer-id",
        "continuous.discovery-interval", "file-reader-async-threshold",
        "stream-scan-mode", "streaming-read-append-overwrite", "streaming-read-overwrite",
        "table-read.sequence-number.enabled",
        # Memory, threads and temporary files of other engines.
        "async-file-write", "cache-page-size", "file-operation.thread-num",
        "local-merge-buffer-size", "page-size", "sort-engine", "spill-compression",
        "write-buffer-for-append", "write-buffer-size", "write-buffer-spillable",
        "write-max-writers-to-spill",
        # Whether writers wait for their compactions; of ingestd that is a setting of the pipeline.
        "lookup-wait",
        # Details of what is switched off or of what is not done here.
        "clustering.columns", "clustering.strategy", "deletion-vector.index-file.target-size",
        "delete.force-produce-changelog", "dynamic-partition-overwrite",
        "end-input.check-partition-expire",
        "overwrite-upgrade",
        # What people write down about a table.
        "owner",
    }
)  # fmt: skip
"""Options that other programs mind and that change no file written here."""

HARMLESS_PREFIXES = (
    # Reading and scheduling in other engines.
    "consumer.", "flink.", "incremental-", "lookup.", "read.", "scan.", "sink.", "source.",
    "spark.", "streaming.", "unaware-bucket.", "write.", "write-buffer-spill.",
    "sort-spill-", "spill-compression.", "local-sort.",
    # Maintenance: compaction, retention, tags, partition life cycle.
    "changelog.", "compaction.", "num-sorted-run.", "partition.", "snapshot.", "tag.",
    "sort-compaction.", "zorder.", "materialized-table.", "metastore.",
    # Details of what is switched off.
    "changelog-file.", "changelog-producer.", "clustering.history-partition.",
    "cross-partition-upsert.", "deletion-vectors.", "orc.", "postpone.", "variant.",
    # Marks that ingestd itself leaves on tables.
    "ingestd.",
)  # fmt: skip
"""Beginnings of names that make an option harmless, unless a table above says otherwise."""

FIELDS_PREFIX = "fields."
KNOWN_PREFIXES = (*HONOURED_PREFIXES, *HARMLESS_PREFIXES, FIELDS_PREFIX)
STATS_MODE_SUFFIX = ".stats-mode"
FIELD_SUFFIXES = (
    STATS_MODE_SUFFIX, ".aggregate-function", ".ignore-retract", ".sequence-group",
    ".list-agg-delimiter", ".distinct", ".nested-key", ".count-limit", ".ts-field",
)  # fmt: skip
"""The options under `fields.<columns>` that are honoured."""
