"""Changes of a schema, as values. What comes of them lives in `schema_apply`.

A column is named by its name, or inside other columns by a path of names, in which `element`
stands for what is in an array and `value` for the values of a map: ("orders", "element", "id").

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

from dataclasses import dataclass
from enum import Enum

from ingestd.paimon.spec.data_types import DataType

ColumnPath = str | tuple[str, ...]


class Place(Enum):
    """Where a column goes among its neighbours."""

    FIRST = "first"
    LAST = "last"
    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Move:
    """A place for a column; `reference` is the neighbour of AFTER and BEFORE."""

    place: Place
    reference: str | None = None

    def __str__(self) -> str:
        return self.place.value + (f" {self.reference}" if self.reference is not None else "")


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new nullable column, at the end if nothing else is said."""

    name: ColumnPath
    type: DataType
    comment: str | None = None
    move: Move | None = None

    def __str__(self) -> str:
        return f"add {shown(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class UpdateColumnType:
    """Another type for a column, nullability included unless it is to be kept."""

    name: ColumnPath
    type: DataType
    keep_nullability: bool = False

    def __str__(self) -> str:
        return f"change {shown(self.name)} to {self.type}"


@dataclass(frozen=True, slots=True)
class UpdateColumnNullability:
    """Let a column have nulls, or no longer."""

    name: ColumnPath
    nullable: bool


@dataclass(frozen=True, slots=True)
class UpdateColumnComment:
    """Another comment for a column; None for none."""

    name: ColumnPath
    comment: str | None


@dataclass(frozen=True, slots=True)
class UpdateColumnDefaultValue:
    """Another default value, as text, for a column; None for none."""

    name: ColumnPath
    default_value: str | None


@dataclass(frozen=True, slots=True)
class UpdateColumnPosition:
    """Another place for a column of the table."""

    name: str
    move: Move


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Another name for a column, which keeps its id."""

    name: ColumnPath
    new_name: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Take a column away; its id is never given again."""

    name: ColumnPath


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set a table option."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """Give a table option its default again."""

    key: str


@dataclass(frozen=True, slots=True)
class UpdateComment:
    """Another comment for the table; None for none."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class DropPrimaryKey:
    """Make the table one without primary key; only before it has a snapshot."""


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
    """Return a column's name in messages."""
    return ".".join(path_of(name))
