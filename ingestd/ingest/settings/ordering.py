"""Which of two rows with the same key is newer: by arrival, or by position in the source's log.

"arrival" compares offsets in a topic partition, and source positions between partitions. With
"source-position", the table has a column with the position of each row in the log of its source.
This column is the table's `sequence.field`, so that every writer and reader of the table compares
rows in the same way.
https://paimon.apache.org/docs/1.4/primary-key-table/sequence-rowkind/#sequence-field
"""

from collections.abc import Collection, Mapping
from typing import Literal

from ingestd.errors import ConfigError
from ingestd.ingest.computed.metadata_columns import SOURCE_POSITION
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.paimon.spec import honoured_options as honoured

Ordering = Literal["arrival", "source-position"]
SEQUENCE_FIELD = honoured.SEQUENCE_FIELD.name
SORT_ORDER = honoured.SEQUENCE_ORDER.name


def refuse_ordering(
    options: Mapping[str, str], column: str, primary_keys: Collection[str] | None
) -> None:
    """Raise ConfigError if a table with these options cannot order rows by source position.

    `column` is the name of its source position column. `primary_keys` is None if the primary key is
    not known yet.
    """
    if primary_keys is not None and not primary_keys:
        raise ConfigError(
            "ordering 'source-position' is for tables with a primary key: name its columns in "
            "primary-keys, or set ordering to 'arrival'"
        )
    given = ",".join(honoured.SEQUENCE_FIELD.of(options)) or column
    if given != column:
        raise ConfigError(
            f"ordering 'source-position' sets the table option {SEQUENCE_FIELD} to '{column}'; it "
            f"is '{given}': remove one of them"
        )
    if honoured.MERGE_ENGINE.of(options) == "first-row":
        raise ConfigError(
            "ordering 'source-position' has no effect with 'merge-engine' = 'first-row', which "
            "keeps the row that arrived first: remove one of them"
        )
    descending = _descending(options)
    if descending is not None:
        raise ConfigError(descending)


def ordering_rejection(
    table: str, options: Mapping[str, str], column: str, *, by_position: bool
) -> SourceRejection | None:
    """Return why a table cannot use the configured ordering, and what to change; None if it can.

    `options` are the options of the table, `column` is the configured name of its source position
    column, and `by_position` is whether "source-position" is configured.
    """
    conflict = None
    field = ",".join(honoured.SEQUENCE_FIELD.of(options))
    if by_position and field != column:
        conflict = (
            f"table {table}: ordering 'source-position' needs the table option {SEQUENCE_FIELD} = "
            f"'{column}' when the table is created, and it was created with "
            f"'{field}': set ordering to 'arrival', or route the rows to a new table"
        )
    elif by_position:
        conflict = _descending(options)
    elif field.endswith(SOURCE_POSITION):  # with any metadata-column-prefix
        conflict = (
            f"table {table} was created with ordering 'source-position', which cannot be "
            "removed: set it again, or route the rows to a new table"
        )
    return None if conflict is None else SourceRejection("schema", "other-ordering", conflict)


def _descending(options: Mapping[str, str]) -> str | None:
    order = honoured.SEQUENCE_ORDER.of(options)
    if order == "ascending":
        return None
    return (
        f"ordering 'source-position' keeps the row of the largest position, and {SORT_ORDER} = "
        f"'{order}' that of the smallest: remove one of them"
    )
