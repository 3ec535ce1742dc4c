"""Checks across keys: registered names, regular expressions, and whether tables can be created."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath

from ingestd.cdc.base import DATA_FORMATS, describe_format, format_descriptors
from ingestd.cdc.columns.json_columns import refuse_unreadable
from ingestd.cdc.columns.type_mapping import read_type_mapping
from ingestd.config.allowed_keys import nearest
from ingestd.config.catalog_options import catalog_options, catalog_problems
from ingestd.config.document import Document, Path
from ingestd.config.model import Config
from ingestd.config.registry_section import registry_settings
from ingestd.config.routing_section import routing_of
from ingestd.config.secret_resolution import plain_secrets
from ingestd.config.source_section import SourceSection, check_positions
from ingestd.config.spark_master import has_executors, is_one_machine
from ingestd.config.table_sections import TableSection, settings_of
from ingestd.config.validation_errors import ValidationIssue
from ingestd.errors import ConfigError, IngestdError
from ingestd.ingest.computed.row_filter import RowFilter, filter_refusal
from ingestd.ingest.rows.router import Router
from ingestd.ingest.settings.context import KIND_COLUMN, TableSettings
from ingestd.ingest.settings.evolution_policy import check_policy
from ingestd.ingest.settings.ordering import refuse_ordering
from ingestd.ingest.settings.shape_settings import check_shape
from ingestd.ingest.settings.soft_deletes import SoftDeletes, soft_delete_refusal
from ingestd.kafka.properties import KafkaSource, check_properties
from ingestd.kafka.property_check import property_problem
from ingestd.kafka.registry_settings import check_registry
from ingestd.paimon.catalog.base import METASTORES, Identifier, check_name
from ingestd.paimon.catalog.hive_options import hive_options
from ingestd.paimon.catalog.jdbc import jdbc_options
from ingestd.paimon.io.file_io import file_io_for, is_local
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import DataField, DataType
from ingestd.paimon.spec.merge_rules import columns_named, function_name
from ingestd.paimon.spec.options import core_options, refuse_new_options, refuse_unsupported
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema

_REFUSED_SPARK: Mapping[str, str] = {
    "spark.speculation": "every copy of a task reads and writes the same records again, and the "
    "files of the slower copy stay in the table's folders until orphan files are removed; set "
    "spark.excludeOnFailure.enabled for nodes that fail",
    "spark.dynamicAllocation.enabled": "a removed executor takes the hash indexes and consumers "
    "of its workers along, which each new one loads again; set spark.executor.instances, or "
    "spark.cores.max on a standalone cluster",
}
"""Spark settings that must not be true, each with the reason and an alternative."""
_OF_TASKS = ("sources", "warehouse")
"""Sections with secrets that tasks use."""
UNKNOWN_KEY = "key"
"""A placeholder for the columns of message keys, which are unknown before the first message."""
_TEXT = DataType("STRING")
_OF_FUNCTION: Mapping[str, DataType] = {
    "sum": DataType("BIGINT"),
    "product": DataType("BIGINT"),
    "bool_and": DataType("BOOLEAN"),
    "bool_or": DataType("BOOLEAN"),
    "collect": DataType("ARRAY", element=_TEXT),
    "merge_map": DataType("MAP", key=_TEXT.not_null(), value=_TEXT),
}
"""Column types of the aggregate functions that do not take text."""


def cross_check(config: Config, document: Document) -> list[ValidationIssue]:
    """Return the errors of a configuration that validation of its single values cannot find.

    `document` is the document from which it was loaded, with the locations for the errors.
    """
    return list(_Checks(config, document).issues())


class _Checks:
    """The checks of one configuration; errors that they raise become issues with locations."""

    def __init__(self, config: Config, document: Document) -> None:
        self._config = config
        self._document = document
        self._issues: list[ValidationIssue] = []

    def issues(self) -> list[ValidationIssue]:
        config = self._config
        for name, source in config.sources.items():
            self._check_source(name, source)
        self._check_warehouse()
        self._check_spark()
        self._check_routing()
        self._check_table(("defaults", "options"), settings_of(config.defaults))
        for name, table in config.tables.items():
            self._check_table_section(name, table)
        return self._issues

    @contextmanager
    def _at(self, *path: str) -> Iterator[None]:
        try:
            yield
        except IngestdError as error:
            self._add(path, error.message)

    def _add(self, path: Path, problem: str) -> None:
        self._issues.append(ValidationIssue.at(self._document, path, problem))

    def _check_source(self, name: str, source: SourceSection) -> None:
        with self._at("sources", name, "kafka"):
            check_properties(KafkaSource(name, source.topics, properties=source.kafka))
        self._check_dead_letter_topic(name, source)
        for property_name, value in source.kafka.items():
            if (problem := property_problem(property_name, value)) is not None:
                self._add(("sources", name, "kafka", property_name), problem)
        if source.format not in DATA_FORMATS:
            problem = f"unknown data format{nearest(source.format, DATA_FORMATS)}"
            self._add(("sources", name, "format"), problem)
        with self._at("sources", name, "type-mapping"):
            read_type_mapping(source.type_mapping, source.format)
        for key in ("startup-specific-offsets", "bounded-specific-offsets"):
            with self._at("sources", name, key):
                check_positions(source, key)
        self._check_registry(name, source)

    def _check_dead_letter_topic(self, name: str, source: SourceSection) -> None:
        topic = self._config.errors.dead_letter_topic
        topics = KafkaSource(name, source.topics, source.topic_pattern, source.topic_exclude)
        if topic is not None and topics.selects(topic):
            problem = (
                f"is a topic that source {name} reads, so each dead letter would be read, rejected "
                f"and sent again; name another topic, or add it to sources.{name}.topic-exclude"
            )
            self._add(("errors", "dead-letter-topic"), problem)

    def _check_registry(self, name: str, source: SourceSection) -> None:
        section = source.schema_registry
        known = source.format in DATA_FORMATS
        registry = describe_format(source.format).registry if known else "none"
        if section.url and registry == "none":
            problem = f"is not used by the data format '{source.format}'"
            self._add(("sources", name, "schema-registry"), problem)
        elif section.url:
            with self._at("sources", name, "schema-registry"):
                check_registry(registry_settings(section, FilePath()))
        elif registry == "required":
            problem = f"is needed with the data format '{source.format}'"
            self._add(("sources", name, "schema-registry", "url"), problem)
        elif section.model_fields_set:
            self._add(("sources", name, "schema-registry", "url"), "is missing")

    def _check_warehouse(self) -> None:
        warehouse = self._config.warehouse
        with self._at("warehouse", "path"):
            file_io_for(warehouse.path)
        if warehouse.options:
            with self._at("warehouse", "options"):
                file_io_for(warehouse.path, warehouse.options)
        master = self._config.spark.get("spark.master", "local")
        on_disk = is_local(warehouse.path) and not warehouse.shared
        if on_disk and not is_one_machine(master):
            problem = (
                f"is a local path, and spark.master '{master}' runs tasks on other machines: use "
                "an object store or HDFS, or set warehouse.shared if all of them mount the same "
                "file system there"
            )
            self._add(("warehouse", "path"), problem)
        with self._at("warehouse", "database"):
            check_name("database", warehouse.database)
        if warehouse.catalog.metastore not in METASTORES:
            problem = f"unknown metastore{nearest(warehouse.catalog.metastore, METASTORES)}"
            self._add(("warehouse", "catalog", "metastore"), problem)
        for name, problem in catalog_problems(warehouse.catalog):
            self._add(("warehouse", "catalog", name), problem)
        options = catalog_options(warehouse.catalog, FilePath())
        if warehouse.catalog.metastore == "jdbc" and warehouse.catalog.uri is not None:
            with self._at("warehouse", "catalog"):
                jdbc_options(warehouse.path, options)
        if warehouse.catalog.metastore == "hive":
            with self._at("warehouse", "catalog"):
                hive_options(warehouse.path, options)

    def _check_spark(self) -> None:
        for name, reason in _REFUSED_SPARK.items():
            if self._config.spark.get(name, "").strip().lower() == "true":
                self._add(("spark", name), f"is not supported: {reason}")
        if not has_executors(self._config.spark.get("spark.master", "local")):
            return
        for path in plain_secrets(self._document):
            if path[0] in _OF_TASKS:
                self._add(
                    path,
                    "is a secret in the configuration itself, which Spark would send to executors: "
                    "write ${env:NAME} or ${file:PATH}, and give it to the executors as well",
                )

    def _check_routing(self) -> None:
        database = self._config.warehouse.database
        with self._at("routing"):
            Router(routing_of(self._config.routing), database)
        self._check_affixes()
        for source_table, target in self._config.routing.table_mapping.items():
            with self._at("routing", "table-mapping", source_table):
                Identifier(database, target)
            if target == self._config.errors.dead_letter_table:
                problem = "is errors.dead-letter-table, which takes no rows of a source"
                self._add(("routing", "table-mapping", source_table), problem)

    def _check_affixes(self) -> None:
        """Check that prefixes and suffixes can be part of a table's name, here of "t"."""
        routing = self._config.routing
        names: dict[Path, str] = {("table-prefix",): f"{routing.table_prefix}t"}
        names |= {("table-prefix-db", db): f"{it}t" for db, it in routing.table_prefix_db.items()}
        names |= {("table-suffix",): f"t{routing.table_suffix}"}
        names |= {("table-suffix-db", db): f"t{it}" for db, it in routing.table_suffix_db.items()}
        for path, name in names.items():
            with self._at("routing", *map(str, path)):
                check_name("table", name)

    def _check_table_section(self, name: str, table: TableSection) -> None:
        with self._at("tables", name):
            check_name("table", name)
        defaults = settings_of(self._config.defaults)
        given_from_key = table.primary_keys is None and "primary_keys" in table.model_fields_set
        if given_from_key and defaults.primary_keys is not None:
            problem = "'from-key' cannot override defaults.primary-keys"
            self._add(("tables", name, "primary-keys"), problem)
        self._check_table(("tables", name), settings_of(table).over(defaults))

    def _check_table(self, path: Path, settings: TableSettings) -> None:
        """Check the schema of a table with these settings; unknown columns have placeholders."""
        keys = settings.primary_keys
        try:
            if settings.is_ordered_by_position:
                self._check_ordering(settings)
            settings = settings.ordered()
            columns = placeholder_columns(settings)
            for name, data_type in settings.column_types.items():
                refuse_unreadable(name, data_type)
            check_shape(settings.shape, keys or ())
            check_policy(settings.evolution)
            schema = new_schema(
                list(columns.items()),
                placeholder_key(settings) if keys is None else keys,
                settings.partition_keys,
                settings.options,
                0,
            )
            core_options(schema)
            refuse_new_options(settings.options)
            refuse_unsupported(schema, for_write=True)
            if settings.keyless_table_mode == "audit":
                _check_audit(settings)
            if settings.shape.where is not None:
                _check_filter(settings.shape.where, settings, schema)
            if (soft := settings.shape.soft_deletes()) is not None:
                _check_soft_deletes(soft, schema)
        except IngestdError as error:
            self._add(path, error.message)

    def _check_ordering(self, settings: TableSettings) -> None:
        refuse_ordering(settings.options, settings.position_column, settings.primary_keys)
        positioned = {
            format_descriptor.name
            for format_descriptor in format_descriptors()
            if format_descriptor.source_position
        }
        if not positioned & {source.format for source in self._config.sources.values()}:
            raise ConfigError(
                "ordering 'source-position' needs a data format whose messages contain a position "
                f"({', '.join(sorted(positioned))}), and no source has such a format"
            )
        routing = self._config.routing
        if routing.merge_shards or any(rule.merge_shards for rule in routing.rules):
            raise ConfigError(
                "ordering 'source-position' cannot compare the logs of several databases: it "
                "cannot be combined with merge-shards"
            )


