"""Parse the table options for file indexes.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-file
"""

from collections.abc import Iterator

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataType
from ingestd.paimon.spec.file_index_kinds import INDEX_KINDS, ColumnIndex
from ingestd.paimon.spec.table_schema import TableSchema


def column_indexes(schema: TableSchema) -> tuple[ColumnIndex, ...]:
    """Return the indexes that the options of a table request.

    Raises ConfigError for an invalid option, an unknown column, or one that cannot have the index.
    """
    indexes = []
    for name, kind in INDEX_KINDS.items():
        found = list(_columns(schema, name))
        _check_settings(schema, name, [index for index, _ in found])
        indexes += [kind.configure(index, schema.options, t) for index, t in found]
    return tuple(indexes)


def manifest_threshold(schema: TableSchema) -> int:
    """Return the maximum size in bytes of file indexes that are embedded in the manifest entry.

    Larger indexes are written to a file. Raises ConfigError for an invalid option value.
    """
    return honoured.INDEX_THRESHOLD.of(schema.options)


def _columns(schema: TableSchema, kind: str) -> Iterator[tuple[ColumnIndex, DataType]]:
    """Yield the indexes of a type without their settings, each with the type of its values."""
    option = INDEX_KINDS[kind].columns
    for name in option.of(schema.options):
        column, key = name, None
        if name.endswith("]") and "[" in name and name not in schema.field_names:
            column, _, key = name.removesuffix("]").partition("[")
        if column not in schema.field_names:
            raise ConfigError(f"option '{option.name}': unknown column '{column}'")
        t = schema.field(column).type
        if key is not None:
            t = _value_type(option.name, name, t)
        if not INDEX_KINDS[kind].fits(t):
            raise ConfigError(
                f"option '{option.name}': column '{name}' of type {t} cannot have an index of "
                f"type {kind}"
            )
        yield ColumnIndex(column, kind, key), t


def _value_type(option: str, name: str, t: DataType) -> DataType:
    """Return the type of the values of a MAP. Raises ConfigError for keys that are not texts."""
    if t.root != "MAP" or t.key is None or t.value is None or t.key.root not in CHARACTER_ROOTS:
        raise ConfigError(
            f"option '{option}': '{name}' is a key of a column of type {t}, not of a MAP whose "
            "keys are texts"
        )
    return t.value


def _check_settings(schema: TableSchema, kind: str, indexes: list[ColumnIndex]) -> None:
    option, settings = INDEX_KINDS[kind].columns, INDEX_KINDS[kind].settings
    prefix = option.name.removesuffix("columns")
    named = {name for index in indexes for name in (index.name, index.column)}
    expected = {setting.name_for(name) for name in named for setting in settings}
    for name in schema.options:
        if name.startswith(prefix) and name not in {option.name, *expected}:
            endings = sorted(setting.name.rpartition(".")[2] for setting in settings)
            raise ConfigError(
                f"option '{name}': expected {prefix}columns"
                + (f" or {prefix}<indexed column>.<{'|'.join(endings)}>" if endings else "")
            )
