"""Find and replace nested columns by their path.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#datafield
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec.data_types import DataField, DataType

Fields = tuple[DataField, ...]

_STEPS = {"ARRAY": "element", "MAP": "value"}
"""Root of a collection -> the name of its elements in a path."""


def find_column(fields: Fields, name: str) -> DataField:
    """Return the field with a name. Raises SchemaConflictError if it does not exist."""
    for field in fields:
        if field.name == name:
            return field
    raise SchemaConflictError(
        f"there is no column '{name}'; there are {', '.join(field.name for field in fields)}"
    )


def replace_column(fields: Fields, column: DataField) -> Fields:
    """Return the fields with `field` in place of the one that has the same id."""
    return tuple(column if field.id == column.id else field for field in fields)


def change_siblings(
    fields: Fields, path: Sequence[str], change: Callable[[Fields], Fields]
) -> Fields:
    """Return the fields after `change` was applied to the list that contains the end of a path.

    Raises SchemaConflictError if the path does not exist.
    """
    if len(path) == 1:
        return change(fields)
    field = find_column(fields, path[0])

    def inside(t: DataType, depth: int) -> DataType:
        if t.root == "ROW":
            return replace(t, fields=change_siblings(t.fields, path[depth:], change))
        return _step(t, path, depth, inside)

    return replace_column(fields, replace(field, type=inside(field.type, 1)))


def change_type(
    fields: Fields, path: Sequence[str], change: Callable[[DataType], DataType]
) -> Fields:
    """Return the fields after `change` was applied to the type at a path."""
    field = find_column(fields, path[0])

    def inside(t: DataType, depth: int) -> DataType:
        if depth == len(path):
            return change(t)
        if t.root == "ROW":
            return replace(t, fields=change_type(t.fields, path[depth:], change))
        return _step(t, path, depth, inside)

    return replace_column(fields, replace(field, type=inside(field.type, 1)))


def _step(
    t: DataType, path: Sequence[str], depth: int, inside: Callable[[DataType, int], DataType]
) -> DataType:
    """Apply `inside` to the element or value type of a collection, one step of the path."""
    name = _STEPS.get(t.root)
    if name is None or depth >= len(path) or path[depth] != name:
        steps = f"'{name}' is what leads into it" if name else "nothing is inside it"
        raise SchemaConflictError(
            f"column '{'.'.join(path)}' is not there: '{'.'.join(path[:depth])}' is {t}; {steps}"
        )
    if t.element is not None:
        return replace(t, element=inside(t.element, depth + 1))
    if t.value is None:
        raise ValueError(f"{t} has no values")
    return replace(t, value=inside(t.value, depth + 1))
