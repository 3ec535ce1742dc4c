"""Types of schema changes; `schema_apply` applies them.

A column is identified by its name or, for nested columns, by a path of names, in which `element`
stands for the elements of an array and `value` for the values of a map: ("orders", "element",
"id").

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

from dataclasses import dataclass
from enum import Enum

from ingestd.paimon.spec.data_types import DataType

ColumnPath = str | tuple[str, ...]


class MoveType(Enum):
    """Where a column is moved: to the first or last position, or next to another column."""

    FIRST = "first"
    LAST = "last"
    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Move:
    """A column position; `reference` is the neighbouring column, for AFTER and BEFORE."""

    type: MoveType
    reference: str | None = None

    def __str__(self) -> str:
        return self.type.value + (f" {self.reference}" if self.reference is not None else "")


@dataclass(frozen=True, slots=True)
class AddColumn:
    """The addition of a nullable column.

    Without `move`, the column is added at the end, or before the partition columns if the option
    `add-column-before-partition` is set.
    """

    name: ColumnPath
    type: DataType
    comment: str | None = None
    move: Move | None = None

    def __str__(self) -> str:
        return f"add {dotted_name(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class UpdateColumnType:
    """A change of a column's type, including its nullability unless `keep_nullability` is set."""

    name: ColumnPath
    type: DataType
    keep_nullability: bool = False

    def __str__(self) -> str:
        return f"change {dotted_name(self.name)} to {self.type}"


@dataclass(frozen=True, slots=True)
class UpdateColumnNullability:
    """A change of a column to nullable or NOT NULL."""

    name: ColumnPath
    nullable: bool


@dataclass(frozen=True, slots=True)
class UpdateColumnComment:
    """A change of the comment of a column; None removes it."""

    name: ColumnPath
    comment: str | None


@dataclass(frozen=True, slots=True)
class UpdateColumnDefaultValue:
    """A change of the default value of a column, given as text; None removes it."""

    name: ColumnPath
    default_value: str | None


@dataclass(frozen=True, slots=True)
class UpdateColumnPosition:
    """A move of a top-level column to another position."""

    name: str
    move: Move


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A rename of a column; its id stays the same."""

    name: ColumnPath
    new_name: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """The removal of a column; its id is never reused."""

    name: ColumnPath


@dataclass(frozen=True, slots=True)
class SetOption:
    """A schema change that sets a table option."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """The removal of a table option, so that its default applies."""

    key: str


@dataclass(frozen=True, slots=True)
class UpdateComment:
    """A change of the comment of the table; None removes it."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class DropPrimaryKey:
    """The removal of the primary key; only for a table without snapshots."""


SchemaChange = (
    AddColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnDefaultValue
    | UpdateColumnPosition
    | RenameColumn
    | DropColumn
    | SetOption
    | RemoveOption
    | UpdateComment
    | DropPrimaryKey
)


def path_of(name: ColumnPath) -> tuple[str, ...]:
    """Return the name of a column, or of a nested column, as a path of names."""
    return (name,) if isinstance(name, str) else tuple(name)


def dotted_name(name: ColumnPath) -> str:
    """Return a column's name for messages, with dots between the names of a path."""
    return ".".join(path_of(name))
