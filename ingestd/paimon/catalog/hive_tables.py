"""Tables and databases of a Hive Metastore: their structures, as Paimon's HiveCatalog fills them.

The numbers are the field ids in `hive_metastore.thrift`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.hive_types import hive_type
from ingestd.paimon.catalog.synced_properties import synced_properties
from ingestd.paimon.catalog.thrift import (
    Entries,
    Struct,
    Value,
    i32,
    structure,
    structures,
    text,
    text_map,
    texts,
)
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.paths import escape
from ingestd.paimon.spec.table_schema import TableSchema

_LOCATION_PROPERTY = "paimon_location"
_INPUT_FORMAT = "org.apache.paimon.hive.mapred.PaimonInputFormat"
_OUTPUT_FORMAT = "org.apache.paimon.hive.mapred.PaimonOutputFormat"
_SERDE = "org.apache.paimon.hive.PaimonSerDe"
_MARKS: Mapping[str, str] = {
    "table_type": "PAIMON",
    "storage_handler": "org.apache.paimon.hive.PaimonStorageHandler",
}
_ICEBERG = {"table_type": "ICEBERG"}
_DOCUMENT, _DOCUMENT_BEFORE = "metadata_location", "previous_metadata_location"
_EXTERNAL, _MANAGED = "EXTERNAL_TABLE", "MANAGED_TABLE"
_COMMENT = "comment"
_OWNER = "owner"
LOCATION = "location"
_HIVE_PREFIX = "hive."
_ALWAYS_SYNCED = (honoured.PARTITION_EXPIRATION.name, honoured.DATA_FILE_DIRECTORY.name)
_FOREVER = 2**31 - 1
_COMMENT_LENGTH = 256
"""The metastore refuses longer comments of columns."""


class _Table:
    NAME = 1
    DATABASE = 2
    OWNER = 3
    CREATE_TIME = 4
    LAST_ACCESS_TIME = 5
    RETENTION = 6
    STORAGE = 7
    PARTITION_KEYS = 8
    PARAMETERS = 9
    TYPE = 12


class _Storage:
    COLUMNS = 1
    LOCATION = 2
    INPUT_FORMAT = 3
    OUTPUT_FORMAT = 4
    SERDE = 7


class _Serde:
    LIBRARY = 2
    PARAMETERS = 3


class _Column:
    NAME = 1
    TYPE = 2
    COMMENT = 3


class _Partition:
    VALUES = 1
    DATABASE = 2
    TABLE = 3
    CREATE_TIME = 4
    LAST_ACCESS_TIME = 5
    STORAGE = 6
    PARAMETERS = 7


class _Database:
    NAME = 1
    DESCRIPTION = 2
    LOCATION = 3
    PARAMETERS = 4
    OWNER = 6


@dataclass(frozen=True)
class HiveTable:
    """A table as the metastore stores it, with all its fields."""

    fields: Struct

    @property
    def name(self) -> str:
        """The name of the table, without the name of its database."""
        return _text(self.fields, _Table.NAME)

    @property
    def is_paimon(self) -> bool:
        """Whether the table is a Paimon table, according to its input and output formats."""
        storage = _struct(self.fields, _Table.STORAGE)
        formats = _text(storage, _Storage.INPUT_FORMAT), _text(storage, _Storage.OUTPUT_FORMAT)
        return formats == (_INPUT_FORMAT, _OUTPUT_FORMAT)

    @property
    def is_external(self) -> bool:
        """Whether the files of the table are kept when the table is dropped.

        A metastore of Hive 4 stores managed tables as external tables with a mark; the result for
        these is False.
        """
        marked = self._parameters.get("TRANSLATED_TO_EXTERNAL", "").upper() == "TRUE"
        return _text(self.fields, _Table.TYPE) == _EXTERNAL and not marked

    def location(self, *, in_properties: bool) -> str:
        """Return the directory of the table: the location in its storage descriptor.

        If `in_properties` (the catalog option `location-in-properties`), the table property with
        the location takes precedence, if the table has it.
        """
        stored = _text(_struct(self.fields, _Table.STORAGE), _Storage.LOCATION)
        return self._parameters.get(_LOCATION_PROPERTY, stored) if in_properties else stored

    @property
    def is_iceberg(self) -> bool:
        """Whether the table is an Iceberg table."""
        return self._parameters.get("table_type", "").upper() == _ICEBERG["table_type"]

    @property
    def iceberg_document(self) -> str | None:
        """The path of the metadata document that Iceberg readers open; None without a document."""
        return self._parameters.get(_DOCUMENT)

    def with_iceberg_document(self, path: str) -> "HiveTable":
        """Return the table with `path` as its Iceberg metadata document.

        The document that it had before is stored as the previous one.
        """
        before = self.iceberg_document
        replaced = {} if before is None else {_DOCUMENT_BEFORE: before}
        return self._changed({**self._parameters, **replaced, _DOCUMENT: path}, {}, {})

    def with_all_columns(self, schema: TableSchema) -> "HiveTable":
        """Return the table with all columns of a schema, including the partition keys.

        Raises UnsupportedError for a type that Hive does not have.
        """
        storage = {_Storage.COLUMNS: structures(*map(_column, schema.fields))}
        return self._changed(self._parameters, storage, {})

    @property
    def _parameters(self) -> Mapping[str, str]:
        return _map(self.fields, _Table.PARAMETERS)

    def with_schema(
        self, schema: TableSchema, removed: Iterable[str] = (), *, sync_properties: bool
    ) -> "HiveTable":
        """Return the table with the columns and properties of a schema.

        `removed` are options of the older schema that the new schema lacks; their properties are
        removed. `sync_properties` is the value of the catalog option `sync-all-properties`. Raises
        UnsupportedError for a type that Hive does not have.
        """
        gone = set(removed)
        kept = {name: value for name, value in self._parameters.items() if name not in gone}
        comment = {} if schema.comment is None else {_COMMENT: schema.comment}
        properties = _properties(schema, sync_properties=sync_properties)
        keys = registered_keys(schema)
        columns = [_column(column) for column in schema.fields if column.name not in keys]
        storage = {_Storage.COLUMNS: structures(*columns)}
        fields = {_Table.PARTITION_KEYS: structures(*map(_column, schema.select(keys)))}
        return self._changed({**kept, **properties, **_MARKS, **comment}, storage, fields)

    def renamed(self, identifier: Identifier) -> "HiveTable":
        """Return the table with another name and database."""
        names = {
            _Table.NAME: text(identifier.table),
            _Table.DATABASE: text(identifier.database),
        }
        return HiveTable({**self.fields, **names})

    def moved(self, location: str, *, in_properties: bool) -> "HiveTable":
        """Return the table with another directory.

        `in_properties` is the value of the catalog option `location-in-properties`.
        """
        if in_properties:
            return self._changed({**self._parameters, _LOCATION_PROPERTY: location}, {}, {})
        return self._changed(self._parameters, {_Storage.LOCATION: text(location)}, {})

    def partition(
        self, spec: Mapping[str, str], directory: str, now_s: int, *, in_properties: bool
    ) -> Struct:
        """Return the Thrift structure of a partition of the table.

        `spec` has the partition's values by column; its directory is below `directory`. `now_s` is
        the creation time, in seconds since 1970. `in_properties` is the value of the catalog option
        `location-in-properties`.
        """
        names = "".join(f"/{escape(key)}={escape(value)}" for key, value in spec.items())
        storage = _struct(self.fields, _Table.STORAGE)
        location = {} if in_properties else {_Storage.LOCATION: text(f"{directory}{names}")}
        properties = {_LOCATION_PROPERTY: f"{directory}{names}"} if in_properties else {}
        return {
            _Partition.VALUES: texts(*spec.values()),
            _Partition.DATABASE: self.fields[_Table.DATABASE],
            _Partition.TABLE: self.fields[_Table.NAME],
            _Partition.CREATE_TIME: i32(now_s),
            _Partition.LAST_ACCESS_TIME: i32(now_s),
            _Partition.STORAGE: structure({**storage, **location}),
            _Partition.PARAMETERS: text_map(properties),
        }

    def _changed(
        self, parameters: Mapping[str, str], storage: Struct, fields: Struct
    ) -> "HiveTable":
        changed = {**_struct(self.fields, _Table.STORAGE), **storage}
        return HiveTable(
            {
                **self.fields,
                **fields,
                _Table.STORAGE: structure(changed),
                _Table.PARAMETERS: text_map(parameters),
            }
        )


def registered_keys(schema: TableSchema) -> tuple[str, ...]:
    """Return the partition keys of a table if its partitions are registered in the metastore.

    Otherwise the result is empty.
    """
    registered = honoured.PARTITIONED_IN_METASTORE.of(schema.options)
    return schema.partition_keys if registered else ()


def new_table(
    identifier: Identifier,
    schema: TableSchema,
    location: str,
    owner: str,
    now_s: int,
    *,
    external: bool,
    sync_properties: bool,
    in_properties: bool,
) -> HiveTable:
    """Return a new Paimon table with the columns and properties of a schema.

    `location` is its directory, `owner` the user who owns it in Hive, and `now_s` the creation
    time, in seconds since 1970. The files of an `external` table are kept when the table is
    dropped. `sync_properties` and `in_properties` are the values of the catalog options
    `sync-all-properties` and `location-in-properties`. Raises UnsupportedError for a type that Hive
    does not have.
    """
    serde = {_Serde.LIBRARY: text(_SERDE), _Serde.PARAMETERS: text_map({})}
    storage = {
        _Storage.INPUT_FORMAT: text(_INPUT_FORMAT),
        _Storage.OUTPUT_FORMAT: text(_OUTPUT_FORMAT),
        _Storage.SERDE: structure(serde),
    }
    fields = {
        _Table.OWNER: text(owner),
        _Table.CREATE_TIME: i32(now_s),
        _Table.LAST_ACCESS_TIME: i32(now_s),
        _Table.RETENTION: i32(_FOREVER),
        _Table.STORAGE: structure(storage),
        _Table.PARAMETERS: text_map({"EXTERNAL": "TRUE"} if external else {}),
        _Table.TYPE: text(_EXTERNAL if external else _MANAGED),
    }
    return (
        HiveTable(fields)
        .with_schema(schema, sync_properties=sync_properties)
        .renamed(identifier)
        .moved(location, in_properties=in_properties)
    )


def new_iceberg_table(identifier: Identifier, location: str, owner: str, now_s: int) -> HiveTable:
    """Return a new external Iceberg table without columns.

    `location` is its directory, `owner` the user who owns it in Hive, and `now_s` the creation
    time, in seconds since 1970.
    """
    mapred = "org.apache.hadoop.mapred"
    serde = {_Serde.LIBRARY: text("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")}
    storage = {
        _Storage.LOCATION: text(location),
        _Storage.INPUT_FORMAT: text(f"{mapred}.FileInputFormat"),
        _Storage.OUTPUT_FORMAT: text(f"{mapred}.FileOutputFormat"),
        _Storage.SERDE: structure({**serde, _Serde.PARAMETERS: text_map({})}),
    }
    statistics = {"DO_NOT_UPDATE_STATS": "false"}
    return HiveTable(
        {
            _Table.NAME: text(identifier.table),
            _Table.DATABASE: text(identifier.database),
            _Table.OWNER: text(owner),
            _Table.CREATE_TIME: i32(now_s),
            _Table.LAST_ACCESS_TIME: i32(now_s),
            _Table.RETENTION: i32(_FOREVER),
            _Table.STORAGE: structure(storage),
            _Table.PARTITION_KEYS: structures(),
            _Table.PARAMETERS: text_map({**_ICEBERG, **statistics, "EXTERNAL": "TRUE"}),
            _Table.TYPE: text(_EXTERNAL),
        }
    )


def new_database(
    name: str, properties: Mapping[str, str], location: str, *, in_properties: bool
) -> Struct:
    """Return the Thrift structure of a new database.

    `location` is its directory, unless `properties` contains another location. `in_properties` is
    the value of the catalog option `location-in-properties`.
    """
    own = {
        key: value for key, value in properties.items() if key not in (_COMMENT, _OWNER, LOCATION)
    }
    path = properties.get(LOCATION, location)
    if in_properties:
        own[_LOCATION_PROPERTY] = path
    given = {
        _Database.NAME: name,
        _Database.DESCRIPTION: properties.get(_COMMENT),
        _Database.LOCATION: None if in_properties else path,
        _Database.OWNER: properties.get(_OWNER),
    }
    fields: dict[int, Value] = {
        key: text(value) for key, value in given.items() if value is not None
    }
    return {**fields, _Database.PARAMETERS: text_map(own)}


def database_location(database: Struct, *, in_properties: bool) -> str:
    """Return the directory of a database: its location in the metastore.

    If `in_properties` (the catalog option `location-in-properties`), the database property with the
    location takes precedence, if the database has it.
    """
    stored = _text(database, _Database.LOCATION)
    parameters = _map(database, _Database.PARAMETERS)
    return parameters.get(_LOCATION_PROPERTY, stored) if in_properties else stored


def properties_of_database(database: Struct) -> dict[str, str]:
    """Return the properties of a database, with its comment, owner and location."""
    own = {
        _COMMENT: _text(database, _Database.DESCRIPTION),
        _OWNER: _text(database, _Database.OWNER),
        LOCATION: _text(database, _Database.LOCATION),
    }
    parameters = _map(database, _Database.PARAMETERS)
    return {**parameters, **{key: value for key, value in own.items() if value}}


def _properties(schema: TableSchema, *, sync_properties: bool) -> dict[str, str]:
    if sync_properties:
        return synced_properties(schema)
    options = schema.options
    hive = {
        name.removeprefix(_HIVE_PREFIX): value
        for name, value in options.items()
        if name.startswith(_HIVE_PREFIX)
    }
    return {**hive, **{name: options[name] for name in _ALWAYS_SYNCED if name in options}}


def _column(field: DataField) -> Struct:
    column = {_Column.NAME: text(field.name), _Column.TYPE: text(hive_type(field.type))}
    if field.description is not None:
        column[_Column.COMMENT] = text(field.description[:_COMMENT_LENGTH])
    return column


def _text(fields: Struct, number: int) -> str:
    return str(fields[number].content) if number in fields else ""


def _struct(fields: Struct, number: int) -> Struct:
    content: Struct = fields[number].content if number in fields else {}
    return content


def _map(fields: Struct, number: int) -> Mapping[str, str]:
    entries: Entries | None = fields[number].content if number in fields else None
    return {} if entries is None else entries.contents
