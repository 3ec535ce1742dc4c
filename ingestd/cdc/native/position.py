"""Source positions of natively read messages: the rules of `source_position` on columns."""

from dataclasses import dataclass

import msgspec
import numpy as np

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.cdc.native.cells import IrregularError, numbers
from ingestd.cdc.native.message_layout import Log, Numbers
from ingestd.cdc.native.module import Columns, NativeColumn, Path
from ingestd.cdc.row_layout import Indices, Kinds, Mask
from ingestd.cdc.source_position import file_number, is_snapshot, packed_positions

_decode_mark = msgspec.json.Decoder(str | bool | None).decode
_decode_name = msgspec.json.Decoder(str | None).decode


@dataclass(frozen=True, slots=True)
class SourceLog:
    """The paths of the fields with a change's position in the log of its database.

    None is a field that no message has.
    """

    snapshot: Path | None
    lsn: Path | None
    file: Path | None
    pos: Path | None
    row: Path | None

    def read(self, columns: Columns, kinds: Kinds) -> Log:
        """Return positions and snapshot rows. Raises IrregularError or one of `PARSE_ERRORS`."""
        size = len(kinds)
        snapshot = np.zeros(size, np.bool_)
        if self.snapshot is not None:
            snapshot = _snapshot_rows(columns[self.snapshot], size)
        return Log(self.positions(columns, snapshot), snapshot)

    def positions(self, columns: Columns, snapshot: Mask) -> Numbers:
        """Return the position of each change. Raises IrregularError or one of `PARSE_ERRORS`."""
        size = len(snapshot)
        lsn, has_lsn = _numbers(columns, self.lsn, size)
        if (lsn < 0).any():
            raise IrregularError("positions of more than one kind")
        if has_lsn.all():
            return lsn
        files = np.full(size, UNKNOWN_POSITION, np.int64)
        if self.file is not None:
            runs = columns[self.file]
            found = [file_number(_decode_name(text)) for text in _texts(runs)]
            files = np.repeat(np.array(found, np.int64), run_lengths(runs, size))
        pos, has_pos = _numbers(columns, self.pos, size)
        row, _ = _numbers(columns, self.row, size)
        packed = packed_positions(files, pos, row)
        packed[~has_pos] = UNKNOWN_POSITION
        return np.where(has_lsn, lsn, packed)


def _numbers(columns: Columns, path: Path | None, size: int) -> tuple[Numbers, Mask]:
    if path is None:
        return np.zeros(size, np.int64), np.zeros(size, np.bool_)
    return numbers(columns[path], size)


def _snapshot_rows(runs: NativeColumn, size: int) -> Mask:
    marks = [is_snapshot(_decode_mark(text)) for text in _texts(runs)]
    return np.repeat(np.array(marks, np.bool_), run_lengths(runs, size))


def _texts(column: NativeColumn) -> list[bytes]:
    """Return the JSON text of each run; an absent field is null."""
    return [b"null" if text is None else text for _, text in column.runs or ()]


def run_lengths(column: NativeColumn, rows: int) -> Indices:
    """Return the number of rows of each run."""
    bounds = np.array([*(start for start, _ in column.runs or ()), rows], np.int64)
    lengths: Indices = bounds[1:] - bounds[:-1]
    return lengths
