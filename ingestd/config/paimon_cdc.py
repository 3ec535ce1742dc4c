"""Import arguments of Paimon's `kafka_sync_table` and `kafka_sync_database` as configuration keys.

Whether ingestd accepts a key is only known when the result is loaded as a configuration.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from ingestd.config.document import Path
from ingestd.config.flink_command import FlinkCommand, flink_options
from ingestd.config.import_notes import ImportNotes, Piece
from ingestd.config.paimon_cdc_kafka import import_kafka_conf
from ingestd.errors import IngestdError
from ingestd.log import is_secret_name
from ingestd.paimon.catalog.base import CASE_SENSITIVE, METASTORES
from ingestd.paimon.catalog.hive_options import is_hive_option
from ingestd.paimon.catalog.jdbc import is_jdbc_option
from ingestd.paimon.io.file_io import file_io_for
from ingestd.paimon.io.store_options import is_storage_option

_SOURCE = "kafka"
_STAND_IN = "CHANGE-ME"
_WILD = re.compile(r"(?<!\\)\.|\[\^|\\[SDW]")
_CHECKPOINTING = "execution.checkpointing.interval"
_SAVEPOINT = ("-s", "--fromSavepoint", "execution.savepoint.path", "execution.state-recovery.path")
_PATTERNS = (
    "including_tables",
    "excluding_tables",
    "including_dbs",
    "excluding_dbs",
    "table_prefix",
    "table_suffix",
)
_OF_FLINK = (
    "sink.",
    "scan.",
    "lookup.",
    "source.",
    "continuous.",
    "streaming-read-",
    "local-sort.",
    "auto-create",
    "cdc.",
)
"""Prefixes of table options that only Flink's own sources and sinks use."""
_TUNING = (
    "write-buffer-",
    "page-size",
    "sort-",
    "read.",
    "num-sorted-run.",
    "compaction.",
    "snapshot.expire.",
    "commit.force-",
)
"""Prefixes of table options that tune a writer without changing the rows of the table."""
_FLAGS: Mapping[str, str] = {
    "eager_init": "tables get a snapshot with their first rows",
    "ignore_incompatible": "a table that cannot take its rows stops the pipeline",
    "mode": "all tables are written by one query",
    "schema_init_max_read": "schemas come from all messages, and follow them",
    "merge_shards": "taken as given: Kafka ingestion always merges",
}
_SECTION = "warehouse"
_CATALOG = (_SECTION, "catalog")
_METASTORE = "metastore"
_KEYS: Mapping[str, Mapping[str, str]] = {
    "hive": {"uri": "uri"},
    "rest": {"uri": "uri", "token": "token"},
    "jdbc": {"uri": "uri", "jdbc.user": "user", "jdbc.password": "password"},
}
"""Keys of `warehouse.catalog` by the names of a metastore's options."""
_IS_OPTION: Mapping[str, Callable[[str], bool]] = {
    "hive": is_hive_option,
    "jdbc": is_jdbc_option,
}
"""Metastores with a map `warehouse.catalog.options`, and which options it may contain."""
_SCHEME = re.compile(r"^[A-Za-z][\w+.-]*:(?://[^/]*)?")
_FOLDER = "/var/lib/ingestd"
"""Folder of ingestd's own files if a catalog server determines the locations of tables."""


def import_command(command: FlinkCommand, *, keep_secrets: bool = False) -> ImportNotes:
    """Convert the arguments of a command to configuration keys, with a note on each other argument.

    Secrets become references to environment variables, unless `keep_secrets` is set.
    """
    importer = _Command(command, keep_secrets=keep_secrets)
    importer.run()
    return importer.imported


def _pairs_of(values: list[str]) -> dict[str, str]:
    """Parse `name=value` texts to a mapping; the last value of a name wins."""
    return {
        name.strip(): value.strip() for name, _, value in (value.partition("=") for value in values)
    }


