"""Describe the data files of a Paimon table as Iceberg's manifests list them."""

from collections.abc import Iterable, Mapping

from ingestd.errors import UnsupportedError
from ingestd.paimon.iceberg.iceberg_types import (
    Json,
    avro_value,
    column_bounds,
    refuse_unreadable,
)
from ingestd.paimon.iceberg.manifest_changes import FileChanges
from ingestd.paimon.iceberg.manifest_format import DATA, avro_name
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.compaction_options import num_levels
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.iceberg_rules import exposes_vectors
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.table.files.data_files import live_path, stored_fields
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_FORMAT = "parquet"


def file_changes(table: FileStoreTable, entries: Iterable[ManifestEntry]) -> FileChanges:
    """Return the exposed data files that a snapshot adds, and all data files that it removes.

    Exposed files are those that the Iceberg metadata lists (see `is_exposed`). `entries` are the
    delta manifest entries of the snapshot, in order; `table` has its schema. Raises
    UnsupportedError for an added file that Iceberg readers cannot read.
    """
    added: dict[str, Json] = {}
    removed: dict[str, tuple[Json, ...]] = {}
    only_adds = True
    for entry in entries:
        name = entry.file.file_name
        if entry.kind == FileKind.DELETE:
            only_adds = False
            added.pop(name, None)
            removed[name] = _partition(table, entry.partition)
        elif is_exposed(table, entry.file):
            removed.pop(name, None)
            added[name] = data_file(table, entry)
    partitions = {
        *removed.values(),
        *(tuple(record["partition"].values()) for record in added.values()),
    }
    return FileChanges(added, removed, frozenset(partitions), only_adds)


def is_exposed(table: FileStoreTable, file: DataFileMeta) -> bool:
    """Return whether the Iceberg metadata of a table lists a live data file.

    Without a primary key, all files are listed. With a primary key, the files of the highest level
    are listed or, if the metadata contains the table's deletion vectors, the files of all levels
    above 0.
    """
    if not table.schema.primary_keys:
        return True
    if exposes_vectors(table.schema.options):
        return file.level > 0
    return file.level == num_levels(table.schema.options) - 1


def data_file(table: FileStoreTable, entry: ManifestEntry) -> Json:
    """Return the Iceberg record of a data file for a manifest, with the bounds of its columns.

    Raises UnsupportedError if Iceberg readers cannot read the file.
    """
    file, path = entry.file, live_path(table, entry.partition, entry.bucket, entry.file)
    schema = table.schemas(file.schema_id)
    _refuse_file(table, file, path)
    refuse_unreadable(schema, table.schema)
    names = file.stats_columns(schema.field_names)
    fields = {field.name: field for field in stored_fields(table, file)}
    types, own = [fields[name].type for name in names], schema.field_names
    low = deserialize_row(types, file.value_stats.min_values)
    high = deserialize_row(types, file.value_stats.max_values)
    known = tuple(
        name
        for name, least, most in zip(names, low, high, strict=True)
        if least is not None and most is not None and name in own
    )
    counts = zip(names, file.value_stats.null_counts, strict=True)
    nulls = [(name, count) for name, count in counts if name in own]
    return {
        "content": DATA,
        "file_path": path,
        "file_format": _FORMAT,
        "partition": partition_record(table, entry.partition),
        "record_count": file.row_count,
        "file_size_in_bytes": file.file_size,
        "null_value_counts": _pairs({fields[name].id: n for name, n in nulls if n is not None}),
        "lower_bounds": _pairs(column_bounds(fields, names, low, known)),
        "upper_bounds": _pairs(column_bounds(fields, names, high, known)),
    }


def _refuse_file(table: FileStoreTable, file: DataFileMeta, path: str) -> None:
    """Raise UnsupportedError if Iceberg readers cannot read the data file at `path`."""
    if not file.file_name.endswith(f".{_FORMAT}"):
        raise UnsupportedError(
            f"{path} is not a Parquet file: Iceberg readers would not find its columns; Iceberg "
            "metadata follows once a full compaction has rewritten it"
        )
    if file.external_path is not None and exposes_vectors(table.schema.options):
        raise UnsupportedError(
            f"{path} is outside of the table, where deletion vectors do not find it; Iceberg "
            "metadata follows once a full compaction has rewritten it"
        )


def column_bounds_of(record: Mapping[str, Json]) -> list[dict[int, bytes]]:
    """Return two mappings of a data file's record: the lower and the upper bounds by field id."""
    bounds = (record.get(name) or () for name in ("lower_bounds", "upper_bounds"))
    return [{pair["key"]: pair["value"] for pair in pairs} for pairs in bounds]


def _pairs(values: dict[int, Json]) -> list[Json]:
    return [{"key": key, "value": value} for key, value in values.items()]


def partition_record(table: FileStoreTable, partition: bytes) -> Json:
    """Return a serialized partition as the record of its values by Avro name."""
    names = map(avro_name, table.schema.partition_keys)
    return dict(zip(names, _partition(table, partition), strict=True))


def _partition(table: FileStoreTable, partition: bytes) -> tuple[Json, ...]:
    types = table.partition_types
    cells = zip(types, deserialize_row(types, partition), strict=True)
    return tuple(avro_value(t, value) for t, value in cells)
