"""Default values of columns: parse them, and fill nulls with them.

An explicit null is replaced as well, as by other writers.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#datafield
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import SchemaConflictError, UnsupportedError
from ingestd.paimon.casts.evolution import cast_text
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.data_types import DataField, walk_types
from ingestd.paimon.spec.table_schema import TableSchema


def check_default_values(schema: TableSchema) -> None:
    """Raise SchemaConflictError, naming the column, if a default value is invalid for its type."""
    for column in schema.fields:
        inner = (field for t in walk_types(column.type) for field in t.fields)
        for field in (column, *inner):
            if field.default_value is not None:
                default_value(field)


@lru_cache(maxsize=256)
def default_value(field: DataField) -> Array:
    """Return the default value of a column that has one, as an Arrow array of length 1.

    Single quotes around the declared text are removed. Raises SchemaConflictError, naming the
    column, if the text is invalid for the column's type.
    """
    text = field.default_value or ""
    if len(text) > 1 and text[0] == text[-1] == "'":
        text = text[1:-1]
    try:
        return cast_text(pa.array([text], pa.string()), field.type.as_nullable())
    except (UnsupportedError, pa.ArrowException) as error:
        raise SchemaConflictError(
            f"column '{field.name}' of type {field.type} cannot have the default value "
            f"'{field.default_value}': {error}"
        ) from error


def with_defaults(rows: pa.Table, fields: Sequence[DataField]) -> pa.Table:
    """Return the rows with nulls replaced by the default values that `fields` declare.

    Fields without a default value, and fields that `rows` does not contain, are ignored. Raises
    SchemaConflictError, naming the column, if a default value is invalid for its type.
    """
    for field in fields:
        if field.default_value is None or field.name not in rows.column_names:
            continue
        position = rows.schema.get_field_index(field.name)
        column: Any = rows.column(position)
        if column.null_count:
            rows = rows.set_column(position, rows.schema.field(position), _filled(column, field))
    return rows


def _filled(column: Any, field: DataField) -> Any:  # noqa: ANN401  # a ChunkedArray
    value: Any = default_value(field).cast(column.type)
    choose: Any = pc.if_else
    nested = pa.types.is_nested(column.type)
    if not nested:
        return choose(column.is_null(), value[0], column)
    both = pa.concat_arrays([*column.chunks, value])
    indices = pc.if_else(column.is_null(), len(column), pa.array(range(len(column))))
    return both.take(indices)
