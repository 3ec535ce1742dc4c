"""Write rows in the formats of `ingestd read`; text formats are sorted in bounded memory."""

import csv
import heapq
import io
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from ingestd.cli.output import print_table, say
from ingestd.errors import ConfigError
from ingestd.log import printable_lines
from ingestd.paimon.casts.rows_json import json_lines, sort_lines, utf16
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataField

SHOWN_ROWS = 50
"""Maximum number of rows of the format `table`, unless another limit is given."""
_ROWS_AT_A_TIME = 20_000
RUN_CHARS = 64 * 1024 * 1024
"""Number of characters of the lines that are sorted in memory at a time."""


@dataclass(frozen=True, slots=True)
class PrintedRows:
    """The result of a read command: rows in parts, which can be iterated once, and their columns.

    `in_order` is whether the order of rows is significant; otherwise text output is sorted.
    """

    parts: Iterable[pa.Table]
    fields: tuple[DataField, ...]
    in_order: bool

    def lines(self, limit: int | None = None) -> Iterator[str]:
        """Yield at most `limit` rows as canonical JSON lines, sorted unless `in_order`.

        Sorting holds at most about `RUN_CHARS` characters of lines in memory.
        """
        slices = (slice_ for part in self.parts for slice_ in _slices(part))
        lines = (line for slice_ in slices for line in json_lines(slice_, self.fields))
        return itertools.islice(lines if self.in_order else sorted_lines(lines), limit)


def _slices(part: pa.Table) -> Iterator[pa.Table]:
    """Yield slices of a part, each of at most `_ROWS_AT_A_TIME` rows."""
    return (part.slice(at, _ROWS_AT_A_TIME) for at in range(0, part.num_rows, _ROWS_AT_A_TIME))


@dataclass(frozen=True, slots=True)
class Output:
    """The destination of printed rows: a file, or standard output for None.

    `limit` is the maximum number of rows; None is no limit, except that the output format `table`
    has a default limit. `clear` removes the progress line before rows are printed.
    """

    file: Path | None
    limit: int | None
    clear: Callable[[], None]


def write_json_lines(rows: PrintedRows, out: Output) -> None:
    """Write at most `out.limit` rows, each as a JSON object on a line.

    The lines are sorted, unless the order of the rows is significant (`rows.in_order`).
    """
    _write_lines(rows.lines(out.limit), out)


def write_csv(rows: PrintedRows, out: Output) -> None:
    """Write CSV: a line of column names, then a line for each row; null is an empty cell.

    Values are formatted and rows are sorted and limited as by `write_json_lines`.
    """
    names = [field.name for field in rows.fields]
    values = (_cells(line) for line in rows.lines(out.limit))
    _write_lines(_csv_lines(itertools.chain([names], values)), out)


def write_parquet(rows: PrintedRows, out: Output) -> None:
    """Write a Parquet file, with rows in the order in which they are read.

    Raises ConfigError if the output is a terminal.
    """
    if out.file is not None:
        with _whole(out.file) as path, path.open("wb") as file:
            _write_row_groups(rows, out.limit, pa.PythonFile(file, mode="w"))
    elif sys.stdout.isatty():
        raise ConfigError("Parquet is not written to a terminal: add --output FILE")
    else:
        buffer = pa.BufferOutputStream()  # a pipe has no position, which Parquet needs
        _write_row_groups(rows, out.limit, buffer)
        sys.stdout.buffer.write(buffer.getvalue())


def print_rows(rows: PrintedRows, out: Output) -> None:
    """Print rows as a table for people, and the number of rows beyond the limit.

    Raises ConfigError if an output file is given.
    """
    if out.file is not None:
        raise ConfigError("a table is for people: leave --output out, or choose another --format")
    lines = rows.lines()
    names = [field.name for field in rows.fields]
    shown = itertools.islice(lines, SHOWN_ROWS if out.limit is None else out.limit)
    cells = [dict(zip(names, _cells(line), strict=True)) for line in shown]
    left = sum(1 for _ in lines)
    out.clear()
    print_table(cells, names, none="No rows.", titles=False)
    if left:
        say(f"{left:,} more rows; --limit shows more.")


def _cells(line: str) -> list[str]:
    return [_plain(value) for value in json.loads(line).values()]


def _plain(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _csv_lines(rows: Iterable[list[str]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="")
    for row in rows:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(row)
        yield buffer.getvalue()


def _write_lines(lines: Iterator[str], out: Output) -> None:
    if out.file is not None:
        with _whole(out.file) as path, path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"{line}\n" for line in lines)
        return
    first = next(lines, None)
    if sys.stdout.isatty():
        out.clear()
    shown = itertools.chain([] if first is None else [first], lines)
    for line in map(printable_lines, shown) if sys.stdout.isatty() else shown:
        sys.stdout.buffer.write(line.encode("utf-8", "surrogatepass") + b"\n")
    sys.stdout.buffer.flush()


@contextmanager
def _whole(file: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `file` at the end of the block.

    A pipe or a device is yielded itself. If the block raises, `file` is not changed.
    """
    if file.exists() and not file.is_file():
        yield file  # a pipe or a device
        return
    target = file.resolve()
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _write_row_groups(rows: PrintedRows, limit: int | None, sink: pa.NativeFile) -> None:
    columns = [pa.field(field.name, to_arrow_type(field.type)) for field in rows.fields]
    schema = pa.schema(columns)
    left = limit
    with pq.ParquetWriter(sink, schema) as writer:
        for part in rows.parts:
            taken = part if left is None else part.slice(0, left)
            left = None if left is None else left - taken.num_rows
            writer.write_table(taken.cast(schema))


def sorted_lines(lines: Iterable[str], run_chars: int = RUN_CHARS) -> Iterator[str]:
    """Yield lines, which must not contain line breaks, ordered by their UTF-16 code units.

    If they have more than `run_chars` characters, runs of about this size are sorted in memory,
    written to temporary files and merged.
    """
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
