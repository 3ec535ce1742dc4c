"""Read many Avro messages in parallel: each step reads one field of all messages.

The values of a field are read together with NumPy, not message by message. A truncated or invalid
message is marked as bad. Values read from it are undefined, but no byte beyond its end is read.
Specification: https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.cell_budget import CellBudget, most_cells
from ingestd.cdc.columns.arrow_calls import py_buffer, take
from ingestd.errors import ConfigError
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.row_selection import Mask

Ints = npt.NDArray[np.int64]
_PADDING = bytes(16)
_LAST_SHIFT = 63
_MORE = 0x80
"""The bit of a varint byte that means that another byte follows."""
_MOST_BYTES = 2**31 - len(_PADDING)


class AvroCursor:
    """Concatenated messages, with a read position in each message.

    The parameter `rows` of methods has ascending indices of messages. The first `skip` bytes of
    each message are skipped. `cells` is the remaining cell budget of each message; a message that
    exceeds it is marked in `bad` and `over`.
    """

    def __init__(self, messages: Sequence[bytes], skip: int = 0) -> None:
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        if lengths.sum() >= _MOST_BYTES:
            raise ConfigError(
                "a chunk has 2 GiB of Avro or more, which is read in one go; lower "
                "processing.max-chunk-bytes"
            )
        self._joined = b"".join([*messages, _PADDING])
        self.data = np.frombuffer(self._joined, np.uint8)
        self._end: Ints = np.cumsum(lengths)
        self._at: Ints = np.minimum(self._end - lengths + skip, self._end)
        self.bad: Mask = np.zeros(len(messages), np.bool_)
        self.over: Mask = np.zeros(len(messages), np.bool_)
        self.sizes = lengths
        self.cells: Ints = most_cells(lengths)
        self._spoilt = False
        self.rows: Ints = np.arange(len(messages))

    def finish(self) -> None:
        """Mark messages with unread bytes as bad."""
        self.bad |= self._at != self._end

    def left(self, rows: Ints) -> Ints:
        """Return the number of unread bytes of each message; shape (rows,)."""
        return self._places(self._end, rows) - self._places(self._at, rows)

    def rest(self, row: int) -> memoryview:
        """Return the unread bytes of one message."""
        return memoryview(self._joined)[int(self._at[row]) : int(self._end[row])]

    def varints(self, rows: Ints) -> Ints:
        """Read a zigzag-encoded integer of up to 64 bits from each message; shape (rows,)."""
        at = self._places(self._at, rows)
        byte = self.data[at]
        if byte.max(initial=0) < _MORE:
            self._move(rows, at + 1)
            small = byte.astype(np.int64)
            return (small >> 1) ^ -(small & 1)
        values = (byte & 0x7F).astype(np.uint64)
        stop = at + 1
        active = np.flatnonzero(byte & 0x80)
        shift = 7
        while len(active) and shift <= _LAST_SHIFT:
            byte = self.data[stop[active]]
            values[active] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            stop[active] += 1
            if shift == _LAST_SHIFT:
                self.mark(rows[active[byte > 1]])
            active = active[(byte & 0x80) != 0]
            shift += 7
        self._move(rows, stop)
        return (values >> np.uint64(1)).view(np.int64) ^ -(values & np.uint64(1)).view(np.int64)

    def fixed(self, rows: Ints, size: int) -> npt.NDArray[np.uint8]:
        """Read `size` bytes from each message; shape (rows, size)."""
        stop = self._at[rows] + size
        stop = self._move(rows, stop)
        starts = np.maximum(stop - size, 0)
        return self.data[starts[:, None] + np.arange(size)]

    def skip(self, rows: Ints, sizes: Ints | int) -> None:
        """Skip `sizes` bytes of each message. A message with an invalid size becomes bad."""
        self._move(rows, self._at[rows] + self._checked(rows, sizes))

    def binaries(self, rows: Ints, sizes: Ints | int) -> Array:
        """Read `sizes` bytes from each message as an Arrow binary array; shape (rows,)."""
        start = self._at[rows]
        stop = self._move(rows, start + self._checked(rows, sizes))
        # Every second value is the gap before the next one.
        bounds = np.zeros(2 * len(rows) + 1, np.int32)
        bounds[0:-1:2], bounds[1::2], bounds[-1] = start, stop, stop.max(initial=0)
        pieces: Array = pa.Array.from_buffers(
            pa.binary(), 2 * len(rows), [None, py_buffer(bounds), py_buffer(self.data)]
        )
        return take(pieces, pa.array(2 * np.arange(len(rows))))

    def texts(self, rows: Ints, sizes: Ints) -> Array:
        """Read a string of `sizes` bytes from each message.

        Invalid UTF-8 becomes an empty string, and its message becomes bad.
        """
        binaries = self.binaries(rows, sizes)
        try:
            return binaries.cast(pa.string())
        except pa.ArrowInvalid:
            texts = [_text_or_none(value) for value in binaries.to_pylist()]
            self.mark(rows[[text is None for text in texts]])
            # No null: a key of a map cannot be one.
            return pa.array([text or "" for text in texts], pa.string())

    def budget(self, row: int) -> CellBudget:
        """Return the remaining cell budget of one message."""
        return CellBudget(int(self.sizes[row]), int(self.cells[row]))

    def spend(self, rows: Ints, counts: Ints, cells: int) -> Mask:
        """Subtract `counts` items of `cells` cells each from the budget of each message.

        Returns a mask (rows,) of the messages within their budget. The other messages become bad.
        """
        within: Mask = counts <= self.cells[rows] // cells
        self.cells[rows[within]] -= counts[within] * cells
        self.mark(rows[~within], over=True)
        return within

    def mark(self, rows: Ints, *, over: bool = False) -> None:
        """Mark messages as bad, and move to the end of each.

        `over` is whether they exceed their cell budget.
        """
        if len(rows):
            self._spoilt = True
            self.over[rows] |= over & ~self.bad[rows]
            self.bad[rows] = True
            self._at[rows] = self._end[rows]

    def _checked(self, rows: Ints, sizes: Ints | int) -> Ints:
        """Return the sizes, with 0 for invalid sizes; shape (rows,).

        A size is invalid if it is negative or exceeds the unread bytes. Its message becomes bad.
        """
        left = self.left(rows)
        sizes = np.broadcast_to(np.asarray(sizes, np.int64), left.shape)
        wrong = (sizes < 0) | (sizes > left)
        if wrong.any():
            self.mark(rows[wrong])
            return np.where(wrong, self._end[rows] - self._at[rows], sizes)
        return sizes

    def _move(self, rows: Ints, stop: Ints) -> Ints:
        """Move to `stop` in each message, and return `stop`, limited to the end of the message.

        Messages that end before their `stop` become bad.
        """
        end = self._places(self._end, rows)
        over = stop > end
        if over.any():
            self._spoilt = True
            self.bad[rows[over]] = True
            stop = np.minimum(stop, end)
        # A message may have become bad in the meantime: then it stays at its end.
        self._at[rows] = np.where(self.bad[rows], end, stop) if self._spoilt else stop
        return stop

    def _places(self, array: Ints, rows: Ints) -> Ints:
        """Return the items of `array` for these rows, without a copy if `rows` is `self.rows`."""
        return array if rows is self.rows else array[rows]


def _text_or_none(data: Any) -> str | None:  # noqa: ANN401  (bytes)
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return None
