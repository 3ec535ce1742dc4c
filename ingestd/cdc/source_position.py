"""The position of a change in the log of its source database, as one ordered 64-bit number.

In PostgreSQL, this is the log sequence number, which many rows of a COPY share. In MySQL and
MariaDB, file number, position in the file and row of the event are packed. Changes of other
connectors, and values that do not fit, have no position. All rows of a snapshot have the position
of the snapshot.
"""

import re
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import UNKNOWN_POSITION

_FILE_NUMBER = re.compile(r"\.(\d+)$")
_FILE_BITS, _POS_BITS, _ROW_BITS = 19, 32, 12
_MAX_POSITION = 2**63 - 1
LAST_ROW = 2**_ROW_BITS - 1
"""The largest row number in a packed position."""


class SourcePosition(msgspec.Struct, gc=False):
    """The fields of a Debezium event's `source` that contain the log position of the change.

    `snapshot` marks rows of a snapshot. `lsn` is PostgreSQL's log sequence number; `file`, `pos`
    and `row` are the name of MySQL's binary log file, the offset in it, and the number of the row
    in the event at this offset.
    """

    snapshot: str | bool | None = None
    lsn: int | str | None = None
    file: str | None = None
    pos: int | str | None = None
    row: int | str | None = None


def positions(sources: Sequence[SourcePosition]) -> npt.NDArray[np.int64]:
    """Compute the log position of each change, -1 if it has none; shape (n,)."""
    numbers = [source.lsn for source in sources]
    packed = _one_file(sources) if numbers.count(None) == len(numbers) else _integers(numbers)
    if packed is None:
        return np.array([position_of(source) for source in sources], np.int64)
    return packed


def _integers(numbers: Sequence[int | str | None]) -> npt.NDArray[np.int64] | None:
    """Return the numbers as an array if all are 64-bit integers, or else None."""
    array = np.array(numbers)
    return array if array.dtype == np.int64 else None


def _one_file(sources: Sequence[SourcePosition]) -> npt.NDArray[np.int64] | None:
    """Return the positions of changes in one binary log file, each as one integer.

    Returns None unless all changes have the same file, the number of the file fits in `_FILE_BITS`
    bits, and each change has an integer position and row.
    """
    files = [source.file for source in sources]
    match = _FILE_NUMBER.search(files[0] or "")
    if match is None or files.count(files[0]) < len(files) or int(match[1]) >> _FILE_BITS:
        return None
    pos = _integers([source.pos for source in sources])
    row = _integers([source.row for source in sources])
    if pos is None or row is None:
        return None
    return packed_positions(np.full(len(sources), int(match[1]), np.int64), pos, row)


def file_number(name: str | None) -> int:
    """Return the number of a binary log file, or -1 if its name has no valid number."""
    match = _FILE_NUMBER.search(name or "")
    return UNKNOWN_POSITION if match is None or int(match[1]) >> _FILE_BITS else int(match[1])


def packed_positions(
    files: npt.NDArray[np.int64], pos: npt.NDArray[np.int64], row: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Pack file number, position and row of each change into one number; shape (n,).

    The numbers of different rows are distinct. A number is -1 if one of its three parts is too
    large or unknown.
    """
    packed = ((files << _POS_BITS) + pos << _ROW_BITS) + row
    packed[(files < 0) | (pos >> _POS_BITS != 0) | (row >> _ROW_BITS != 0)] = UNKNOWN_POSITION
    return packed


def position_of(source: SourcePosition) -> int:
    """Compute the log position of one change, -1 if it has none."""
    if isinstance(source.lsn, int) and 0 <= source.lsn <= _MAX_POSITION:
        return source.lsn
    if source.file is None:
        return UNKNOWN_POSITION
    match = _FILE_NUMBER.search(source.file)
    pos, row = source.pos, source.row or 0
    if match is None or not isinstance(pos, int) or not isinstance(row, int):
        return UNKNOWN_POSITION
    return _packed(int(match[1]), pos, row)


def _packed(file: int, pos: int, row: int) -> int:
    """Pack the position of a row, or return `UNKNOWN_POSITION` if a part does not fit."""
    fits = file >> _FILE_BITS == 0 and pos >> _POS_BITS == 0 and row >> _ROW_BITS == 0
    return (file << _POS_BITS | pos) << _ROW_BITS | row if fits else UNKNOWN_POSITION


def ordering_positions(
    position: npt.NDArray[np.int64], snapshot_row: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return the positions by which rows are compared; shape (rows,).

    The number of a snapshot row is one less than the position of the snapshot, so that later
    changes are newer. No change in PostgreSQL or MySQL has this number. The result is negative if a
    row has no position.
    """
    return np.where(snapshot_row, position - 1, position)


def snapshot_mask(sources: Sequence[SourcePosition]) -> npt.NDArray[np.bool_]:
    """Return a mask of changes that are snapshot rows; shape (n,)."""
    marks = [source.snapshot for source in sources]
    if marks.count("false") == len(marks):
        return np.zeros(len(marks), np.bool_)
    return np.array([is_snapshot(mark) for mark in marks], np.bool_)


def is_snapshot(mark: str | bool | None) -> bool:
    """Return whether a value of `source.snapshot` marks a snapshot row.

    The value is a string, or a boolean in older versions of Debezium.
    """
    return mark not in ("false", False, None)


def effective_positions(positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the source position by which each row is ordered; shape (n,).

    Rows of an incremental snapshot have the position -1, but are in the topic between rows with a
    position. They get the largest position before them, or else the first known position. If no row
    has a position, all are -1.
    """
    known = positions[positions >= 0]
    if len(known) in (0, len(positions)):
        return positions
    furthest = np.maximum.accumulate(positions)
    neighbours = np.where(furthest >= 0, furthest, known[0])
    return np.where(positions >= 0, positions, neighbours)
