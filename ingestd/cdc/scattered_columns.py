"""Messages that bring columns of their own: taken apart before their cells outgrow their bytes.

Every row of a batch has a cell for each of its columns, so n messages with a column each would
make n times n cells of a few bytes each. What a table has already is its own affair; more than a
few columns that it lacks may make no more cells than the messages have bytes, or the messages
become several batches. Where each message has most of the columns that never happens.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from ingestd.cdc.record_errors import refuse
from ingestd.cdc.texts import Texts, bytes_of

MOST_IN_A_RECORD = 32_768
"""Columns that a message may have which its plan does not know."""
FEW = 256
"""This many columns that the table lacks are never too many."""


class TooManyCellsError(Exception):
    """Columns that the table lacks would make more cells than the messages have bytes."""


def check_width(names: Collection[str]) -> None:
    """RecordError for a message with more columns than any table should get from one."""
    if len(names) > MOST_IN_A_RECORD:
        raise refuse(
            "schema",
            "too-many-columns",
            f"the message has {len(names)} columns; {MOST_IN_A_RECORD} are read of one message",
        )


def too_many_cells(lacking: int, values: Texts) -> bool:
    """Whether these messages may not be one batch with `lacking` columns that the table lacks."""
    if lacking <= FEW:
        return False
    return _too_many(lacking, len(values), bytes_of(values))


def _too_many(lacking: int, messages: int, size: int) -> bool:
    return lacking > FEW and messages > 1 and lacking * messages > size


def check_cells(lacking: int, values: Sequence[bytes]) -> None:
    """TooManyCellsError if they may not be one batch."""
    if too_many_cells(lacking, values):
        raise TooManyCellsError


def parts(
    values: Sequence[bytes], lacking_in: Callable[[int], Collection[str]]
) -> Iterator[tuple[int, int]]:
    """First and last+1 of consecutive messages that may be one batch.

    `lacking_in` names the columns of the message at a place that the table lacks.
    """
    start, size = 0, 0
    names: set[str] = set()
    for place, value in enumerate(values):
        brought = [name for name in lacking_in(place) if name not in names]
        size += len(value)
        if _too_many(len(names) + len(brought), place - start + 1, size):
            yield start, place
            start, size, names = place, len(value), set()
            brought = list(lacking_in(place))
        names.update(brought)
    yield start, len(values)
