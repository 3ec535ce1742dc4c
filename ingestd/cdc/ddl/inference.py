"""Infer column changes from a statement, with or without the columns after it."""

from collections.abc import Iterable

from ingestd.cdc.ddl.alter_text import ColumnChange, added_columns, column_changes

Changes = tuple[tuple[str, str | None], ...]
"""Old and new names of columns; None for a dropped column."""


def proven_by_columns(changes: Iterable[ColumnChange], names: Iterable[str]) -> Changes:
    """Return the changes that the columns after the statement confirm.

    New names are among these columns, old ones are not. New names are spelled as the columns are.
    Without columns no change is confirmed.
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
    """Return the changes of a statement that gives no other column an old name."""
    changes = column_changes(statement)
    there = {name.lower() for name in added_columns(statement)}
    there |= {new.lower() for _, new in changes if new is not None}
    return tuple((old, new) for old, new in changes if old.lower() not in there)
