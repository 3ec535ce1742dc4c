"""Source positions of messages that were read natively: as `source_position`, on columns."""

import msgspec
import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.cdc.native.cells import Marks, numbers
from ingestd.cdc.native.module import Columns, NativeColumn
from ingestd.cdc.native.plan import SOURCE
from ingestd.cdc.source_position import file_number, is_snapshot, packed_positions

_decode_mark = msgspec.json.Decoder(str | bool | None).decode
_decode_name = msgspec.json.Decoder(str | None).decode


def native_snapshot_rows(columns: Columns, rows: int) -> Marks:
    """Which changes are rows of a snapshot. Raises one of `PARSE_ERRORS`."""
    runs = columns[SOURCE, "snapshot"]
    marks = [is_snapshot(_decode_mark(text)) for text in _texts(runs)]
    return np.repeat(np.array(marks, np.bool_), _lengths(runs, rows))


def native_positions(columns: Columns, snapshot: Marks) -> npt.NDArray[np.int64] | None:
    """The position of each change; None if only the reader in Python can tell them.

    Raises one of `PARSE_ERRORS`.
    """
    rows = len(snapshot)
    lsn, has_lsn = numbers(columns[SOURCE, "lsn"], rows)
    if (lsn < 0).any():
        return None
    if has_lsn.all():
        return lsn
    runs = columns[SOURCE, "file"]
    files = np.array([file_number(_decode_name(text)) for text in _texts(runs)], np.int64)
    pos, has_pos = numbers(columns[SOURCE, "pos"], rows)
    row, _ = numbers(columns[SOURCE, "row"], rows)
    found = packed_positions(np.repeat(files, _lengths(runs, rows)), pos, row)
    found[snapshot | ~has_pos] = UNKNOWN_POSITION
    return np.where(has_lsn, lsn, found)


def _texts(column: NativeColumn) -> list[bytes]:
    """The JSON text of each run; a field that did not come is null."""
    return [b"null" if text is None else text for _, text in column.runs or ()]


def _lengths(column: NativeColumn, rows: int) -> npt.NDArray[np.int64]:
    bounds = np.array([*(start for start, _ in column.runs or ()), rows], np.int64)
    lengths: npt.NDArray[np.int64] = bounds[1:] - bounds[:-1]
    return lengths
