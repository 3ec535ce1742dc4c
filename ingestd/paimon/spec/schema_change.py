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
    """Kinds of column positions."""

    FIRST = "first"
    LAST = "last"
    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Move:
    """A column position; `reference` is the neighbour of AFTER and BEFORE."""

    place: MoveType
    reference: str | None = None

    def __str__(self) -> str:
        return self.place.value + (f" {self.reference}" if self.reference is not None else "")


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a nullable column, by default at the end."""

    name: ColumnPath
    type: DataType
    comment: str | None = None
    move: Move | None = None

    def __str__(self) -> str:
        return f"add {shown(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class UpdateColumnType:
    """Change the type of a column, including its nullability unless `keep_nullability` is set."""

    name: ColumnPath
    type: DataType
    keep_nullability: bool = False

    def __str__(self) -> str:
        return f"change {shown(self.name)} to {self.type}"


@dataclass(frozen=True, slots=True)
class UpdateColumnNullability:
    """Make a column nullable or NOT NULL."""

    name: ColumnPath
    nullable: bool


@dataclass(frozen=True, slots=True)
class UpdateColumnComment:
    """Set the comment of a column; None removes it."""

    name: ColumnPath
    comment: str | None


@dataclass(frozen=True, slots=True)
class UpdateColumnDefaultValue:
    """Set the default value of a column, as text; None removes it."""

    name: ColumnPath
    default_value: str | None


@dataclass(frozen=True, slots=True)
class UpdateColumnPosition:
    """Move a top-level column."""

    name: str
    move: Move


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Rename a column, which keeps its id."""

    name: ColumnPath
    new_name: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Drop a column; its id is never reused."""

    name: ColumnPath


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set a table option."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """Reset a table option to its default."""

    key: str


@dataclass(frozen=True, slots=True)
class UpdateComment:
    """Set the comment of the table; None removes it."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class DropPrimaryKey:
    """Drop the primary key; only for a table without snapshots."""


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
    """Return a column's name as a path."""
    return (name,) if isinstance(name, str) else tuple(name)


def shown(name: ColumnPath) -> str:
    """Return a column's name for messages."""
    return ".".join(path_of(name))