class _Command:
    """The import of one command, which removes arguments as it uses them."""

    def __init__(self, command: FlinkCommand, *, keep_secrets: bool) -> None:
        self.imported = ImportNotes()
        self._command = command
        self._keep_secrets = keep_secrets
        self._arguments = {name: list(values) for name, values in command.arguments.items()}
        self._table = ""
        if command.action == "kafka_sync_table":
            self._table = self._last("table") or _STAND_IN
            if self._table == _STAND_IN:
                self._missing("table")

    def run(self) -> None:
        """Import all arguments, in the order of the configuration."""
        self._pipeline()
        self._warehouse()
        path = ("sources", _SOURCE)
        kafka = import_kafka_conf(self._pairs("kafka_conf"), path, keep_secrets=self._keep_secrets)
        self.imported.pieces += kafka.pieces
        self.imported.notes += kafka.notes
        for name in self._list("type_mapping"):
            essential = name in ("to-string", "to_string")
            self._take(f"type_mapping {name}", (*path, "type-mapping"), [name], essential=essential)
        self._routing()
        self._columns()
        self._keys()
        self._options()
        for name, values in self._arguments.items():
            for value in values:
                text = _FLAGS.get(name, "is not known")
                self.imported.leave(f"--{name} {value}", text, essential=name not in _FLAGS)

    def _take(self, argument: str, path: Path, value: Any, *, essential: bool = True) -> None:  # noqa: ANN401  (part of a document)
        self.imported.take(f"--{argument}", path, value, essential=essential)

    def _missing(self, name: str) -> None:
        self.imported.leave(f"--{name}", "is missing", essential=True)

    def _last(self, name: str) -> str | None:
        values = self._arguments.pop(name, [])
        return values[-1] if values else None

    def _list(self, name: str) -> list[str]:
        words = [
            word.strip() for value in self._arguments.pop(name, []) for word in value.split(",")
        ]
        return [value for value in words if value]

    def _pairs(self, name: str) -> dict[str, str]:
        return _pairs_of(self._arguments.pop(name, []))

    def _of_tables(self, *key: str) -> Path:
        """Return the path of a key: of `tables.NAME` for kafka_sync_table, else of `defaults`."""
        return ("tables", self._table, *key) if self._table else ("defaults", *key)

    def _pipeline(self) -> None:
        """Import the job's name and checkpoint interval from Flink's options; note the others."""
        flink = flink_options(self._command.flink)
        database = self._command.arguments.get("database", [""])[-1]
        name = flink.pop("pipeline.name", self._table or database)
        self.imported.take("the name", ("pipeline", "name"), _plain_name(name), essential=False)
        for option, value in flink.items():
            argument = f"{option} {value}".strip()
            if option == _CHECKPOINTING:
                trigger = f"{value}ms" if value.isdecimal() else value
                self.imported.take(argument, ("pipeline", "trigger"), trigger, essential=False)
            elif option in _SAVEPOINT:
                text = "offsets in Flink's state cannot be read; those of the group can, by "
                text += "startup-mode: group-offsets"
                self.imported.leave(argument, text, essential=True)
            else:
                self.imported.leave(argument, "belongs to Flink")

    def _warehouse(self) -> None:
        warehouse, database = self._last("warehouse"), self._last("database")
        for name, value in (("warehouse", warehouse), ("database", database)):
            if value is None:
                self._missing(name)
        conf = self._pairs("catalog_conf")
        location = (warehouse or f"/{_STAND_IN}", database or "default")
        imported = import_warehouse(*location, conf, keep_secrets=self._keep_secrets)
        self.imported.pieces += imported.pieces
        self.imported.notes += imported.notes

    def _routing(self) -> None:
        if self._table:
            rule = {"match": {"table": ".*"}, "to": self._table, "merge-shards": True}
            self._take(f"table {self._table}", ("routing", "rules"), [rule])
            return
        for name in _PATTERNS:
            value = self._last(name)
            if value is not None:
                fit = _of_table_alone(value) if name.endswith("_tables") else value
                self._take(f"{name} {value}", ("routing", _key_of(name)), fit)
        if "excluding_tables" not in self._command.arguments:
            text = "was not given; ingestd then leaves out working copies of online schema "
            text += "changes and Debezium's signal tables (routing.excluding-tables)"
            self.imported.leave("--excluding_tables", text)
        for name in ("table_mapping", "table_prefix_db", "table_suffix_db"):
            for key, value in self._pairs(name).items():
                self._take(f"{name} {key}={value}", ("routing", _key_of(name), key), value)
        about = "tables of one name in several databases, which share a target"
        self.imported.take(about, ("routing", "merge-shards"), True)

    def _columns(self) -> None:
        for text in self._arguments.pop("computed_column", []):
            name, _, call = text.partition("=")
            path = self._of_tables("computed-columns", name.strip())
            self._take(f"computed_column {text}", path, _quoted_call(call.strip()))
        names = self._list("metadata_column")
        for name in names:
            self._take(f"metadata_column {name}", self._of_tables("metadata-columns"), [name])
        prefix = self._last("metadata_column_prefix")
        if prefix is not None:
            argument = f"metadata_column_prefix {prefix}"
            self._take(argument, self._of_tables("metadata-column-prefix"), prefix)

    def _keys(self) -> None:
        keys = self._list("primary_keys")
        from_source = (self._last("sync_primary_keys_from_source_schema") or "true").lower()
        if keys:
            self._take(f"primary_keys {','.join(keys)}", self._of_tables("primary-keys"), keys)
        elif from_source == "false":
            argument = "sync_primary_keys_from_source_schema false"
            self._take(argument, self._of_tables("primary-keys"), "none")
        partition = self._list("partition_keys")
        if partition:
            argument = f"partition_keys {','.join(partition)}"
            self._take(argument, self._of_tables("partition-keys"), partition)
            if not self._table:
                text = "a table without these columns stops the pipeline, where Paimon makes it "
                text += "without partitions; `ingestd plan` shows which"
                self.imported.leave(f"--{argument}", text)
        for table, names in self._pairs("multiple_table_partition_keys").items():
            columns = [column.strip() for column in names.split(",") if column.strip()]
            argument = f"multiple_table_partition_keys {table}={names}"
            self._take(argument, ("tables", table, "partition-keys"), columns)

    def _options(self) -> None:
        for name, value in self._pairs("table_conf").items():
            argument = f"table_conf {name}={value}"
            if name.startswith(_OF_FLINK):
                self.imported.leave(f"--{argument}", "is for Flink's own readers and writers")
                continue
            essential = not name.startswith(_TUNING)
            self._take(argument, self._of_tables("options", name), value, essential=essential)


