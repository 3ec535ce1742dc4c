"""The native plans of one source table, for its messages and for their keys.

They accept a subset of the messages that the structs of `row_plan` accept; the others are decoded
in Python.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ingestd.cdc.native.column_encoding import RAW, ColumnEncoding
from ingestd.cdc.native.module import Spec
from ingestd.cdc.plan_column import PlanColumn

NULL_SPEC: Spec = ("null",)
RUNS_SPEC: Spec = ("runs",)


@dataclass(frozen=True, slots=True)
class RowSpecs:
    """The nodes of a table's after images, before images (`old`) and message keys.

    Images may be null, `whole` ones not. `key` is None if the table has no key.
    """

    row: Spec
    whole: Spec
    old: Spec
    key: Spec | None


def form_of(column: PlanColumn) -> ColumnEncoding:
    """Return the encoding of a column: its own, or JSON text for its reader."""
    native = None if column.reader is None else column.reader.native
    return native or RAW


def row_specs(
    columns: Sequence[PlanColumn], key_columns: Sequence[PlanColumn], *, images: bool
) -> RowSpecs | None:
    """Return the nodes of a table; None if its messages can only be decoded in Python.

    The key must be comparable, because an update that changes it becomes two rows. With `images`,
    before images are read whole, else only their keys.
    """
    if any(not form_of(column).comparable for column in key_columns):
        return None
    row = columns_spec(columns, nullable=True, closed=True)
    whole = columns_spec(columns, nullable=False, closed=True)
    keys_only = not images and bool(key_columns)
    old = columns_spec(key_columns, nullable=True, closed=False) if keys_only else row
    key = columns_spec(key_columns, nullable=False, closed=True, required=True)
    return RowSpecs(row, whole, old, key if key_columns else None)


def spec_of(column: PlanColumn) -> Spec:
    """Return the node of a column's values."""
    return NULL_SPEC if column.reader is None else form_of(column).spec


def columns_spec(
    columns: Sequence[PlanColumn], *, nullable: bool, closed: bool, required: bool = False
) -> Spec:
    """Return the node of objects with these columns; `closed` objects have no other fields."""
    fields = [(column.name, required, spec_of(column)) for column in columns]
    return ("object", nullable, closed, fields)
