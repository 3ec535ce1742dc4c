"""The copy of a table's options and keys that catalogs keep for other programs."""

from ingestd.paimon.spec.options import core_options
from ingestd.paimon.spec.table_schema import TableSchema


def synced_properties(schema: TableSchema) -> dict[str, str]:
    """Return the properties of a table in a metastore: its options and its keys, as in Java.

    The names of key columns are joined by commas. Raises ConfigError for an invalid option value.
    """
    keys = {
        "primary-key": schema.primary_keys,
        "partition": schema.partition_keys,
        "bucket-key": core_options(schema).bucket_keys,
    }
    joined = {name: ",".join(columns) for name, columns in keys.items() if columns}
    return {**schema.options, **joined}
