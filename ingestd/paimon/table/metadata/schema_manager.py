"""Schema files of a table: find the newest schema, read a schema, publish the next one.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#schema

Schema ids are consecutive from 0 and schema files are immutable.
"""

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import FormatError
from ingestd.paimon.casts.default_values import check_default_values
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.io.probes import has_file
from ingestd.paimon.spec.document_checks import sealed
from ingestd.paimon.spec.paths import TablePaths, file_numbers
from ingestd.paimon.spec.schema import encode_schema, parse_schema
from ingestd.paimon.spec.table_schema import TableSchema


def schema_ids(io: FileIO, paths: TablePaths) -> list[int]:
    """Return the ids of all schema files, ascending; [] if the directory is not a table."""
    return file_numbers(io.list_names(paths.schema_dir), "schema-")


def latest_schema(io: FileIO, paths: TablePaths) -> TableSchema | None:
    """Return the newest schema; None if the directory is not a table.

    Raises FormatError if the schema file is invalid.
    """
    ids = schema_ids(io, paths)
    return read_schema(io, paths, latest_schema_id(io, paths, ids[-1])) if ids else None


def latest_schema_id(io: FileIO, paths: TablePaths, known: int) -> int:
    """Return the id of the newest schema, by probing the ids that follow an existing id `known`.

    If `known` is the newest id, this takes one request. Unlike a listing, the result is never
    outdated.
    """
    while has_file(io, paths.schema(known + 1)):
        known += 1
    return known


def read_schema(io: FileIO, paths: TablePaths, schema_id: int) -> TableSchema:
    """Return the schema with this id. Raises FormatError if its file is missing or invalid."""
    path = paths.schema(schema_id)
    try:
        data = io.read_bytes(path)
    except FileNotFoundError as error:
        message = f"schema file {path} is missing: the table is damaged or was dropped"
        raise FormatError(message) from error
    schema = parse_schema(data, path)
    if schema.id != schema_id:
        raise FormatError(f"schema file {path} contains schema {schema.id}")
    return schema


def publish_schema(io: FileIO, paths: TablePaths, schema: TableSchema) -> bool:
    """Publish a schema under its id; return False if another process has published that id.

    Raises SchemaConflictError for a column whose default value is invalid for its type, and
    StorageError if the storage fails: the schema may have been published then.
    """
    check_default_values(schema)
    reach(CrashPoint.SCHEMA_CHOSEN)
    published = io.try_write_atomic(paths.schema(schema.id), sealed(encode_schema(schema)))
    reach(CrashPoint.SCHEMA_PUBLISHED)
    return published
