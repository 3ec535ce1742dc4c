"""The comments of source tables and columns as the comments of target tables.

A table takes a comment that it never had. Its earlier comments are in its schema versions, so a
comment that a user or another engine set stays until the source has a new one, and comments that
alternate do not change the schema again and again. If a table has rows of several source tables,
it takes only the first comment.
"""

from collections.abc import Iterable, Iterator, Mapping

from ingestd.cdc.base import NO_COMMENTS, Comments
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec.schema_change import SchemaChange, UpdateColumnComment, UpdateComment
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

MOST_COMMENTS = 20
"""Maximum number of different comments that a column or table has taken, for schemas whose comments
change with every message."""


def new_comments(
    comments: Comments, schema: TableSchema | None, settings: TableSettings
) -> Comments:
    """Return the comments under the column names of the target that differ from those it has.

    `schema` is None if the target does not exist.
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
    known = {field.name: field.description for field in schema.fields}
    differing = {name: text for name, text in columns.items() if known.get(name) != text}
    return Comments(None if comments.table == schema.comment else comments.table, differing)


def discovered_comments(discoveries: Iterable[Discovery]) -> Comments:
    """Return the comments of all discoveries of a table; the last one of a column is used."""
    comments = NO_COMMENTS
    for discovery in discoveries:
        comments = discovery.comments.over(comments)
    return comments


def comment_changes(
    table: FileStoreTable, schema: TableSchema, comments: Comments, *, only_first: bool
) -> Iterator[SchemaChange]:
    """Yield the changes of comments of a table, whose next schema will be `schema`.

    With `only_first`, columns and tables that have had a comment keep theirs.
    """
    if not comments:
        return
    history = [table.schemas(number) for number in range(table.schema.id + 1)]
    if comments.table is not None:
        former = {version.comment for version in history}
        if _takes(comments.table, former, only_first=only_first):
            yield UpdateComment(comments.table)
    by_column = _column_comments(history)
    for field in schema.fields:
        comment, former = comments.columns.get(field.name), by_column.get(field.id, set())
        if comment is not None and _takes(comment, former, only_first=only_first):
            yield UpdateColumnComment(field.name, comment)


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
