from pathlib import Path

from ingestd.config.effective import effective_settings
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.rejection import RejectionLimits
from ingestd.paimon.spec.data_types import parse_type

FILE = """
pipeline: {name: shop-ods, trigger: 250ms, commit-group-offsets: false}
warehouse: {path: lake, database: ods}
sources:
  shop:
    kafka: {bootstrap.servers: "localhost:9092", client.id: me}
    topic-pattern: shop\\..*
    topic-exclude: [shop.x]
    format: debezium-json
    startup-mode: latest-offset
    on-offset-out-of-range: earliest
    max-offsets-per-trigger: 7
routing: {table-prefix: o_, table-mapping: {a.b: c}, merge-shards: true, unmatched: fail}
defaults: {options: {file.compression: zstd}}
tables:
  item:
    primary-keys: [id, dt]
    partition-keys: [dt]
    options: {bucket: 3}
    schema: {column-types: {price: "DECIMAL(9, 3)"}}
errors: {dead-letter-table: letters}
processing: {small-batch-records: 1, write-tasks: 3, max-chunk-records: 4, max-chunk-bytes: 5kb,
  max-record-bytes: 6kb}
spark: {spark.master: "local[1]"}
"""


def settings(folder: Path, text: str = FILE) -> PipelineSettings:
    path = folder / "f.yaml"
    path.write_text(text, encoding="utf-8")
    return pipeline_settings(load_config(path, {}))


def test_the_pipeline_gets_all_that_the_file_says(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert (found.name, found.commit_user) == ("shop-ods", "ingestd-shop-ods")
    assert (found.database, found.metastore) == ("ods", "filesystem")
    assert found.trigger_seconds == 0.25
    assert found.commit_group_offsets is False
    assert found.dead_letter_table == "letters"
    assert found.max_offsets_per_trigger == {"shop": 7}
    assert found.spark == {"spark.master": "local[1]"}


def test_sources_are_what_the_kafka_side_takes(tmp_path: Path) -> None:
    source = settings(tmp_path).sources["shop"]
    assert source.data_format == "debezium-json"
    assert source.kafka.name == "shop"
    assert source.kafka.properties == {"bootstrap.servers": "localhost:9092", "client.id": "me"}
    assert source.kafka.startup_mode == "latest-offset"
    assert source.kafka.on_offset_out_of_range == "earliest"
    assert source.kafka.selected(["shop.a", "shop.x", "other"]) == ["shop.a"]


def test_tables_and_routing_are_what_the_ingest_side_takes(tmp_path: Path) -> None:
    found = settings(tmp_path)
    item = found.tables["item"].over(found.defaults)
    assert item.primary_keys == ("id", "dt")
    assert item.partition_keys == ("dt",)
    assert item.options == {"file.compression": "zstd", "bucket": "3"}
    assert item.column_types == {"price": parse_type("DECIMAL(9, 3)")}
    assert found.routing.table_prefix == "o_"
    assert found.routing.table_mapping == {"a.b": "c"}
    assert found.routing.merge_shards is True
    assert found.routing.unmatched == "fail"


def test_limits_are_numbers_of_records_and_bytes(tmp_path: Path) -> None:
    limits = settings(tmp_path).limits
    assert (limits.small_batch_records, limits.write_tasks, limits.max_chunk_records) == (1, 3, 4)
    assert (limits.max_chunk_bytes, limits.max_record_bytes) == (5120, 6144)


def test_relative_paths_start_from_the_folder_of_the_file(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found.warehouse == f"{tmp_path}/lake"


def test_absolute_paths_and_file_uris_stay(tmp_path: Path) -> None:
    text = FILE.replace("path: lake", "path: file:///lake")
    found = settings(tmp_path, text)
    assert found.warehouse == "/lake"


def test_the_catalog_gets_its_options_under_the_names_of_paimon(tmp_path: Path) -> None:
    assert settings(tmp_path).catalog_options == {"case-sensitive": "true"}
    catalog = "{metastore: rest, uri: 'https://h', warehouse: w, auth-file: token}"
    text = FILE.replace("{path: lake,", f"{{path: lake, catalog: {catalog},")
    found = settings(tmp_path, text)
    assert found.catalog_options == {
        "uri": "https://h",
        "warehouse": "w",
        "token-file": str(tmp_path / "token"),
    }
    assert found.warehouse == str(tmp_path / "lake")


def test_a_jdbc_catalog_has_its_options_and_no_capitals(tmp_path: Path) -> None:
    catalog = "{metastore: jdbc, uri: 'jdbc:postgresql://h/c', user: u, options: {catalog-key: k}}"
    text = FILE.replace("{path: lake,", f"{{path: lake, catalog: {catalog},")
    result = settings(tmp_path, text)
    expected = {"uri": "jdbc:postgresql://h/c", "jdbc.user": "u", "catalog-key": "k"}
    assert result.catalog_options == expected
    assert not result.routing.case_sensitive


def test_the_token_of_the_catalog_is_nowhere_to_be_seen(tmp_path: Path) -> None:
    catalog = "{metastore: rest, uri: h, token: very-secret-token}"
    text = FILE.replace("{path: lake,", f"{{path: lake, catalog: {catalog},")
    path = tmp_path / "f.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = load_config(path, {})
    found = pipeline_settings(loaded)
    assert found.catalog_options["token"] == "very-secret-token"
    assert "very-secret-token" not in repr(found) + repr(loaded.config)
    assert all(
        "very-secret-token" not in effective_setting.value
        for effective_setting in effective_settings(loaded)
    )


def test_places_of_a_source_are_numbers(tmp_path: Path) -> None:
    text = FILE.replace(
        "startup-mode: latest-offset",
        """startup-mode: specific-offsets
    startup-specific-offsets: {shop.a: {0: 4, 1: 5}, shop.b: {0: 0}}
    bounded-mode: timestamp
    bounded-timestamp-millis: 1767225600000""",
    )
    found = settings(tmp_path, text)
    kafka = found.sources["shop"].kafka
    assert kafka.startup_offsets == {"shop.a": {0: 4, 1: 5}, "shop.b": {0: 0}}
    assert kafka.bounded_timestamp == 1_767_225_600_000
    assert found.is_bounded
    assert not settings(tmp_path).is_bounded


def test_the_form_of_flink_means_the_only_topic(tmp_path: Path) -> None:
    text = FILE.replace("topic-pattern: shop\\..*", "topics: [shop.a]")
    text = text.replace("    topic-exclude: [shop.x]\n", "")
    text = text.replace(
        "startup-mode: latest-offset",
        "startup-mode: specific-offsets\n"
        "    startup-specific-offsets: 'partition:0,offset:42;partition:1,offset:300'",
    )
    kafka = settings(tmp_path, text).sources["shop"].kafka
    assert kafka.startup_offsets == {"shop.a": {0: 42, 1: 300}}


def test_limits_of_rejected_records_are_numbers(tmp_path: Path) -> None:
    none = settings(tmp_path)
    assert (none.rejection_limits, none.dead_letter_topic) == (RejectionLimits(), None)
    given = (
        "errors: {dead-letter-topic: d.l, max-rejected-records: 7, max-rejected-ratio: 0.25, "
        "rejected-window: 50}"
    )
    found = settings(tmp_path, FILE.replace("errors: {dead-letter-table: letters}", given))
    assert found.rejection_limits == RejectionLimits(7, 0.25, 50)
    assert found.dead_letter_topic == "d.l"
