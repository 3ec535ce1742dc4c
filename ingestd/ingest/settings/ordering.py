"""Which of two rows of a key is newer: the one that arrived later, or the later one in its source.

By arrival the offset in the topic partition decides. By source position the table has a column with
the position of each row in its source's log, which is the table's `sequence.field`: so every other
writer and reader of the table compares rows in the same way.
https://paimon.apache.org/docs/1.4/primary-key-table/sequence-rowkind/
"""

from collections.abc import Collection, Mapping
from typing import Literal

from ingestd.errors import ConfigError
from ingestd.ingest.computed.metadata_columns import SOURCE_POSITION
from ingestd.paimon.spec import honoured_options as honoured

Ordering = Literal["arrival", "source-position"]
SEQUENCE_FIELD = honoured.SEQUENCE_FIELD.name
SORT_ORDER = honoured.SEQUENCE_ORDER.name


def refuse_ordering(
    options: Mapping[str, str], column: str, primary_keys: Collection[str] | None
) -> None:
    """Raise ConfigError if rows of such a table cannot be ordered by their source position.

    `primary_keys` are None where they are not known yet.
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
            f"is '{given}': leave out one of them"
        )
    if honoured.MERGE_ENGINE.of(options) == "first-row":
        raise ConfigError(
            "ordering 'source-position' has no meaning with 'merge-engine' = 'first-row', which "
            "keeps the row that arrived first: leave out one of them"
        )
    _refuse_descending(options)


def refuse_other_ordering(
    table: str, options: Mapping[str, str], column: str, *, by_position: bool
) -> None:
    """Raise ConfigError if a table was created for another ordering than the configured one.

    `options` are those of the table, `column` its column of source positions.
    """
    field = ",".join(honoured.SEQUENCE_FIELD.of(options))
    if by_position and field != column:
        raise ConfigError(
            f"table {table}: ordering 'source-position' needs the table option {SEQUENCE_FIELD} = "
            f"'{column}' from the creation of the table on, and it was created with "
            f"'{field}': set ordering to 'arrival', or let the rows go into a new table (routing)"
        )
    if by_position:
        _refuse_descending(options)
    elif field.endswith(SOURCE_POSITION):  # whatever its metadata-column-prefix was
        raise ConfigError(
            f"table {table} was created with ordering 'source-position', which cannot be taken "
            "away: set it again, or let the rows go into a new table (routing)"
        )


def _refuse_descending(options: Mapping[str, str]) -> None:
    order = honoured.SEQUENCE_ORDER.of(options)
    if order != "ascending":
        raise ConfigError(
            f"ordering 'source-position' takes the row of the largest position, and {SORT_ORDER} = "
            f"'{order}' that of the smallest: leave out one of them"
        )
