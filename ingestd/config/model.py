"""The model of the configuration: keys, types, defaults and descriptions.

Kafka client properties, Paimon table options and Spark settings keep their own names and are passed
on verbatim.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ingestd.config.errors_section import ErrorsSection
from ingestd.config.notices_section import NoticesSection
from ingestd.config.routing_section import RoutingSection
from ingestd.config.section import Section
from ingestd.config.source_section import SourceSection
from ingestd.config.table_sections import DefaultsSection, TableSection
from ingestd.config.values import (
    Address,
    Duration,
    Name,
    PipelineNames,
    Size,
    Texts,
    is_http_url,
)


class TelemetrySection(Section):
    """Traces of batches, sent to an OpenTelemetry collector."""

    traces: Literal["none", "otlp"] = Field(
        default="none",
        description="`otlp` sends a trace of each batch to a collector by OTLP over HTTP; needs "
        "the extra `ingestd[otel]`. `OTEL_...` variables alone do not turn it on.",
    )
    endpoint: str | None = Field(
        default=None,
        min_length=1,
        description="Base URL of the collector, such as `http://collector:4318`; default "
        "`OTEL_EXPORTER_OTLP_ENDPOINT`, else `http://localhost:4318`. Headers, "
        "certificates, sampling and the service name are set by the standard "
        "`OTEL_...` variables.",
    )

    @field_validator("endpoint")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        if value is not None and not is_http_url(value):
            raise ValueError("give the collector's base URL, as http://collector:4318")
        return value


def _mode(value: object) -> object:
    """Return `off` for false: YAML 1.1 parsers, such as Helm's, read a plain `off` as a boolean."""
    return "off" if str(value).lower() == "false" else value


Mode = Annotated[Literal["background", "inline", "off"], BeforeValidator(_mode)]


class CompactionSection(Section):
    """Settings of compaction: in which processes it runs, and how long ingest waits for it.

    Options of a table, such as `num-sorted-run.compaction-trigger`, determine when it is compacted;
    tables with `write-only` are skipped.
    """

    mode: Mode = Field(
        default="background",
        description="`background`: separate processes compact tables when due. `inline`: "
        "each batch also waits for the compactions that it triggers. `off`: tables "
        "are compacted by something else, such as `ingestd compact` on a schedule. "
        "Tables with the option `write-only` are never compacted.",
    )
    inline_budget: Duration = Field(
        default=10.0,
        description="Maximum wait of a batch in the mode `inline`; unfinished compactions "
        "continue in the background.",
    )
    processes: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Number of tables that are compacted or expired at a time, each by a process "
        "of low priority.",
    )
    max_throttle: Duration = Field(
        default=30.0,
        description="Maximum wait of ingest between two batches while a bucket has more sorted "
        "runs than the table's `num-sorted-run.stop-trigger`; `0s` never waits.",
    )


class ExpirySection(Section):
    """Settings of the expiry of snapshots, changelogs, partitions and tags in the background."""

    enabled: bool = Field(
        default=True,
        description="Expire snapshots, changelogs, partitions and tags, and create automatic "
        "tags, as the options of each table specify; not for tables with `write-only`.",
    )
    interval: Duration = Field(
        default=60.0,
        gt=0,
        description="How often a table is checked; up to an hour while nothing is committed to it.",
    )


class PipelineSection(Section):
    """The identity of the pipeline, its trigger, and whether it commits group offsets."""

    name: Name = Field(
        default="ingestd",
        description="Identity of the pipeline in the tables (commit user `ingestd-NAME`). A "
        "pipeline with another name starts from the beginning, unless `formerly` "
        "lists the old name.",
    )
    formerly: PipelineNames = Field(
        default=(),
        description="Earlier names of the pipeline: progress recorded under them is continued.",
    )
    trigger: Duration = Field(
        default=1.0, description="Minimum time between the starts of two micro-batches."
    )
    commit_group_offsets: bool = Field(
        default=True,
        description="Commit Kafka's group offsets after each batch, for lag tools. Only a first "
        "start with `startup-mode: group-offsets` reads them.",
    )


