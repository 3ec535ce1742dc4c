"""Options of Iceberg metadata, and the tables that cannot have it.

Specification: https://paimon.apache.org/docs/1.4/iceberg/configurations/#configurations
"""

from dataclasses import dataclass

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec import iceberg_options
from ingestd.paimon.spec.compaction_options import num_levels
from ingestd.paimon.spec.data_types import TIMESTAMP_ROOTS, DataType, walk_types
from ingestd.paimon.spec.file_options import data_file_styles
from ingestd.paimon.spec.option_types import Options
from ingestd.paimon.spec.table_schema import TableSchema

_WITHOUT_TYPE = frozenset({"TIME", "MULTISET", "VARIANT"})
_PRECISIONS = range(3, 7)
_VECTORS_SINCE = 3
"""First version of Iceberg's format with deletion vectors."""
ROW_IDS_SINCE = 3
"""First version of Iceberg's format in which rows have ids."""
_CODECS = {"zstd": "zstandard"}
_REST_AUTHENTICATION = {
    "credential": (),
    "rest.auth.type": ("none", "oauth2"),
    "rest.sigv4-enabled": ("false",),
}
"""Settings of a REST catalog that ask for other authentication, unless they have these values."""


@dataclass(frozen=True, slots=True)
class IcebergSettings:
    """The options of a table with Iceberg metadata.

    With `in_catalog`, the metadata is in the directory `iceberg` of the warehouse, in the layout of
    an Iceberg Hadoop catalog; otherwise it is in the table directory. `codec` is the Avro codec of
    manifests; with `legacy_names`, manifest lists have the field names of Iceberg 1.4. Small
    manifests are merged if there are at least `compact_min` of them and their total size reaches
    the target size, or if there are at least `compact_max`. With `deletes_old`, older metadata
    files are deleted, except the newest `previous_versions`.
    """

    in_catalog: bool
    format_version: int
    codec: str
    legacy_names: bool
    compact_min: int
    compact_max: int
    deletes_old: bool
    previous_versions: int

    @property
    def has_row_ids(self) -> bool:
        """Whether rows have ids: they do from version 3 of the Iceberg format on."""
        return self.format_version >= ROW_IDS_SINCE


def iceberg_settings(options: Options) -> IcebergSettings | None:
    """Return the settings of a table; None if it has no Iceberg metadata.

    Raises ConfigError for an invalid option value.
    """
    storage = iceberg_options.ICEBERG_STORAGE.of(options)
    if storage == "disabled":
        return None
    codec = iceberg_options.ICEBERG_COMPRESSION.of(options)
    return IcebergSettings(
        in_catalog=(iceberg_options.ICEBERG_LOCATION.of(options) or storage)
        in ("catalog-location", "hadoop-catalog", "hive-catalog", "rest-catalog"),
        format_version=iceberg_options.ICEBERG_VERSION.of(options),
        codec=_CODECS.get(codec, codec),
        legacy_names=iceberg_options.ICEBERG_LEGACY.of(options),
        compact_min=iceberg_options.ICEBERG_COMPACT_MIN.of(options),
        compact_max=iceberg_options.ICEBERG_COMPACT_MAX.of(options),
        deletes_old=iceberg_options.ICEBERG_DELETE_OLD.of(options),
        previous_versions=iceberg_options.ICEBERG_PREVIOUS_VERSIONS.of(options),
    )


def refuse_iceberg(schema: TableSchema) -> None:
    """Raise UnsupportedError if a table requests Iceberg metadata that it cannot have.

    Raises ConfigError for an invalid option value.
    """
    if iceberg_settings(schema.options) is None:
        return
    _refuse_catalog(schema.options)
    _refuse_vectors(schema.options)
    formats = {style.file_format for style in data_file_styles(schema).values()}
    if formats != {"parquet"}:
        raise _refusal(
            f"Iceberg readers find columns by field ids, which files of format "
            f"{', '.join(sorted(formats - {'parquet'}))} do not have; use parquet"
        )
    for column in schema.fields:
        if lacking := type_without_iceberg(schema.options, column.type):
            raise _refusal(
                f"column '{column.name}': {lacking} has no type in Iceberg; use another type"
            )
    _refuse_partitions(schema)