def _key_of(argument: str) -> str:
    """Return the configuration key with the name of an argument, in kebab-case."""
    return argument.replace("_", "-")


def _plain_name(text: str) -> str:
    """Convert a text to a pipeline name, which has lower-case letters, digits, - and _."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-") or "ingestd"


def _of_table_alone(pattern: str) -> str:
    """Return a pattern that matches the same table names, but no names that include a database."""
    return rf"(?!.*\.)(?:{pattern})" if _WILD.search(pattern) and pattern != ".*" else pattern


def _quoted_call(text: str) -> str:
    """Quote the arguments of a function call that contain quotes; double their single quotes."""
    name, bracket, inside = text.partition("(")
    if not bracket or not inside.endswith(")") or not re.search("['\"]", inside):
        return text
    quoted = []
    for argument in inside[:-1].split(","):
        plain = argument.strip()
        has_quotes = re.search("['\"]", plain)
        quoted.append("'" + plain.replace("'", "''") + "'" if has_quotes else plain)
    return f"{name}({', '.join(quoted)})"


def import_warehouse(
    warehouse: str, database: str, conf: Mapping[str, str], *, keep_secrets: bool
) -> ImportNotes:
    """Import the section `warehouse`; `conf` has the values of `--catalog_conf` by name.

    Secrets become references to environment variables, unless `keep_secrets` is set.
    """
    importer = _Warehouse(conf, keep_secrets=keep_secrets)
    importer.import_path(warehouse)
    importer.imported.take(f"--database {database}", (_SECTION, "database"), database)
    importer.import_options()
    return importer.imported


class _Warehouse:
    """The import of the section `warehouse`."""

    def __init__(self, conf: Mapping[str, str], *, keep_secrets: bool) -> None:
        self.imported = ImportNotes()
        self._conf = conf
        self._keep_secrets = keep_secrets
        self._kind = conf.get(_METASTORE, "filesystem").lower()

    def import_path(self, warehouse: str) -> None:
        """Import the path of the warehouse, and the metastore with its address and token."""
        argument = f"--warehouse {warehouse}"
        if self._kind == "rest":
            self._take_catalog(argument, {(*_CATALOG, "warehouse"): warehouse})
            self._take_path(argument, _FOLDER)
            return
        if self._kind in _IS_OPTION:
            self._take_catalog(argument, {})
        try:
            file_io_for(warehouse)
        except IngestdError as error:
            text = error.message.removeprefix(f"warehouse {warehouse}: ")
            self.imported.leave(argument, text, essential=True)
            warehouse = _SCHEME.sub("", warehouse) or "/"
        self._take_path(argument, warehouse)
        if self._kind not in METASTORES:
            text = f"is not supported: tables are in the warehouse, and {self._kind} is not updated"
            self.imported.leave(self._argument(_METASTORE), text, essential=True)

    def import_options(self) -> None:
        """Import the remaining catalog options."""
        for name, value in self._conf.items():
            argument = self._argument(name)
            if name == _METASTORE or name in _KEYS.get(self._kind, {}):
                continue
            if name == "token.provider" and value == "bear":
                continue
            if is_storage_option(name):
                self.imported.take(argument, (_SECTION, "options", name), self._value(name))
            elif name == CASE_SENSITIVE and self._kind not in _IS_OPTION:
                self.imported.take(argument, (_SECTION, "catalog", CASE_SENSITIVE), value)
            elif self._kind in _IS_OPTION and _IS_OPTION[self._kind](name):
                self.imported.take(argument, (*_CATALOG, "options", name), self._value(name))
            else:
                self.imported.leave(argument, "belongs to Paimon's Java catalogs")

    def _take_catalog(self, argument: str, values: Mapping[tuple[str | int, ...], str]) -> None:
        names = {key: name for name, key in _KEYS[self._kind].items() if name in self._conf}
        piece = Piece(
            argument,
            {
                (*_CATALOG, _METASTORE): self._kind,
                **values,
                **{(*_CATALOG, key): self._value(name) for key, name in names.items()},
            },
        )
        self.imported.pieces.append(piece)

    def _take_path(self, argument: str, path: str) -> None:
        self.imported.pieces.append(Piece(argument, {(_SECTION, "path"): path}, needed=True))

    def _argument(self, name: str) -> str:
        shown = "..." if is_secret_name(name) else self._conf[name]
        return f"--catalog_conf {name}={shown}"

    def _value(self, name: str) -> str:
        """Return the value of a catalog option, or a reference to a variable if it is a secret."""
        value = self._conf[name]
        if self._keep_secrets or not is_secret_name(name) or value.startswith("${"):
            return value
        variable = re.sub(r"\W+", "_", name).upper()
        text = f"the value is not repeated here; put it into {variable}"
        self.imported.leave(self._argument(name), text)
        return f"${{env:{variable}}}"
