from dataclasses import replace

import pytest

from ingestd.errors import ConfigError, IngestdError, UnsupportedError
from ingestd.paimon.spec.data_types import DataType, parse_type
from ingestd.paimon.spec.options import (
    BucketMode,
    bucket_mode,
    core_options,
    ignored_options,
    refuse_new_options,
    refuse_unsupported,
)
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema

INT, STRING = parse_type("INT"), parse_type("STRING")
COLUMNS = [("dt", STRING), ("k", INT), ("v", STRING)]


def table(
    options: dict[str, str] | None = None,
    *,
    primary: tuple[str, ...] = ("dt", "k"),
    partition: tuple[str, ...] = ("dt",),
    extra: tuple[tuple[str, DataType], ...] = (),
) -> TableSchema:
    return new_schema([*COLUMNS, *extra], primary, partition, options or {}, 0)


def test_defaults_are_those_of_the_specification() -> None:
    options = core_options(table())
    assert (options.bucket, options.bucket_keys, options.bucket_function) == (-1, ("k",), "default")
    assert (options.merge_engine, options.changelog_producer) == ("deduplicate", "none")
    assert (options.file_format, options.file_compression, options.zstd_level) == (
        "parquet", "zstd", 1,
    )  # fmt: skip
    assert options.target_file_size == 128 << 20
    assert core_options(table(primary=())).target_file_size == 256 << 20
    assert options.dynamic_bucket_target_row_num == 2_000_000
    assert options.dynamic_bucket_initial_buckets is None
    assert options.dynamic_bucket_max_buckets == -1
    assert options.dynamic_bucket_assigner_parallelism is None
    assert (options.partition_default_name, options.partition_legacy_name) == (
        "__DEFAULT_PARTITION__", True,
    )  # fmt: skip
    assert options.manifest_target_file_size == 8 << 20
    assert options.manifest_merge_min_count == 30
    assert options.manifest_full_compaction_threshold == 16 << 20
    assert options.commit_max_retries == 10
    assert (options.commit_min_retry_wait_ms, options.commit_max_retry_wait_ms) == (10, 10_000)
    assert (options.data_file_prefix, options.write_only) == ("data-", False)
    assert options.stats_dense_store is True


def test_given_options_are_read() -> None:
    options = core_options(
        table({
            "bucket": "4", "bucket-key": "k", "target-file-size": "1 kb",
            "commit.max-retry-wait": "1 s", "dynamic-bucket.assigner-parallelism": "3",
            "partition.legacy-name": "false", "data-file.prefix": "d-",
        })
    )  # fmt: skip
    assert (options.bucket, options.target_file_size) == (4, 1024)
    assert (options.commit_max_retry_wait_ms, options.dynamic_bucket_assigner_parallelism) == (
        1000, 3,
    )  # fmt: skip
    assert (options.partition_legacy_name, options.data_file_prefix) == (False, "d-")


@pytest.mark.parametrize(
    ("initial", "parallelism", "most", "assigners"),
    [
        ("", "", "", 1),
        ("3", "", "", 3),
        ("", "4", "", 4),
        ("1", "4", "", 1),
        ("8", "4", "-1", 4),
        ("0", "0", "", 1),
        ("8", "4", "2", 2),
        ("", "4", "5", 4),
    ],
)
def test_a_partition_begins_with_as_many_dynamic_buckets_as_it_has_assigners(
    initial: str, parallelism: str, most: str, assigners: int
) -> None:
    given = {
        "initial-buckets": initial,
        "assigner-parallelism": parallelism,
        "max-buckets": most,
    }
    options = {f"dynamic-bucket.{name}": value for name, value in given.items() if value}
    assert core_options(table(options)).dynamic_bucket_assigners == assigners


def test_stats_mode_of_a_column_goes_before_that_of_the_table() -> None:
    options = core_options(
        table({"metadata.stats-mode": "counts", "fields.v.stats-mode": "TRUNCATE(3)"})
    )
    assert [options.stats_mode(name) for name in ("dt", "k", "v")] == [
        "counts", "counts", "truncate(3)",
    ]  # fmt: skip
    assert options.stats_mode("_KEY_k") == options.stats_mode("_VALUE_KIND") == "truncate(128)"


def test_stats_are_kept_for_the_first_columns_only() -> None:
    options = core_options(
        table({"metadata.stats-keep-first-n-columns": "1", "fields.v.stats-mode": "full"})
    )
    assert [options.stats_mode(name) for name in ("dt", "k", "v")] == [
        "truncate(16)", "none", "full",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [("metadata.stats-mode", "truncate(0)"), ("fields.k.stats-mode", "all"),
     ("target-file-size", "big"), ("write-only", "maybe"), ("commit.max-retries", "x")],
)  # fmt: skip
def test_values_that_mean_nothing_are_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"option '{name}' = '"):
        core_options(table({name: value}))


