"""Declarations of the table options for Iceberg metadata.

Specification: https://paimon.apache.org/docs/1.4/iceberg/configurations/#configurations
"""

from ingestd.paimon.spec.option_types import (
    Options,
    TableOption,
    honoured,
    parse_bool,
    parse_int,
    parse_text,
    parse_word,
)

ICEBERG_STORAGE = honoured(
    "metadata.iceberg.storage", parse_word, "disabled",
    "Writes Iceberg metadata after each commit, in the table, as an Iceberg Hadoop catalog, or so "
    "and as an Iceberg table in a Hive Metastore or a REST catalog.",
    values=("disabled", "table-location", "hadoop-catalog", "hive-catalog", "rest-catalog"),
)  # fmt: skip
ICEBERG_LOCATION = honoured(
    "metadata.iceberg.storage-location", parse_word, "",
    "Where Iceberg metadata is stored; by default as `metadata.iceberg.storage` says.",
    values=("table-location", "catalog-location"),
)  # fmt: skip
ICEBERG_URI = honoured(
    "metadata.iceberg.uri", parse_text, "", "Address of the Hive Metastore of `hive-catalog`."
)  # fmt: skip
ICEBERG_HIVE_CONF = honoured(
    "metadata.iceberg.hive-conf-dir", parse_text, "",
    "Folder of a hive-site.xml with that address.",
)  # fmt: skip
ICEBERG_DATABASE = honoured(
    "metadata.iceberg.database", parse_text, "",
    "Database in the Hive Metastore or REST catalog; by default that of the table.",
)  # fmt: skip
ICEBERG_TABLE = honoured(
    "metadata.iceberg.table", parse_text, "",
    "Name in the Hive Metastore or REST catalog; by default that of the table.",
)  # fmt: skip
ICEBERG_REST_URI = honoured(
    "metadata.iceberg.rest.uri", parse_text, "", "Address of the REST catalog of `rest-catalog`."
)  # fmt: skip
ICEBERG_REST_SETTING = honoured(
    "metadata.iceberg.rest.<setting>", parse_text, "",
    "Setting of the REST catalog: `warehouse`, `prefix`, `token` or `token-file`, `header.NAME`. "
    "Settings of Iceberg's Java client, such as `clients`, have no effect.",
)  # fmt: skip
ICEBERG_VERSION = honoured(
    "metadata.iceberg.format-version", parse_int, 2,
    "Version of Iceberg's format; version 3 has deletion vectors.", values=("2", "3"),
)  # fmt: skip
ICEBERG_COMPRESSION = honoured(
    "metadata.iceberg.manifest-compression", parse_word, "snappy",
    "Compression of Iceberg's manifests.",
    values=("snappy", "zstd", "zstandard", "deflate", "bzip2", "null"),
)  # fmt: skip
ICEBERG_LEGACY = honoured(
    "metadata.iceberg.manifest-legacy-version", parse_bool, False,
    "Manifest lists have the field names of Iceberg 1.4, as Athena expects.",
)  # fmt: skip
ICEBERG_COMPACT_MIN = honoured(
    "metadata.iceberg.compaction.min.file-num", parse_int, 10,
    "Fewest small Iceberg manifests that are merged.",
)  # fmt: skip
ICEBERG_COMPACT_MAX = honoured(
    "metadata.iceberg.compaction.max.file-num", parse_int, 50,
    "Small Iceberg manifests that are merged whatever their size.",
)  # fmt: skip
ICEBERG_DELETE_OLD = honoured(
    "metadata.iceberg.delete-after-commit.enabled", parse_bool, True,
    "Deletes older Iceberg metadata files.",
)  # fmt: skip
ICEBERG_PREVIOUS_VERSIONS = honoured(
    "metadata.iceberg.previous-versions-max", parse_int, 0, "Older metadata files that are kept.",
)  # fmt: skip

ICEBERG_OPTIONS: tuple[TableOption[object], ...] = tuple(
    option for option in globals().values() if isinstance(option, TableOption)
)
"""All options declared in this module, in the order of their declarations."""


def rest_settings(options: Options) -> dict[str, str]:
    """Return the settings of the Iceberg REST catalog among the options, by their names in Iceberg.

    The names are without the prefix that the options have.
    """
    prefix = ICEBERG_REST_SETTING.name.partition("<")[0]
    return {
        name.removeprefix(prefix): value
        for name, value in options.items()
        if name.startswith(prefix)
    }
