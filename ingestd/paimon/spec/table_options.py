"""Declarations of all known table options, and how ingestd treats them.

Options that ingestd implements are declared in `honoured_options` and `iceberg_options`, all others
here, with the reason why they are refused or ignored. Refusals, warnings and the page
table-options.md are generated from the declarations.

Specification: https://paimon.apache.org/docs/1.4/maintenance/configurations/#coreoptions
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ingestd.errors import ConfigError
from ingestd.paimon.spec.honoured_options import HONOURED
from ingestd.paimon.spec.iceberg_options import ICEBERG_OPTIONS
from ingestd.paimon.spec.option_types import Access, ChangeRule, Support, TableOption, parse_text
from ingestd.paimon.spec.text_options import TEXT_OPTIONS

_OFF = ("false",)

_Options = tuple[TableOption[object], ...]


def _irrelevant(note: str, *names: str) -> _Options:
    """Declare options that do not affect ingestd; in `name|alias`, the alias is an older name."""
    return _declared(names, note, None, Access.WRITE, change=ChangeRule.ANY)


def _refused(
    access: Access,
    note: str,
    *names: str,
    values: Iterable[str] = (),
    change: ChangeRule = ChangeRule.ANY,
) -> _Options:
    """Declare options that `access` and all kinds after it refuse, except with these values."""
    return _declared(names, note, frozenset(values), access, change=change)


def _declared(
    names: Iterable[str],
    note: str,
    values: frozenset[str] | None,
    access: Access,
    *,
    change: ChangeRule,
) -> _Options:
    split = (name.split("|") for name in names)
    return tuple(
        TableOption(
            name, parse_text, None, Support.IGNORED, note, values, access, change, tuple(aliases)
        )
        for name, *aliases in split
    )


UNREAD_SCANS: _Options = _refused(
    Access.CREATE,
    "not implemented: reads that do not choose a snapshot themselves are refused",
    "scan.file-creation-time-millis", "scan.creation-time-millis",
    "incremental-between-timestamp", "incremental-to-auto-tag",
)  # fmt: skip
"""Options of reads that are not implemented."""
_IGNORED: _Options = (
    # Refused even for reading.
    *_refused(
        Access.READ, "only tables of Paimon's own format are supported", "type", values=["table"],
    ),
    *_refused(
        Access.READ, "the name of a table selects its branch: `table$branch_name`, also in "
        "`routing.table-mapping`", "branch", values=["main"],
    ),
    *_refused(
        Access.READ, "files are in the order of other columns than the key, by which ingestd "
        "merges rows", "pk-clustering-override", values=_OFF, change=ChangeRule.NEVER,
    ),
    *_refused(
        Access.READ, "partitions of a chain table are merged from a branch with snapshots and one "
        "with changes, which is not implemented; write a table without chains",
        "chain-table.enabled", values=_OFF,
    ),
    *_refused(
        Access.READ, "not implemented: rows of the branches of a chain table",
        "scan.fallback-snapshot-branch", "scan.fallback-delta-branch",
    ),
    *_refused(
        Access.READ, "not implemented: partitions would come from another branch first; set "
        "`scan.fallback-branch` on that branch instead, and read it by its name",
        "scan.primary-branch",
    ),
    *_refused(
        Access.READ, "the catalog's server decides who may read which rows and columns, and "
        "ingestd does not ask it", "query-auth.enabled", values=_OFF,
    ),
    *_refused(
        Access.READ, "an option of later versions that changes how rows merge",
        "primary-key.nullable", "sequence.snapshot-ordering", values=_OFF,
    ),
    *_refused(
        Access.READ, "VECTOR columns are not supported", "vector-field",
    ),
    *_refused(
        Access.READ, "ingestd reads the values of BLOB columns, not what they refer to",
        "blob-descriptor-field|blob.stored-descriptor-fields", change=ChangeRule.NEVER,
    ),
    *_refused(
        Access.READ, "manifests are Avro: copy the rows into a table without this option",
        "manifest.format", values=["avro"],
    ),
    *_irrelevant(
        "defaults of columns replaced it in Java 1.3",
        "fields.<column>.default-value",
    ),
    *_refused(
        Access.READ, "how it changes the merging of rows is not implemented",
        "fields.<columns>.<name>"
    ),

    # Refused for writing.
    *_refused(Access.WRITE, "no Java code runs in ingestd", "commit.callbacks", values=[""]),
    *_refused(
        Access.WRITE, "it ends a job once others have compacted or overwritten the table after a "
        "snapshot; ingestd checks each commit against those of others",
        "commit.strict-mode.last-safe-snapshot",
    ),
    *_refused(
        Access.WRITE, "a commit of ingestd does not wait until a compaction has made its rows "
        "visible", "visibility-callback.enabled", values=_OFF,
    ),
    *_refused(Access.WRITE, "upserts without a primary key are not implemented; declare a "
        "primary key", "upsert-key"),
    *_refused(
        Access.WRITE, "keys belong to the schema, not to its options: `primary-keys` and "
        "`partition-keys` of the configuration", "primary-key", "partition",
        change=ChangeRule.NEVER,
    ),
    *_refused(
        Access.WRITE, "BLOB columns are not written", "blob-external-storage-path",
        "blob-external-storage-field", change=ChangeRule.NEVER,
    ),
    *_refused(
        Access.WRITE, "BLOB columns are not written", "blob-field", "blob-view-field",
    ),
    *_refused(Access.WRITE, "this kind of index is not written", "file-index.<type>.<setting>"),
    *_refused(
        Access.WRITE, "an index of later versions that ingestd would not maintain",
        "pk-bitmap.index.columns", "pk-btree.index.columns", "pk-full-text.index.columns",
        "pk-multivalue.index.columns", "pk-vector.index.columns",
    ),

    # Refused for new tables; existing tables with them are written.
    *_refused(
        Access.CREATE, "new manifests are compressed with zstd, and each states how it is",
        "manifest.compression", values=["zstd"],
    ),
    *_refused(
        Access.CREATE, "commits without changes write no snapshot", "commit.force-create-snapshot",
        values=_OFF,
    ),
    *_refused(
        Access.CREATE, "ingestd commits a file once", "commit.discard-duplicate-files", values=_OFF
    ),
    *_refused(
        Access.CREATE, "parameters of values of 'partition.mark-done-action' that are refused",
        "partition.mark-done-action.custom.class", "partition.mark-done-action.http.url",
        "partition.mark-done-action.http.params",
    ),
    *_refused(
        Access.CREATE, "partitions are marked as done by time, not at the end of a pipeline",
        "partition.end-input-to-done", values=_OFF
    ),
    *_irrelevant(
        "ingestd has no state of partitions: what is to be marked follows from the table",
        "partition.mark-done.recover-from-state",
    ),
    *_refused(
        Access.CREATE, "only the lenient form is implemented", "partition.timestamp-format.strict",
        values=_OFF,
    ),
    *_refused(
        Access.CREATE, "VARIANT columns are written unshredded",
        "variant.shreddingSchema|parquet.variant.shreddingSchema",
    ),
    *_refused(
        Access.CREATE, "VARIANT columns are written unshredded", "variant.inferShreddingSchema",
        values=_OFF,
    ),
    *UNREAD_SCANS,
    *_refused(
        Access.CREATE, "the catalog decides where a table is; other places of its data files are "
        "`data-file.external-paths`", "path",
    ),
    *_irrelevant(
        "only Flink's batch reads of Paimon 2.0 merge postponed rows; all readers see them once a "
        "compaction has moved them", "postpone.merge-on-read",
    ),
    *_refused(
        Access.WRITE, "ingestd would write the files unencrypted",
        "parquet.crypto.<setting>", "parquet.encryption.<setting>",
    ),
    *_refused(
        Access.CREATE, "Avro files are compressed as `file.compression` says", "avro.codec",
    ),
    *_refused(
        Access.CREATE, "records of Avro files keep the names that Java gives them",
        "avro.row-name-mapping",
    ),
    *_refused(
        Access.CREATE, "ORC files get no bloom filters; `file-index.bloom-filter.columns` works "
        "with all file formats", "orc.bloom.filter.columns", "orc.bloom.filter.fpp",
        "orc.bloom.filter.write.version",
    ),
    *_refused(
        Access.CREATE, "ORC files are compressed as `file.compression` and "
        "`file.compression.zstd-level` say", "orc.compress", "orc.compression.zstd.level",
    ),
    *_refused(
        Access.CREATE, "Arrow's writer of ORC files, which ingestd uses, chooses it itself",
        "orc.base.delta.ratio", "orc.block.padding", "orc.block.padding.tolerance",
        "orc.block.size", "orc.buffer.size.enforce", "orc.column.encoding.direct",
        "orc.compression.strategy", "orc.compression.zstd.strategy",
        "orc.compression.zstd.windowlog", "orc.create.index",
        "orc.dictionary.early.check", "orc.dictionary.max.size.bytes", "orc.encoding.strategy",
        "orc.proleptic.gregorian", "orc.stripe.row.count", "orc.stripe.size.check.ratio",
        "orc.write.format", "orc.write.variable.length.blocks",
    ),
    *_refused(
        Access.CREATE, "a setting of one Java reader, not of the table",
        "orc.filter.plugin", "orc.filter.plugin.allowlist", "orc.filter.use.selected",
        "orc.force.positional.evolution", "orc.force.positional.evolution.level",
        "orc.include.columns", "orc.kryo.sarg", "orc.kryo.sarg.buffer",
        "orc.mapred.input.schema", "orc.mapred.map.output.key.schema",
        "orc.mapred.map.output.value.schema", "orc.mapred.output.schema",
        "orc.proleptic.gregorian.default", "orc.sarg.column.names", "orc.sarg.to.filter",
        "orc.schema.evolution.case.sensitive", "orc.skip.corrupt.data",
        "orc.tolerate.missing.schema",
    ),
    *_refused(
        Access.CREATE, "ingestd would write the files unencrypted", "orc.encrypt",
        "orc.key.provider", "orc.mask",
    ),

    # Irrelevant to ingestd.
    *_irrelevant(
        "a setting of Java's Parquet library that changes no row",
        "parquet.block.row.count.limit", "parquet.bloom.filter.adaptive.enabled",
        "parquet.bloom.filter.adaptive.enabled#<column>", "parquet.bloom.filter.candidates.number",
        "parquet.bloom.filter.candidates.number#<column>", "parquet.bloom.filter.enabled",
        "parquet.bloom.filter.enabled#<column>", "parquet.bloom.filter.expected.ndv",
        "parquet.bloom.filter.expected.ndv#<column>", "parquet.bloom.filter.fpp",
        "parquet.bloom.filter.fpp#<column>", "parquet.bloom.filter.max.bytes",
        "parquet.column.statistics.enabled", "parquet.column.statistics.enabled#<column>",
        "parquet.columnindex.truncate.length", "parquet.compression.codec.zstd.bufferPool.enabled",
        "parquet.compression.codec.zstd.workers", "parquet.decrypt.off-heap.buffer.enabled",
        "parquet.enable.dictionary#<column>", "parquet.enable.job-summary",
        "parquet.enable.summary-metadata", "parquet.filter.bloom.enabled",
        "parquet.filter.columnindex.enabled", "parquet.filter.dictionary.enabled",
        "parquet.filter.record-level.enabled", "parquet.filter.stats.enabled",
        "parquet.hadoop.vectored.io.enabled", "parquet.memory.min.chunk.size",
        "parquet.memory.pool.ratio", "parquet.page.row.count.limit",
        "parquet.page.size.check.estimate", "parquet.page.size.row.check.max",
        "parquet.page.size.row.check.min", "parquet.page.value.count.threshold",
        "parquet.page.verify-checksum.enabled", "parquet.page.write-checksum.enabled",
        "parquet.private.read.filter.predicate", "parquet.read.bad.record.threshold",
        "parquet.read.filter", "parquet.read.schema", "parquet.read.support.class",
        "parquet.size.statistics.enabled", "parquet.size.statistics.enabled#<column>",
        "parquet.split.files", "parquet.statistics.truncate.length", "parquet.strict.typing",
        "parquet.summary.metadata.level", "parquet.task.side.metadata", "parquet.validation",
        "parquet.write.support.class", "parquet.writer.max-padding", "parquet.writer.version",
    ),
    *_irrelevant(
        "memory and reads of Java's ORC library",
        "orc.bloom.filter.ignore.non-utf8", "orc.dictionary.implementation",
        "orc.max.disk.range.chunk.limit", "orc.max.file.length", "orc.memory.pool",
        "orc.min.disk.seek.size", "orc.min.disk.seek.size.tolerance", "orc.overwrite.output.file",
        "orc.row.batch.size", "orc.row.child.limit", "orc.rows.between.memory.checks",
        "orc.use.zerocopy",
    ),
    *_irrelevant(
        "a detail of the strategy `weight-robin`, which is refused",
        "data-file.external-paths.weights",
    ),
    *_irrelevant(
        "a detail of `chain-table.enabled`, which is refused",
        "chain-table.chain-partition-keys", "chain-table.split.key-range-enabled",
        "chain-table.streaming.merge-snapshot",
    ),
    *_irrelevant(
        "a parameter of a callback, and callbacks are refused",
        "commit.callback.#.param", "tag.callback.#.param",
        "commit.callback.<class>.param", "tag.callback.<class>.param",
        "visibility-callback.timeout", "visibility-callback.check-interval",
    ),
    *_irrelevant(
        "how Flink and Spark cluster files; for ingestd see `ingestd compact --order-by`",
        "clustering.columns|sink.clustering.by-columns",
        "clustering.strategy|sink.clustering.strategy",
        "clustering.history-partition.limit", "clustering.history-partition.idle-to-full-sort",
        "clustering.incremental.optimize-write", "clustering.incremental.mode",
    ),
    *_irrelevant(
        "a detail of BLOB and VECTOR columns, which ingestd does not write",
        "blob.target-file-size", "blob.split-by-file-size", "blob-as-descriptor",
        "blob-compaction.enabled", "blob-view.resolve.enabled", "blob-write-null-on-fetch-failure",
        "blob-write-null-on-missing-file", "blob.copy-buffer-size", "lookup.blob-as-descriptor",
        "vector.file.format", "vector.target-file-size",
    ),
    *_irrelevant(
        "a detail of `variant.inferShreddingSchema`, which is refused",
        "variant.shredding.maxSchemaWidth", "variant.shredding.maxSchemaDepth",
        "variant.shredding.minFieldCardinalityRatio", "variant.shredding.maxInferBufferRow",
        "variant.shredding.adaptive.maxInferBufferRow", "variant.shredding.inferenceMode",
        "variant.shredding.adaptive.retentionRatio",
    ),
    *_irrelevant(
        "ingestd reads tables without their global indexes",
        "global-index.external-path", "global-index.column-update-action",
        "global-index.row-count-per-shard", "global-index.build.max-shard",
        "global-index.build.max-parallelism", "global-index.enabled", "global-index.thread-num",
        "full-text-index.search-mode", "global-index.search-mode", "scalar-index.search-mode",
        "vector-index.search-mode", "vector-search.distribute.enabled",
        "vector-search.lateral-join.batch-size",
    ),
    *_irrelevant(
        "an option of format tables, which are refused by `type`",
        "format-table.implementation", "format-table.partition-path-only-value",
        "format-table.file.compression", "format-table.commit-hive-sync-url",
        "format-table.scan.list-parallelism",
    ),
    *_irrelevant(
        "how Java's client of a Hive Metastore is configured",
        "metadata.iceberg.hadoop-conf-dir", "metadata.iceberg.hive-client-class",
        "metadata.iceberg.glue.skip-archive",
    ),
    *_irrelevant(
        "`hive-catalog` does not ask the metastore to compute statistics",
        "metadata.iceberg.hive-skip-update-stats",
    ),
    *_irrelevant(
        "how Flink and Spark read",
        "batch-scan-mode", "stream-scan-mode", "consumer-id", "consumer.mode",
        "consumer.ignore-progress", "continuous.discovery-interval", "file-reader-async-threshold",
        "incremental-between-tag-to-snapshot", "key-value.sequence_number.enabled",
        "table-read.sequence-number.enabled", "read.batch-size", "scan.bounded.watermark",
        "scan.ignore-corrupt-files", "scan.ignore-lost-files", "scan.manifest.parallelism",
        "scan.max-splits-per-task", "scan.plan-sort-partition", "source.split.target-size",
        "streaming.read.snapshot.delay", "streaming-read-append-overwrite",
        "read.allow.fullScan", "read.changelog", "read.shuffle-bucket-with-partition",
        "read.stream.maxBytesPerTrigger", "read.stream.maxFilesPerTrigger",
        "read.stream.maxRowsPerTrigger", "read.stream.maxTriggerDelayMs",
        "read.stream.minRowsPerTrigger", "scan.bounded", "scan.dedicated-split-generation",
        "scan.infer-parallelism", "scan.infer-parallelism.max", "scan.max-snapshot.count",
        "scan.parallelism", "scan.partitions", "scan.remove-normalize",
        "scan.split-enumerator.batch-size", "scan.split-enumerator.mode",
        "scan.watermark.alignment.group", "scan.watermark.alignment.max-drift",
        "scan.watermark.alignment.update-interval", "scan.watermark.emit.strategy",
        "scan.watermark.idle-timeout", "source.checkpoint-align.enabled",
        "source.checkpoint-align.timeout", "source.operator-uid.suffix",
        "source.split.target-size-with-column-pruning", "scan.bucket",
        "scan.fallback-branch.read-fail-fast", "scan.plan-auto-tag-for-read.time-retained",
    ),
    *_irrelevant(
        "how Paimon 2.0 writes data evolution, whose files ingestd only reads",
        "data-evolution.compaction.rewrite-row-ids", "data-evolution.merge-into.file-pruning",
        "data-evolution.merge-into.source-persist", "data-evolution.row-sidecar.enabled",
        "data-evolution.reassign.skip-contiguous-row-count",
        "data-evolution.row-id-conflict-rewrite.max-size",
        "data-evolution.row-sidecar.max-selected-rows",
        "data-evolution.row-sidecar.max-selection-ratio",
    ),
    *_irrelevant(
        "how writers of Paimon 2.0 size, order and number what they write; any choice is read",
        "compaction.skip-expired-partitions", "compaction.small-file-ratio",
        "manifest-sort.enabled", "manifest-sort.max-rewrite-size", "manifest-sort.partition-field",
        "postpone.target-row-num-per-bucket", "postpone.target-size-per-bucket",
        "row-tracking.partition-group-on-commit", "target-file-row-num",
        "write.sequence-number-init-mode",
    ),
    *_irrelevant(
        "lookup joins and local lookup files of Java",
        "lookup.async", "lookup.async-thread-number", "lookup.bootstrap-parallelism",
        "lookup.cache",
        "lookup.cache-file-retention", "lookup.cache-rows", "local-kv-db.block-size",
        "lookup.continuous.discovery-interval",
        "lookup.cache-max-disk-size", "lookup.cache-max-memory-size",
        "lookup.cache-spill-compression", "lookup.cache.bloom.filter.enabled",
        "lookup.cache.bloom.filter.fpp", "lookup.cache.high-priority-pool-ratio",
        "lookup.dynamic-partition.refresh-interval", "lookup.dynamic-partition.refresh.async",
        "lookup.hash-load-factor", "lookup.merge-buffer-size", "lookup.merge-records-threshold",
        "lookup.refresh.async", "lookup.refresh.async.pending-snapshot-count",
        "lookup.refresh.full-load-threshold", "lookup.refresh.time-periods-blacklist",
        "lookup.remote-file.enabled", "lookup.remote-file.level-threshold",
    ),
    *_irrelevant(
        "memory, threads and temporary files of Java's writers",
        "async-file-write", "cache-page-size", "cross-partition-upsert.bootstrap-parallelism",
        "cross-partition-upsert.index-ttl", "file-operation.thread-num|delete-file.thread-num",
        "local-merge-buffer-size", "local-sort.max-num-file-handles", "page-size", "sort-engine",
        "sort-spill-buffer-size", "sort-spill-threshold", "spill-compression",
        "spill-compression.zstd-level", "write-buffer-for-append", "write-buffer-size",
        "write-buffer-spill.max-disk-size", "write-buffer-spillable", "write-max-writers-to-spill",
        "write.batch-memory", "write.batch-size|orc.write.batch-size",
    ),
    *_irrelevant(
        "jobs of Flink and Spark that write",
        "changelog-producer.compaction-interval", "changelog.precommit-compact.buffer-size",
        "changelog.precommit-compact.thread-num", "commit.custom-listeners",
        "delete.force-produce-changelog", "end-input.check-partition-expire", "end-input.watermark",
        "filesystem.job-level-settings.enabled", "partition.sink-strategy",
        "postpone.batch-write-fixed-bucket", "postpone.batch-write-fixed-bucket.max-parallelism",
        "precommit-compact", "sink.clustering.sample-factor", "sink.clustering.sort-in-cluster",
        "sink.committer-cpu", "sink.committer-memory", "sink.committer-operator-chaining",
        "sink.cross-partition.managed-memory", "sink.managed.writer-buffer-memory",
        "sink.operator-uid.suffix", "sink.parallelism", "sink.savepoint.auto-tag",
        "sink.use-managed-memory-allocator", "sink.writer-coordinator.cache-memory",
        "sink.writer-coordinator.enabled", "sink.writer-coordinator.page-size", "sink.writer-cpu",
        "sink.writer-memory", "sink.writer-refresh-detectors", "snapshot.watermark-idle-timeout",
        "sort-compaction.local-sample.magnification", "sort-compaction.range-strategy",
        "tag.batch.customized-name", "unaware-bucket.compaction.parallelism", "write.merge-schema",
        "write.merge-schema.explicit-cast", "write.use-v2-write", "zorder.var-length-contribution",
        "flink.<setting>", "spark.<setting>",
    ),
    *_irrelevant(
        "materialized tables of Flink",
        "materialized-table.definition-query", "materialized-table.interval-freshness",
        "materialized-table.interval-freshness.time-unit",
        "materialized-table.logical-refresh-mode",
        "materialized-table.refresh-handler-bytes",
        "materialized-table.refresh-handler-description",
        "materialized-table.refresh-mode", "materialized-table.refresh-status",
    ),
    *_irrelevant(
        "tags are no partitions in a metastore, and partitions have no statistics there",
        "metastore.tag-to-partition",
        "metastore.tag-to-partition.preview", "partition.idle-time-to-report-statistic",
    ),
    *_irrelevant("a property of the catalog's table", "auto-create", "owner"),
    *_irrelevant(
        "how JSON files are written, and ingestd only reads them",
        "json.map-null-key-mode", "json.map-null-key-literal",
    ),
    *_irrelevant(
        "compactions run beside the commits, by the pipeline's section compaction",
        "commit.force-compact",
        "lookup-wait|changelog-producer.lookup-wait",
    ),
    *_irrelevant("the name of the pipeline is the commit user", "commit.user-prefix"),
    *_irrelevant(
        "a commit without changes never writes a snapshot", "snapshot.ignore-empty-commit"
    ),
    *_irrelevant(
        "manifests keep the statistics of deleted files, which only makes them larger",
        "manifest.delete-file-drop-stats",
    ),
    *_irrelevant("Java removed it in version 0.8", "sequence.auto-padding"),
    *_irrelevant(
        "keyless tables are compacted in the order of their rows", "bucket-append-ordered",
    ),
    *_irrelevant("a compaction takes what fits its memory", "compaction.file-num-limit"),
    *_irrelevant(
        "a bucket has one index file of deletion vectors", "deletion-vector.index-file.target-size"
    ),
    *_irrelevant(
        "expiry has a process of its own",
        "snapshot.expire.execution-mode",
        "partition.expiration-check-interval",
    ),
)  # fmt: skip

DECLARED: _Options = (*HONOURED, *ICEBERG_OPTIONS, *TEXT_OPTIONS, *_IGNORED)
"""All declared options."""
_BY_NAME: Mapping[str, TableOption[object]] = {
    name: option for option in DECLARED for name in (option.name, *option.aliases)
}
_TEMPLATES = tuple(option for option in DECLARED if option.pattern is not None)


@lru_cache(maxsize=4096)
def find_option(name: str) -> TableOption[object] | None:
    """Return the declaration of an option, by its name or an alias; None if it is unknown.

    A name with columns matches the declaration that has placeholders for them.
    """
    option = _BY_NAME.get(name)
    if option is not None:
        return option
    return next(
        (template for template in _TEMPLATES if re.fullmatch(template.pattern or "", name)), None
    )


def refuse_unknown_options(names: Iterable[str]) -> None:
    """Raise ConfigError, with the most similar declared name, for an unknown option."""
    for name in names:
        if find_option(name) is None:
            raise ConfigError(f"table option '{name}' does not exist{nearest_option(name)}")


def nearest_option(name: str) -> str:
    """Return the end of a message about an unknown option, with the most similar name.

    The result is "" if no name is similar.
    """
    close = difflib.get_close_matches(name, _BY_NAME, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""