class CatalogSection(Section):
    """The section `warehouse.catalog`: the catalog of the tables, its address and credentials."""

    metastore: str = Field(
        default="filesystem",
        description="Catalog: `filesystem` keeps a table in `DB.db/TABLE`, `jdbc` in addition "
        "keeps its name in a database, `hive` in a Hive Metastore, `rest` is a server of Paimon's "
        "REST catalog protocol.",
    )
    case_sensitive: bool = Field(
        default=True,
        description="Whether names of databases, tables and columns may have upper-case letters "
        "(`filesystem`; with `hive` and `jdbc` they never have).",
    )
    uri: str | None = Field(
        default=None,
        min_length=1,
        description="Address of the catalog server (`rest`), such as `https://host`; of the "
        "metastore (`hive`): `thrift://HOST:9083`, several with commas; or URL of the catalog's "
        "database (`jdbc`): `jdbc:postgresql://HOST:PORT/DATABASE`, `jdbc:mysql://...` or "
        "`jdbc:sqlite:/PATH`.",
    )
    user: str | None = Field(
        default=None, min_length=1, description="User of the catalog's database (`jdbc`)."
    )
    password: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="Password for the catalog's database (`jdbc`); write `${env:NAME}` or "
        "`${file:PATH}`.",
    )
    options: Texts = Field(
        default_factory=dict,
        repr=False,
        description="Further options of the catalog, under Paimon's names. `hive` and `jdbc`: "
        "`lock.enabled`, `lock-acquire-timeout`, `lock-check-max-sleep`, `sync-all-properties`; "
        "`hive`: `hive-conf-dir`, `location-in-properties`, `table.type`; `jdbc`: `catalog-key`, "
        "`lock-key-max-length`, and `jdbc.NAME` for a property of the driver; `rest`: "
        "`header.NAME`, `data-token.enabled`, and `token.provider: dlf` with `dlf.NAME`.",
    )
    warehouse: str | None = Field(
        default=None,
        min_length=1,
        description="Name of the warehouse at the catalog server (`rest`); default "
        "`warehouse.path`, which in any case holds ingestd's own files.",
    )
    token: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="Bearer token for the catalog server (`rest`); write `${env:NAME}` or "
        "`${file:PATH}`.",
    )
    auth_file: str | None = Field(
        default=None,
        min_length=1,
        description="File with the bearer token (`rest`), read again when it changes.",
    )


class WarehouseSection(Section):
    """The location and the catalog of the tables."""

    path: str = Field(
        min_length=1,
        description="Root of the warehouse: a path (relative to the folder of this file), a "
        "`file:` URI, `s3://BUCKET/PATH`, `oss://BUCKET/PATH`, `gs://BUCKET/PATH`, "
        "`abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH`, or "
        "`hdfs://HOST:8020/PATH`.",
    )
    database: str = Field(default="default", min_length=1, description="Database of the tables.")
    shared: bool = Field(
        default=False,
        description="With a cluster as `spark.master` and a local path: all machines mount the "
        "same file system there. Tasks check it before they write.",
    )
    options: Texts = Field(
        default_factory=dict,
        repr=False,
        description="Options of the file system of the path, under Paimon's names, such as "
        "`s3.endpoint`, `fs.gs.auth.service.account.json.keyfile`, "
        "`fs.azure.account.key` or `hadoop-conf-dir`. Credentials that are not given "
        "are taken from the environment, such as `AWS_ACCESS_KEY_ID`.",
    )
    catalog: CatalogSection = Field(
        default_factory=CatalogSection, description="Catalog of the tables."
    )


class ProcessingSection(Section):
    """Limits on the memory and the tasks of batches."""

    small_batch_records: int = Field(
        default=20_000, ge=0, description="A batch of at most this many records runs in one task."
    )
    write_tasks: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="Number of write tasks of a batch; by default one per core.",
    )
    max_chunk_records: int = Field(
        default=50_000, ge=1, description="Maximum number of records that a task decodes at a time."
    )
    max_chunk_bytes: Size = Field(
        default=32 << 20,
        ge=1 << 10,
        description="Maximum size of the records that a task decodes at a time.",
    )
    max_record_bytes: Size = Field(
        default=16 << 20, ge=1 << 10, description="Larger records become dead letters."
    )
    write_buffer_size: Size = Field(
        default=64 << 20,
        ge=1 << 20,
        description="Maximum size of the rows that a write task merges, sorts and writes at a "
        "time; a table with more rows in one batch gets several files.",
    )
    worker_memory: Size = Field(
        default=4 << 30,
        ge=512 << 20,
        description="Memory limit of a Python worker. A topic partition with a record that "
        "exceeds it is set aside, and other partitions continue.",
    )
    index_cache_bytes: Size = Field(
        default=64 << 20,
        ge=0,
        description="Maximum size of the hash indexes of dynamic buckets (4 bytes a key) that "
        "each worker caches between batches, and the same again for indexes of keys "
        "that move between partitions (20 bytes a key). Beyond this size, large index files "
        "are cached on the local disk (`TMPDIR`, up to 1 GB); small ones, or the "
        "table's keys, are read again.",
    )


