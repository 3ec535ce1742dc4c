"""Convert rows given by callers to the columns and types of a table."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ingestd.errors import ArgumentError
from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.library.whole_values import first_loss, loss_of, unknown_fields
from ingestd.paimon.spec.arrow import ArrowField, cast_exactly
from ingestd.paimon.spec.merge_rules import merge_rules
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

RowData: TypeAlias = Any
"""Rows: an Arrow table, batch or reader; a pandas or Polars data frame; or dictionaries.

Objects with `__arrow_c_stream__`, the Arrow PyCapsule interface, are accepted as well.
"""


def arrow_rows(table: FileStoreTable, data: RowData, *, partial: bool = False) -> pa.Table:
    """Convert rows to Arrow, with all columns of the table in its order and types.

    Columns that the rows do not have are null. Raises ArgumentError for an unknown column, for a
    value that does not fit its column, and if `data` is not one of the kinds of `RowData`. Without
    `partial`, raises ArgumentError if rows of a table with a primary key lack a column, unless the
    merge engine keeps the value of older rows.
    """
    wanted = columns_schema(table.schema.fields)
    rows = _as_arrow(data, wanted)
    unknown = [name for name in rows.column_names if name not in wanted.names]
    if unknown:
        raise ArgumentError(
            f"table {table.name} has no column {', '.join(unknown)}; its columns are "
            f"{', '.join(wanted.names)}"
        )
    if not partial and rows.num_rows:
        _refuse_partial(table, rows, data)
    columns = [_column(table, rows, field) for field in wanted]
    return pa.Table.from_arrays(columns, schema=wanted)


def _refuse_partial(table: FileStoreTable, rows: pa.Table, data: RowData) -> None:
    schema = table.schema
    if not schema.primary_keys:
        return
    somewhere = set(rows.column_names)
    everywhere = somewhere.intersection(*data) if isinstance(data, Sequence) else somewhere
    rules = merge_rules(schema)
    skipped = [group for group in rules.groups if somewhere.isdisjoint(group.sequence)]
    kept = {name for group in skipped for name in (*group.sequence, *group.columns)}
    missing = [
        name
        for name in schema.field_names
        if name not in everywhere and name not in kept and not rules.keeps_older(name)
    ]
    if missing:
        one = len(missing) == 1
        columns, values, them = ("", "value", "it") if one else ("s", "values", "them")
        raise ArgumentError(
            f"table {table.name}: the rows lack the column{columns} {', '.join(missing)}, whose "
            f"{values} in older rows of their keys would be lost; add {them}, or write null with "
            "partial=True"
        )


def arrow_keys(table: FileStoreTable, data: RowData) -> pa.Table:
    """Convert keys to Arrow, with the columns of the primary key in the types of the table.

    Raises ArgumentError for a table without a primary key, for keys that lack one of its columns or
    have others, and for an invalid or a null value.
    """
    schema = table.schema
    if not schema.primary_keys:
        raise ArgumentError(f"table {table.name} has no primary key: select rows by a condition")
    wanted = columns_schema(schema.select(schema.primary_keys))
    keys = _as_arrow(data, wanted)
    if keys.num_rows and set(keys.column_names) != set(schema.primary_keys):
        raise ArgumentError(
            f"table {table.name}: a key has the columns {', '.join(schema.primary_keys)}, and "
            f"these have {', '.join(keys.column_names)}"
        )
    columns = [_column(table, keys, field) for field in wanted]
    for field, column in zip(wanted, columns, strict=True):
        if column.null_count:
            raise ArgumentError(f"table {table.name}: key column {field.name} is null in a key")
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
        try:
            return pa.RecordBatchReader.from_stream(data).read_all()
        except pa.ArrowException as error:
            raise ArgumentError(
                f"the rows of a {type(data).__name__} cannot be read: {error}; give an Arrow table "
                "with the types of the columns"
            ) from error
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    raise ArgumentError(
        f"rows cannot be read from {type(data).__name__}; give an Arrow table, a data frame, or "
        "dictionaries"
    )


def _of_rows(rows: Sequence[Any], wanted: pa.Schema) -> pa.Table:
    """Convert dictionaries to columns in the types of `wanted`.

    Names that `wanted` does not have become columns, too, so that the caller reports them. Raises
    ArgumentError for a row that is not a dictionary, and for an invalid value.
    """
    known = {field.name: field.type for field in wanted}
    names = list(dict.fromkeys(name for row in rows for name in _items(row)))
    try:
        return pa.table({name: _array(rows, name, known.get(name)) for name in names})
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise ArgumentError(f"the rows do not fit the columns of the table: {error}") from error


def _array(rows: Sequence[Any], name: str, kind: pa.DataType | None) -> Any:  # noqa: ANN401  (an Array)
    """Return a column of dictionaries as an array of a type (None: the type is inferred).

    Raises ArrowException, TypeError, OverflowError or UnicodeEncodeError for an invalid value,
    ArrowInvalid for a value of which Arrow would lose a part.
    """
    values = [row.get(name) for row in rows]
    array = pa.array(values, kind)
    loss = None if kind is None else first_loss(loss_of(kind), values)
    if loss is not None:
        raise pa.ArrowInvalid(f"column {name} is {kind}, and of a value {loss} would be lost")
    return array


def _items(row: object) -> Mapping[str, object]:
    if isinstance(row, Mapping):
        return row
    raise ArgumentError(f"a row is a dictionary of column and value, not {type(row).__name__}")


def _column(table: FileStoreTable, rows: pa.Table, field: ArrowField) -> Any:  # noqa: ANN401  (a ChunkedArray)
    if field.name not in rows.column_names:
        return pa.nulls(rows.num_rows, field.type)
    column = rows.column(field.name)
    fault = f"table {table.name}: column {field.name} is {field.type}, and the rows have "
    unknown = unknown_fields(column.type, field.type)
    if unknown:
        raise ArgumentError(f"{fault}the unknown field {', '.join(unknown)}")
    try:
        chunks = [cast_exactly(chunk, field.type) for chunk in column.chunks]
        return pa.chunked_array(chunks, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ArgumentError(f"{fault}{column.type}: {error}") from error
