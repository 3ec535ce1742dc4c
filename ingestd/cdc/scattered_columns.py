"""Split messages with columns of their own before their cells outgrow their bytes.

Every row of a batch has a cell for each of its columns, so n messages with one new column each
would have n times n cells. Columns that the table has are not limited. More than `FEW` columns that
it lacks may have at most as many cells as the messages have bytes; otherwise the messages become
several batches. That does not happen if each message has most of the columns.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from ingestd.cdc.record_errors import refuse
from ingestd.cdc.texts import Texts, bytes_of

MOST_IN_A_RECORD = 32_768
"""Limit of columns in a message that its plan does not have."""
FEW = 256
"""Columns that the table lacks and that are always accepted."""


class TooManyCellsError(Exception):
    """Columns that the table lacks would make more cells than the messages have bytes."""


def check_width(names: Collection[str]) -> None:
    """Raise RecordError for a message with more than `MOST_IN_A_RECORD` columns."""
    if len(names) > MOST_IN_A_RECORD:
        raise refuse(
            "schema",
            "too-many-columns",
            f"the message has {len(names)} columns; {MOST_IN_A_RECORD} are read of one message",
        )


def too_many_cells(lacking: int, values: Texts) -> bool:
    """Return whether messages with `lacking` columns that the table lacks exceed one batch."""
    if lacking <= FEW:
        return False
    return _too_many(lacking, len(values), bytes_of(values))


def _too_many(lacking: int, messages: int, size: int) -> bool:
    return lacking > FEW and messages > 1 and lacking * messages > size


def check_cells(lacking: int, values: Sequence[bytes]) -> None:
    """Raise TooManyCellsError if the messages exceed one batch."""
    if too_many_cells(lacking, values):
        raise TooManyCellsError


def parts(
    values: Sequence[bytes], lacking_in: Callable[[int], Collection[str]]
) -> Iterator[tuple[int, int]]:
    """Yield the ranges `[start, end)` of consecutive messages that fit into one batch.

    `lacking_in` returns the columns of the message at an index that the table lacks.
    """
    start, size = 0, 0
    names: set[str] = set()
    for place, value in enumerate(values):
        added = [name for name in lacking_in(place) if name not in names]
        size += len(value)
        if _too_many(len(names) + len(added), place - start + 1, size):
            yield start, place
            start, size, names = place, len(value), set()
            added = list(lacking_in(place))
        names.update(added)
    yield start, len(values)