class RestartSection(Section):
    """Limits and delays of restarts of a failed query, and the timeout of a batch."""

    max_attempts: int = Field(
        default=10, ge=0, description="Maximum number of restarts within `window`."
    )
    window: Duration = Field(
        default=600.0, gt=0, description="Restarts older than this are not counted."
    )
    initial_backoff: Duration = Field(default=1.0, description="Wait before the first restart.")
    max_backoff: Duration = Field(
        default=60.0, description="The wait doubles with each restart up to this."
    )
    batch_timeout: Duration = Field(
        default=1800.0,
        gt=0,
        description="`/livez` fails while a micro-batch takes longer than this, so that a "
        "liveness probe restarts the daemon.",
    )


class HttpSection(Section):
    """The section `http`: address, TLS, token and metric labels of the daemon's HTTP server."""

    listen: Address = Field(
        default="127.0.0.1:8080",
        description="HOST:PORT of the console, `/metrics`, `/livez`, `/readyz` and `/status`. Port "
        "0 takes a free port; containers need `0.0.0.0:8080`.",
    )
    linger: Duration = Field(
        default=0.0,
        description="How long the HTTP server keeps running after the pipeline has failed, so that "
        "a scrape sees the state `failed`; set it above the scrape interval.",
    )
    tls_certificate: str | None = Field(
        default=None,
        min_length=1,
        description="PEM file with the server certificate, which turns on TLS; needs `tls-key`. A "
        "replaced certificate is used from the next connection on.",
    )
    tls_key: str | None = Field(
        default=None, min_length=1, description="PEM file with the key of `tls-certificate`."
    )
    auth_file: str | None = Field(
        default=None,
        min_length=1,
        description="File with the bearer token that all pages but `/livez` and `/readyz` "
        "require; read for each request.",
    )
    metrics_per_table: bool = Field(
        default=True,
        description="Whether `/metrics` has series for each table. Otherwise series have no label "
        "`table`: counters, histograms and numbers of files are summed over all "
        "tables, other gauges have the largest value.",
    )
    metrics_per_partition: bool = Field(
        default=True,
        description="Whether `/metrics` has series for each topic partition. Otherwise series "
        "have no label `partition`: records and offsets are summed over a topic, "
        "other gauges have the largest value.",
    )

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls-certificate and tls-key are given together, or neither is")
        return self


class LoggingSection(Section):
    """The format and the minimum level of log lines, which are written to standard output."""

    format: Literal["auto", "json", "text"] = Field(
        default="auto", description="`auto` is text on a terminal and JSON elsewhere."
    )
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Minimum level of log lines."
    )


class Config(BaseSettings):
    """The configuration of one pipeline."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=True
    )

    warehouse: WarehouseSection = Field(description="Location of the tables.")
    sources: Mapping[Name, SourceSection] = Field(
        min_length=1, description="Kafka sources by name; the name is stored in the tables."
    )
    pipeline: PipelineSection = Field(
        default_factory=PipelineSection, description="Identity of the pipeline, and its trigger."
    )
    routing: RoutingSection = Field(
        default_factory=RoutingSection,
        description="Which source tables are ingested, and the names of their targets.",
    )
    defaults: DefaultsSection = Field(
        default_factory=DefaultsSection, description="Settings of all tables."
    )
    tables: Mapping[str, TableSection] = Field(
        default={}, description="Target tables by name, where they differ from `defaults`."
    )
    errors: ErrorsSection = Field(
        default_factory=ErrorsSection, description="What happens to rejected records."
    )
    processing: ProcessingSection = Field(
        default_factory=ProcessingSection, description="Limits on memory and tasks."
    )
    restart: RestartSection = Field(
        default_factory=RestartSection, description="How often a failed query is started again."
    )
    compaction: CompactionSection = Field(
        default_factory=CompactionSection, description="Compaction of the tables."
    )
    expiry: ExpirySection = Field(
        default_factory=ExpirySection, description="Expiry of old snapshots."
    )
    http: HttpSection = Field(
        default_factory=HttpSection, description="The HTTP server of the daemon."
    )
    logging: LoggingSection = Field(default_factory=LoggingSection, description="Log lines.")
    telemetry: TelemetrySection = Field(
        default_factory=TelemetrySection, description="Traces of batches."
    )
    notices: NoticesSection = Field(
        default_factory=NoticesSection, description="Events of the pipeline, sent to a webhook."
    )
    spark: Texts = Field(
        default={}, description="Settings of the Spark session, verbatim; local by default."
    )

    @model_validator(mode="after")
    def _spark_names(self) -> Self:
        strange = [name for name in self.spark if not name.startswith("spark.")]
        if strange:
            raise ValueError(f"spark: settings of Spark begin with 'spark.', not {strange}")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return only the source of the arguments: `load_config` applies the environment itself."""
        return (init_settings,)
