"""Sorts any number of JSON lines into canonical order in bounded memory.

Lines beyond the size of a run are spilled to sorted temporary files, which are merged.
"""

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

from ingestd.paimon.casts.rows_json import sort_lines, utf16

RUN_CHARS = 64 * 1024 * 1024
"""Characters of lines that are sorted at a time."""


def sorted_lines(lines: Iterable[str], run_chars: int = RUN_CHARS) -> Iterator[str]:
    """Yield lines, which have no line breaks, ordered by their UTF-16 code units."""
    runs: list[IO[bytes]] = []
    held: list[str] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= run_chars:
            runs.append(_spilled(sort_lines(held)))
            held, size = [], 0
    last = sort_lines(held)
    if not runs:
        yield from last
        return
    yield from heapq.merge(*map(_read, runs), last, key=utf16)


def _spilled(lines: list[str]) -> IO[bytes]:
    file = tempfile.TemporaryFile(prefix="ingestd-read-")  # noqa: SIM115  (read later, then closed)
    file.writelines(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines)
    file.seek(0)
    return file


def _read(run: IO[bytes]) -> Iterator[str]:
    with run:
        for line in run:
            yield line[:-1].decode("utf-8", "surrogatepass")
