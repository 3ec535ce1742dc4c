"""Convert rows given by callers to the columns and types of a table."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.spec.arrow import ArrowField
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

RowData: TypeAlias = Any
"""Rows: an Arrow table, batch or reader; a pandas or Polars data frame; or dictionaries.

Objects with `__arrow_c_stream__`, the Arrow PyCapsule interface, are accepted as well.
"""


def arrow_rows(table: FileStoreTable, data: RowData) -> pa.Table:
    """Return the rows with all columns of the table, in the types of the table.

    Columns that the rows do not have are null. Raises ConfigError for an unknown column, an invalid
    value, or an argument of another type.
    """
    wanted = columns_schema(table.schema.fields)
    rows = _as_arrow(data, wanted)
    unknown = [name for name in rows.column_names if name not in wanted.names]
    if unknown:
        raise ConfigError(
            f"table {table.name} has no column {', '.join(unknown)}; its columns are "
            f"{', '.join(wanted.names)}"
        )
    columns = [_column(table, rows, field) for field in wanted]
    return pa.Table.from_arrays(columns, schema=wanted)


def arrow_keys(table: FileStoreTable, data: RowData) -> pa.Table:
    """Return primary keys in the types of the table.

    Raises ConfigError for a table without a primary key, for keys that lack one of its columns or
    have others, and for an invalid or a null value.
    """
    schema = table.schema
    if not schema.primary_keys:
        raise ConfigError(f"table {table.name} has no primary key: select rows by a condition")
    wanted = columns_schema(schema.select(schema.primary_keys))
    keys = _as_arrow(data, wanted)
    if keys.num_rows and set(keys.column_names) != set(schema.primary_keys):
        raise ConfigError(
            f"table {table.name}: a key has the columns {', '.join(schema.primary_keys)}, and "
            f"these have {', '.join(keys.column_names)}"
        )
    columns = [_column(table, keys, field) for field in wanted]
    for field, column in zip(wanted, columns, strict=True):
        if column.null_count:
            raise ConfigError(f"table {table.name}: key column {field.name} is null in a key")
    return pa.Table.from_arrays(columns, schema=wanted)


def _as_arrow(data: RowData, wanted: pa.Schema) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, Mapping):
        return _of_rows([data], wanted)
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _of_rows(data, wanted)
    stream = getattr(data, "__arrow_c_stream__", None)
    if stream is not None:
        return pa.RecordBatchReader.from_stream(data).read_all()
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    raise ConfigError(
        f"rows cannot be read from {type(data).__name__}; give an Arrow table, a data frame, or "
        "dictionaries"
    )


def _of_rows(rows: Sequence[Any], wanted: pa.Schema) -> pa.Table:
    """Convert dictionaries to columns. Unknown names are kept, so that the caller reports them."""
    known = {field.name: field.type for field in wanted}
    names = list(dict.fromkeys(name for row in rows for name in _items(row)))
    try:
        return pa.table(
            {name: pa.array([row.get(name) for row in rows], known.get(name)) for name in names}
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ConfigError(f"the rows do not fit the columns of the table: {error}") from error


def _items(row: object) -> Mapping[str, object]:
    if isinstance(row, Mapping):
        return row
    raise ConfigError(f"a row is a dictionary of column and value, not {type(row).__name__}")


def _column(table: FileStoreTable, rows: pa.Table, field: ArrowField) -> Any:  # noqa: ANN401  (a ChunkedArray)
    if field.name not in rows.column_names:
        return pa.nulls(rows.num_rows, field.type)
    try:
        return rows.column(field.name).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(
            f"table {table.name}: column {field.name} is {field.type}, and the rows have "
            f"{rows.column(field.name).type}: {error}"
        ) from error