def _check_audit(settings: TableSettings) -> None:
    """Raise ConfigError if an added column or a condition needs the name of the row-kind column."""
    where, shape = settings.shape.where, settings.shape
    used = {*shape.added(), *(where.sources if where is not None else ())}
    used.update(shape.needed())
    if KIND_COLUMN in used:
        raise ConfigError(
            f"keyless-table-mode 'audit' adds the column '{KIND_COLUMN}' after all others: no "
            "condition can use it, and no other column can have its name (metadata columns: set a "
            "metadata-column-prefix)"
        )


def _check_filter(where: RowFilter, settings: TableSettings, schema: TableSchema) -> None:
    """Raise ConfigError if a row filter does not fit the types or the options of its table.

    It cannot use a computed column whose value changes with the time.
    """
    types = dict(settings.column_types)
    for name in where.sources:
        if (added := settings.shape.added_type(name, settings.column_types)) is not None:
            types[name] = added
    where.check(types)
    needed = settings.shape.depends_on(where.sources)
    for column in settings.shape.computed:
        if column.name in needed and column.depends_on_time:
            raise ConfigError(
                f"{where}: {column} changes with the time, so that records that are read again "
                "would give other rows; use another column"
            )
    if (refusal := filter_refusal(schema)) is not None:
        raise ConfigError(refusal)