def _refuse_catalog(options: Options) -> None:
    storage = iceberg_options.ICEBERG_STORAGE.of(options)
    given = (
        iceberg_options.ICEBERG_URI.of(options),
        iceberg_options.ICEBERG_HIVE_CONF.of(options),
    )
    if storage == "hive-catalog" and not any(given):
        raise _refusal(
            f"'hive-catalog' needs '{iceberg_options.ICEBERG_URI.name}' = thrift://HOST:PORT of "
            f"the metastore, or '{iceberg_options.ICEBERG_HIVE_CONF.name}', the folder of a "
            "hive-site.xml"
        )
    if storage != "rest-catalog":
        return
    uri, settings = iceberg_options.ICEBERG_REST_URI, iceberg_options.rest_settings(options)
    if not uri.of(options):
        raise _refusal(f"'rest-catalog' needs '{uri.name}' = https://HOST:PORT of the catalog")
    for name, accepted in _REST_AUTHENTICATION.items():
        if name in settings and settings[name] not in accepted:
            raise _refusal(
                f"'{iceberg_options.ICEBERG_REST_SETTING.name_for(name)}' is not supported: a "
                f"REST catalog is sent a bearer token; write it to a file, and set "
                f"'{iceberg_options.ICEBERG_REST_SETTING.name_for('token-file')}'"
            )


def _refuse_vectors(options: Options) -> None:
    if not honoured.DELETION_VECTORS.of(options):
        return
    version, bits = iceberg_options.ICEBERG_VERSION, honoured.DELETION_VECTORS_BITMAP64
    if not exposes_vectors(options) or not bits.of(options):
        raise _refusal(
            "Iceberg readers would see rows that deletion vectors delete; set "
            f"'{version.name}' = '{_VECTORS_SINCE}' and '{bits.name}' = 'true'"
        )
    for option in (honoured.DELETION_VECTORS_MODIFIABLE, honoured.EXTERNAL_PATHS):
        if option.of(options):
            raise _refusal(
                f"with deletion vectors it is not possible with '{option.name}'; remove one of them"
            )


def exposes_vectors(options: Options) -> bool:
    """Return whether Iceberg metadata contains the deletion vectors of a table, by its options.

    It does from version 3 of the Iceberg format on, if deletion vectors are enabled.
    """
    return iceberg_options.ICEBERG_VERSION.of(
        options
    ) >= _VECTORS_SINCE and honoured.DELETION_VECTORS.of(options)


def _refuse_partitions(schema: TableSchema) -> None:
    for name, t in zip(schema.partition_keys, schema.partition_types, strict=True):
        if t.root in TIMESTAMP_ROOTS:
            raise _refusal(f"partition column '{name}': {t} is not supported; use a DATE")
        if t.root == "DECIMAL":
            raise _refusal(
                f"partition column '{name}': some Iceberg readers misread a {t} in manifests as "
                "Java Paimon writes and reads them; use a STRING"
            )


def refuse_iceberg_change(before: TableSchema, after: TableSchema, *, has_snapshots: bool) -> None:
    """Raise UnsupportedError if a schema change makes the Iceberg metadata of a table impossible.

    `before` and `after` are the schemas around the change. A table created by another program, for
    which Iceberg metadata was impossible before the change, may be changed. A table without
    snapshots (`has_snapshots`) may get another number of levels. Raises ConfigError for an invalid
    option value.
    """
    try:
        refuse_iceberg(before)
    except UnsupportedError:
        return
    refuse_iceberg(after)
    if has_snapshots:
        _refuse_other_top_level(before, after)


def _refuse_other_top_level(before: TableSchema, after: TableSchema) -> None:
    """Raise UnsupportedError if a change of options gives a table another top level.

    Iceberg metadata exposes the files of this level; compactions keep files of higher levels, so
    their rows would not be shown. With deletion vectors, it does not depend on the top level.
    """
    kept = [iceberg_settings(schema.options) for schema in (before, after)]
    if None in kept or not after.primary_keys or exposes_vectors(after.options):
        return
    levels = num_levels(before.options)
    if levels != num_levels(after.options):
        option = honoured.NUM_LEVELS.name
        raise _refusal(
            f"Iceberg readers see the files of the highest of {levels} levels, and would see no "
            f"rows with {num_levels(after.options)}; set '{option}' = '{levels}' as well, so that "
            "their number stays"
        )


def type_without_iceberg(options: Options, t: DataType) -> DataType | None:
    """Return the first type within `t` that Iceberg does not have; None without such a type.

    Returns None, too, if the options request no Iceberg metadata.
    """
    if iceberg_settings(options) is None:
        return None
    return next((inner for inner in walk_types(t) if not has_iceberg_type(inner)), None)


def has_iceberg_type(t: DataType) -> bool:
    """Return whether Iceberg can read values of a type in data files of Paimon.

    It cannot read timestamps of more than 6 digits, which Paimon stores as INT96, nor types that it
    does not have. The types nested in an ARRAY, MAP or ROW are not examined.
    """
    if t.root in TIMESTAMP_ROOTS:
        return t.precision in _PRECISIONS
    return t.root not in _WITHOUT_TYPE


def _refusal(reason: str) -> UnsupportedError:
    return UnsupportedError(f"option '{iceberg_options.ICEBERG_STORAGE.name}': {reason}")