@pytest.mark.parametrize(
    ("options", "primary", "mode"),
    [
        ({"bucket": "3"}, ("dt", "k"), BucketMode.HASH_FIXED),
        ({"bucket": "3", "bucket-key": "k"}, (), BucketMode.HASH_FIXED),
        ({}, ("dt", "k"), BucketMode.HASH_DYNAMIC),
        ({"bucket": "-1"}, ("k",), BucketMode.KEY_DYNAMIC),
        ({}, (), BucketMode.BUCKET_UNAWARE),
        ({"bucket": "-2"}, ("dt", "k"), BucketMode.POSTPONE),
    ],
)
def test_bucket_mode_follows_from_bucket_and_keys(
    options: dict[str, str], primary: tuple[str, ...], mode: BucketMode
) -> None:
    assert bucket_mode(table(options, primary=primary)) is mode


def refused(schema: TableSchema, *, for_write: bool) -> str | None:
    try:
        refuse_unsupported(schema, for_write=for_write)
    except UnsupportedError as error:
        return error.message
    return None


@pytest.mark.parametrize(
    "options",
    [
        {}, {"bucket": "2"}, {"merge-engine": "DEDUPLICATE"}, {"file.compression": "snappy"},
        {"bucket": "2", "bucket-function.type": "mod"}, {"snapshot.num-retained.max": "3"},
        {"scan.mode": "latest"}, {"consumer.expiration-time": "1 d"}, {"write-only": "true"},
        {"tag.automatic-creation": "process-time"}, {"fields.v.stats-mode": "none"},
        {"num-sorted-run.compaction-trigger": "3"}, {"write-buffer-size": "1 gb"},
        {"partition.expiration-time": "7 d"}, {"deletion-vectors.enabled": "false"},
        {"changelog-producer": "none"}, {"ingestd.pipeline": "x"}, {"type": "table"},
        {"dynamic-bucket.max-buckets": "8"}, {"compaction.max-size-amplification-percent": "1"},
    ],
)  # fmt: skip
def test_tables_that_are_kept_right_are_taken(options: dict[str, str]) -> None:
    assert refused(table(options), for_write=True) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("merge-engine", "newest-wins"), ("manifest.format", "orc"),
       
        ("branch", "dev"),
        ("scan.primary-branch", "b"), ("type", "format-table"),
        ("fields.v.unheard-of", "sum"),
        ("pk-clustering-override", "true"), ("blob-descriptor-field", "v"),
        ("csv.mode", "dropmalformed"),
    ],
)  # fmt: skip
def test_options_that_change_what_readers_see_are_refused_by_name(name: str, value: str) -> None:
    for for_write in (False, True):
        message = refused(table({name: value}), for_write=for_write)
        assert message is not None
        assert f"option '{name}' = '{value}'" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bucket-function.type", "sip"), ("file.compression", "lzo"),
        ("file-index.trie.columns", "v"),
        ("data-evolution.enabled", "true"), ("file.format", "csv"), ("blob-field", "v"),
        ("metadata.iceberg.storage", "glue-catalog"), ("commit.callbacks", "X"),
        ("upsert-key", "v"), ("pk-vector.index.columns", "v"),
        ("parquet.encryption.column.keys", "k"),
        ("data-file.external-paths.strategy", "weight-robin"),
    ],
)  # fmt: skip
def test_options_that_ask_something_of_a_writer_are_refused_for_writing_only(
    name: str, value: str
) -> None:
    schema = table({"bucket": "2", name: value})
    message = refused(schema, for_write=True)
    assert message is not None
    assert f"option '{name}' = '{value}'" in message
    assert refused(schema, for_write=False) is None


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("snapshot.time-retaind", "1 h", "did you mean 'snapshot.time-retained'"),
        ("ingestd.number-encodng", "delta", "did you mean 'ingestd.number-encoding'"),
        ("some.new-option", "1", "unknown"),
        ("path", "/x", "the catalog decides where a table is"),
        ("orc.stripe.sise", "65536", "did you mean 'orc.stripe.size'"),
        ("orc.compres.size", "65536", "did you mean 'orc.compress.size'"),
        ("parquet.block.sise", "65536", "did you mean 'parquet.block.size'"),
        ("parquet.bloom.filter.enable", "true", "did you mean 'parquet.bloom.filter.enabled'"),
        ("partition.mark-done-action", "http-report", "not by requests"),
        ("variant.inferShreddingSchema", "true", "unshredded"),
        ("orc.bloom.filter.columns", "v", "file-index.bloom-filter.columns"),
        ("orc.encoding.strategy", "COMPRESSION", "Arrow's writer of ORC files"),
        ("orc.skip.corrupt.data", "true", "a setting of one Java reader"),
        ("orc.encrypt", "k:v", "unencrypted"),
        ("avro.codec", "snappy", "file.compression"),
    ],
)  # fmt: skip
def test_options_are_refused_to_new_tables_that_only_warn_of_existing_ones(
    name: str, value: str, reason: str
) -> None:
    assert refused(table({"bucket": "2", name: value}), for_write=True) is None
    assert reason in ignored_options({name: value})[name]
    with pytest.raises(IngestdError, match=f"option '{name}'"):
        refuse_new_options({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write-buffer-size", "1 gb"), ("parquet.writer.version", "v2"),
        ("parquet.enable.dictionary#v", "false"), ("orc.memory.pool", "0.2"),
        ("sink.parallelism", "2"),
        ("commit.force-compact", "true"), ("commit.user-prefix", "etl"),
        ("snapshot.ignore-empty-commit", "false"), ("manifest.delete-file-drop-stats", "true"),
        ("sequence.auto-padding", "row-kind-flag"), ("fields.v.default-value", "0"),
    ],
)  # fmt: skip
def test_options_that_only_others_mind_pass_with_a_reason(name: str, value: str) -> None:
    refuse_new_options({name: value})
    assert refused(table({"bucket": "2", name: value}), for_write=True) is None
    assert list(ignored_options({name: value})) == [name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bucket", "2"), ("write.compaction-skip", "true"), ("fields.v.aggregate-function", "sum"),
        ("overwrite-upgrade", "false"), ("dynamic-partition-overwrite", "false"),
        ("commit.timeout", "1 min"), ("manifest.format", "avro"), ("commit.callbacks", ""),
        ("file-index.bloom-filter.v.fpp", "0.1"), ("parquet.page.size", "65536"),
        ("orc.compress.size", "131072"), ("orc.stripe.size", "65536"),
    ],
)  # fmt: skip
def test_nothing_is_said_of_options_that_are_obeyed_or_change_nothing(
    name: str, value: str
) -> None:
    refuse_new_options({name: value})
    assert ignored_options({name: value}) == {}


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ("BLOB", "BLOB"), ({"type": "ARRAY", "element": "BLOB"}, "BLOB"),
        ({"type": "VECTOR", "element": "FLOAT", "length": 2}, "VECTOR"),
    ],
)  # fmt: skip
def test_types_that_files_do_not_carry_right_are_refused_by_column(
    document: str, name: str
) -> None:
    schema = table(extra=(("odd", parse_type(document)),))
    for for_write in (True,) if name == "BLOB" else (False, True):
        with pytest.raises(UnsupportedError, match=f"column 'odd'.*{name}"):
            refuse_unsupported(schema, for_write=for_write)


