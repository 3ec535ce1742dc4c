"""What a statement proves of columns: with the columns that there are behind it, or alone."""

from collections.abc import Iterable

from ingestd.cdc.ddl.alter_text import ColumnChange, added_columns, column_changes

Changes = tuple[tuple[str, str | None], ...]
"""Old names of columns, and new ones; None for a column that is gone."""


def proven_by_columns(said: Iterable[ColumnChange], names: Iterable[str]) -> Changes:
    """Changes of a statement that the columns after it agree with: new ones there, old ones not.

    New names are spelt as the columns are. Without columns nothing is proven.
    """
    spelled = {name.lower(): name for name in names}
    if not spelled:
        return ()
    return tuple(
        (old, None if new is None else spelled[new.lower()])
        for old, new in said
        if old.lower() not in spelled and (new is None or new.lower() in spelled)
    )


def proven_alone(statement: str) -> Changes:
    """Changes of a statement after which no column has an old name, by what it says itself."""
    changes = column_changes(statement)
    there = {name.lower() for name in added_columns(statement)}
    there |= {new.lower() for _, new in changes if new is not None}
    return tuple((old, new) for old, new in changes if old.lower() not in there)
