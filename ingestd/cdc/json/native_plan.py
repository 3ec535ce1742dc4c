"""The nodes of native plans: of a table's rows and keys, and of the fields around them.

Plans accept a subset of the messages that the structs of `row_plan` accept; the others are decoded
in Python.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingestd.cdc.columns.column_encoding import RAW, ColumnEncoding, Spec
from ingestd.cdc.columns.column_reader import PlanColumn

NULL_SPEC: Spec = ("null",)
NULL = b"null"
Field = tuple[str, bool, Spec]
"""The name of a field, whether messages must have it, and its node."""
RUNS_SPEC: Spec = ("runs",)
FLAG_SPEC: Spec = ("choice", (b"false", NULL))
"""JSON texts of false and null."""


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


def constant_fields(constants: Mapping[str, bytes], names: Sequence[str]) -> list[Field]:
    """Return nodes of fields with a known JSON text; a null may be absent."""
    return [constant_field(name, constants[name]) for name in names]


def constant_field(name: str, text: bytes) -> Field:
    """Return the node of a field with a known JSON text; a null may be absent."""
    return (name, False, NULL_SPEC) if text == NULL else (name, True, ("literal", text))


def open_object(fields: Sequence[Field], *, nullable: bool = False) -> Spec:
    """Return the node of an object with these fields and any others."""
    return ("object", nullable, False, tuple(fields))


def words_spec(words: Sequence[str]) -> Spec:
    """Return the node of a choice of words."""
    return ("choice", texts_of(words))


def texts_of(words: Sequence[str]) -> tuple[bytes, ...]:
    """Return words as JSON texts."""
    return tuple(b'"%s"' % word.encode() for word in words)
