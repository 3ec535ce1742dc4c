"""Infer column changes from a DDL statement, with or without a list of the resulting columns."""

from collections.abc import Iterable

from ingestd.cdc.ddl.alter_text import ColumnChange, added_columns, column_changes

Changes = tuple[tuple[str, str | None], ...]
"""Pairs of the old and the new name of a column; the new name is None for a dropped column."""


def proven_by_columns(changes: Iterable[ColumnChange], names: Iterable[str]) -> Changes:
    """Return the changes that the columns after the statement confirm.

    A rename is confirmed if the new name is one of these columns and the old name is not; a drop,
    if the old name is not. Names are compared without case; new names are returned in the case of
    the columns. If there are no columns, no change is confirmed.
    """
    spelled = {name.lower(): name for name in names}
    if not spelled:
        return ()
    return tuple(
        (old, None if new is None else spelled[new.lower()])
        for old, new in changes
        if old.lower() not in spelled and (new is None or new.lower() in spelled)
    )


def proven_alone(statement: str) -> Changes:
    """Return the changes of a statement, except those whose old name it gives to another column.

    That column is one that the statement adds or renames.
    """
    changes = column_changes(statement)
    there = {name.lower() for name in added_columns(statement)}
    there |= {new.lower() for _, new in changes if new is not None}
    return tuple((old, new) for old, new in changes if old.lower() not in there)
