"""Units of a read on several cores: the next is read while the caller looks at the last.

Decoding uses all cores by itself, but sorting and merging do not. Results come in the order of
the units; so few units are on their way that memory holds little more than one of them.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from ingestd.paimon.table.read.scan_plan import ReadUnit

SMALL_ROWS = 200_000
"""Reads of fewer rows are over before a thread has begun."""
AHEAD_BYTES = 64 * 1024 * 1024
"""Bytes of files that are read ahead of the unit that is waited for."""

ReadRows = Callable[[ReadUnit], Iterable[pa.Table]]


def read_in_order(
    units: Sequence[ReadUnit], read: ReadRows, *, small_rows: int = SMALL_ROWS
) -> Iterator[pa.Table]:
    """The parts that `read` makes of each unit, units in order; what it raises, in its place.

    A caller that stops early has at most the units that are on their way read for nothing.
    """
    cores = len(os.sched_getaffinity(0))
    if cores < 2 or len(units) < 2 or sum(map(_rows, units)) < small_rows:
        for unit in units:
            yield from read(unit)
        return
    waiting: deque[tuple[Future[list[pa.Table]], int]] = deque()
    with ThreadPoolExecutor(2, thread_name_prefix="read") as pool:
        try:
            for unit in units:
                size = _bytes(unit)
                while waiting and sum(one for _, one in waiting) + size > AHEAD_BYTES:
                    yield from waiting.popleft()[0].result()
                waiting.append((pool.submit(_all, read, unit), size))
                if len(waiting) > 2:
                    yield from waiting.popleft()[0].result()
            while waiting:
                yield from waiting.popleft()[0].result()
        finally:
            for future, _ in waiting:
                future.cancel()


def _all(read: ReadRows, unit: ReadUnit) -> list[pa.Table]:
    return list(read(unit))


def _rows(unit: ReadUnit) -> int:
    return sum(file.row_count for file in unit.files.files)


def _bytes(unit: ReadUnit) -> int:
    return sum(file.file_size for file in unit.files.files)