@pytest.mark.parametrize(
    "document",
    [
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(38, 18)",
        "CHAR(3)", "VARCHAR(3)", "STRING", "BINARY(3)", "VARBINARY(3)", "BYTES", "DATE", "TIME(3)",
        "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)",
        {"type": "ARRAY", "element": {"type": "MAP", "key": "STRING", "value": "INT"}},
        {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]},
    ],
)  # fmt: skip
def test_all_types_that_files_carry_right_are_taken(document: str) -> None:
    assert refused(table(extra=(("c", parse_type(document)),)), for_write=True) is None


def test_every_bucket_mode_is_written() -> None:
    for schema in (
        table({"bucket": "-2", "postpone.default-bucket-num": "4"}),
        table({}, primary=("k",)),
        table({"bucket": "3", "bucket-function.type": "hive"}),
        table({"index-file-in-data-file-dir": "true"}),
    ):
        assert refused(schema, for_write=True) is None


def test_moving_keys_are_refused_what_would_leave_old_rows() -> None:
    across = table({"ignore-delete": "true"}, primary=("k",))
    assert refused(across, for_write=False) is None
    with pytest.raises(UnsupportedError, match=r"'ignore-delete' = 'true'.*keys \['dt'\]"):
        refuse_unsupported(across, for_write=True)


def test_mod_buckets_need_a_single_number() -> None:
    schema = table({"bucket": "2", "bucket-function.type": "mod"}, primary=("dt", "v"))
    with pytest.raises(UnsupportedError, match=r"'bucket-function\.type' = 'mod' needs one INT"):
        refuse_unsupported(schema, for_write=True)


def test_binary_partitions_are_refused() -> None:
    schema = table(extra=(("b", parse_type("BYTES")),), partition=("b",), primary=("b", "k"))
    with pytest.raises(UnsupportedError, match="partition column 'b'"):
        refuse_unsupported(schema, for_write=False)


def test_orc_does_not_depend_on_a_zone_in_new_tables() -> None:
    zoned = [("id", parse_type("INT")), ("at", parse_type("TIMESTAMP(3) WITH LOCAL TIME ZONE"))]
    for name, value in (("file.format", "orc"), ("file.format.per.level", "5:orc"),
                        ("changelog-file.format", "orc")):  # fmt: skip
        schema = new_schema(zoned, ["id"], [], {"bucket": "1", name: value}, 0)
        assert schema.options["orc.timestamp-ltz.legacy.type"] == "false"
        refuse_unsupported(schema, for_write=True)
        for legacy in ({}, {"orc.timestamp-ltz.legacy.type": "true"}):
            options = {"bucket": "1", name: value, **legacy}
            with pytest.raises(UnsupportedError, match=r"column 'at'.*in UTC"):
                refuse_unsupported(replace(schema, options=options), for_write=True)
    plain = new_schema(zoned, ["id"], [], {"bucket": "1"}, 0)
    assert "orc.timestamp-ltz.legacy.type" not in plain.options
    refuse_unsupported(plain, for_write=True)