def _check_soft_deletes(soft: SoftDeletes, schema: TableSchema) -> None:
    """Raise ConfigError if a table with this schema cannot keep deleted rows."""
    if (refusal := soft_delete_refusal(schema, soft)) is not None:
        raise ConfigError(refusal)


def placeholder_key(settings: TableSettings) -> tuple[str, ...]:
    """Return a primary key for a trial schema: the columns that the settings require in it.

    A placeholder, `UNKNOWN_KEY`, stands for columns that are known only from messages.
    """
    needed = [*settings.partition_keys, *_bucket_keys(settings)]
    return tuple(dict.fromkeys([*needed, UNKNOWN_KEY]))


def placeholder_columns(settings: TableSettings) -> dict[str, DataType]:
    """Return the columns that the settings name, with types, for a trial schema.

    The placeholder `UNKNOWN_KEY` is added if the settings do not specify the primary key, or name
    no column at all.
    """
    keys = settings.primary_keys
    names = [
        *(placeholder_key(settings) if keys is None else keys),
        *settings.partition_keys,
        *_bucket_keys(settings),
        *columns_named(settings.options),
        *settings.column_types,
    ]
    names += sorted(settings.shape.added())
    columns = {
        name: settings.column_types.get(name) or _placeholder_type(settings, name) for name in names
    }
    return columns or {UNKNOWN_KEY: _TEXT}


def _bucket_keys(settings: TableSettings) -> tuple[str, ...]:
    return honoured.BUCKET_KEY.of(settings.options)


def _placeholder_type(settings: TableSettings, name: str) -> DataType:
    added = settings.shape.added_type(name, settings.column_types)
    if added is not None:
        return added
    if name in (*settings.partition_keys, *_bucket_keys(settings), *(settings.primary_keys or ())):
        return _TEXT
    function = function_name(settings.options, name)
    if function in ("nested_update", "nested_partial_update"):
        nested = honoured.NESTED_KEY.of(settings.options, name)
        return DataType("ARRAY", element=_row(*nested, "of"))
    if function == "merge_map_with_keytime":
        time = honoured.TIME_FIELD.of(settings.options, name) or "time"
        return DataType("MAP", key=_TEXT.not_null(), value=_row(f"{time} of", time))
    return _OF_FUNCTION.get(function or "", _TEXT)


def _row(*names: str) -> DataType:
    distinct = dict.fromkeys(names)
    return DataType("ROW", fields=tuple(DataField(i, n, _TEXT) for i, n in enumerate(distinct)))
