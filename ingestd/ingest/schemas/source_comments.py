"""Copy the comments of source tables and columns to target tables.

A table takes a comment for itself or a column that has no comment, or whose comment it took from
the source before: a comment that a user or another engine set is kept. A table option contains
digests of the comments that were taken. Former comments are stored in the schema versions of the
table and are not taken again, so that alternating comments do not change the schema repeatedly. A
table with rows of several source tables takes only the first comment.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ingestd.cdc.base import NO_COMMENTS, Comments
from ingestd.errors import FormatError
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.schema_change import (
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateComment,
)
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

MOST_COMMENTS = 20
"""Maximum number of different comments that a column or table has taken, for schemas whose comments
change with every message."""
SOURCE_COMMENTS_OPTION = honoured.SOURCE_COMMENTS.name
"""Table option with a JSON object: the digest of the comment that was taken, by the id of the field
as text, or "" for the comment of the table.
"""
_OF_TABLE = ""
_DIGITS = 8


def new_comments(
    comments: Comments, schema: TableSchema | None, settings: TableSettings
) -> Comments:
    """Return the comments of a source table that its target may take, by column name of the target.

    They differ from the comments of the target, and replace no comment of a user. `schema` is None
    if the target does not exist. Raises FormatError if the table option with the digests of
    comments is damaged.
    """
    if settings.evolution.on_comment == "ignore":
        return NO_COMMENTS
    new_names = {old: new for new, old in settings.evolution.aliases.items()}
    columns = {
        new_names.get(name, name): comment
        for name, comment in comments.columns.items()
        if settings.shape.selects(name)
    }
    if schema is None:
        return Comments(comments.table, columns)
    taken = _taken(schema)
    closed = {field.name for field in schema.fields if not _is_open(field, taken)}
    known = {field.name: field.description for field in schema.fields}
    differing = {
        name: text
        for name, text in columns.items()
        if name not in closed and known.get(name) != text
    }
    of_table = comments.table
    if of_table == schema.comment or not _is_own(schema.comment, taken.get(_OF_TABLE)):
        of_table = None
    return Comments(of_table, differing)


def discovered_comments(discoveries: Iterable[Discovery]) -> Comments:
    """Merge the comments of all discoveries of a table; the last comment of a column is used."""
    comments = NO_COMMENTS
    for discovery in discoveries:
        comments = discovery.comments.over(comments)
    return comments


def comment_changes(
    table: FileStoreTable, schema: TableSchema, comments: Comments, *, only_first: bool
) -> Iterator[SchemaChange]:
    """Yield the schema changes that set comments of a table, and its option with their digests.

    `schema` is the schema after the other changes of the same plan. With `only_first`, a column or
    table that has had a comment, in any schema of `table`, takes no other. Raises FormatError if
    the option is damaged.
    """
    if not comments:
        return
    history = [table.schemas(number) for number in range(table.schema.id + 1)]
    taken = _taken(schema)
    own = dict(taken)
    if comments.table is not None and _is_own(schema.comment, taken.get(_OF_TABLE)):
        former = {version.comment for version in history}
        if _takes(comments.table, former, only_first=only_first):
            own[_OF_TABLE] = _digest(comments.table)
            yield UpdateComment(comments.table)
    by_column = _column_comments(history)
    for field in schema.fields:
        comment, former = comments.columns.get(field.name), by_column.get(field.id, set())
        is_open = comment is not None and _is_open(field, taken)
        if comment is not None and is_open and _takes(comment, former, only_first=only_first):
            own[str(field.id)] = _digest(comment)
            yield UpdateColumnComment(field.name, comment)
    if own != taken:
        yield SetOption(SOURCE_COMMENTS_OPTION, json.dumps(own))


def commented(schema: TableSchema, comments: Comments) -> TableSchema:
    """Return the first schema of a table with the comments of its source.

    Columns without a comment have none. The digests of the comments are added as a table option.
    """
    fields = tuple(
        replace(field, description=comments.columns.get(field.name)) for field in schema.fields
    )
    own = {str(f.id): _digest(f.description) for f in fields if f.description is not None}
    if comments.table is not None:
        own[_OF_TABLE] = _digest(comments.table)
    options = {**schema.options, SOURCE_COMMENTS_OPTION: json.dumps(own)} if own else schema.options
    return replace(schema, fields=fields, comment=comments.table, options=options)


def _taken(schema: TableSchema) -> Mapping[str, str]:
    """Return the digests of the comments that were taken, by the keys of `SOURCE_COMMENTS_OPTION`.

    Raises FormatError if the option is damaged.
    """
    text = honoured.SOURCE_COMMENTS.of(schema.options)
    if text is None:
        return {}
    try:
        return {str(key): str(digest) for key, digest in json.loads(text).items()}
    except (AttributeError, ValueError) as error:
        raise FormatError(
            f"option '{SOURCE_COMMENTS_OPTION}' is damaged ({error}); remove it from the table, "
            "whose comments then stay as they are"
        ) from error


def _is_open(field: DataField, taken: Mapping[str, str]) -> bool:
    return _is_own(field.description, taken.get(str(field.id)))


def _is_own(comment: str | None, taken: str | None) -> bool:
    """Return whether a comment is the one taken from the source, of which `taken` is the digest.

    Returns True also if both are None: no comment exists, and none was taken.
    """
    return taken == (None if comment is None else _digest(comment))


def _digest(comment: str) -> str:
    return hashlib.sha256(comment.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _column_comments(history: Iterable[TableSchema]) -> Mapping[int, set[str | None]]:
    """Return the comments that each column has had, by field id."""
    comments: dict[int, set[str | None]] = {}
    for version in history:
        for field in version.fields:
            comments.setdefault(field.id, set()).add(field.description)
    return comments


def _takes(comment: str, former: set[str | None], *, only_first: bool) -> bool:
    known = former - {None}
    return comment not in known and len(known) < (1 if only_first else MOST_COMMENTS)
