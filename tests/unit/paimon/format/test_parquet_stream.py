import io as bytes_io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.format.parquet import next_count, open_streamed

WIDE = 10_000
SIZE = BatchSize(20 * WIDE)


def stored(rows: pa.Table, **settings: Any) -> pa.NativeFile:
    sink = bytes_io.BytesIO()
    pq.write_table(rows, sink, **settings)
    return pa.BufferReader(sink.getvalue())


def batches(source: pa.NativeFile, columns: list[str] | None, size: BatchSize) -> list[pa.Table]:
    return list(open_streamed(source, columns, size).batches(size))


def test_parts_are_as_large_as_may_be_and_hold_all_rows() -> None:
    rows = pa.table({"k": range(100_000), "t": [f"{n:05}" for n in range(100_000)]})
    parts = batches(stored(rows, use_dictionary=False), None, SIZE)
    assert pa.concat_tables(parts).equals(rows)
    assert max(part.nbytes for part in parts) <= SIZE.memory
    assert len(parts) < 4 * rows.nbytes / SIZE.memory


@pytest.mark.parametrize("dictionary", [True, False])
def test_wide_values_make_parts_of_few_rows(dictionary: bool) -> None:
    # A dictionary makes a short file of them.
    rows = pa.table({"k": range(1000), "t": ["a" * WIDE, "b" * WIDE] * 500})
    parts = batches(stored(rows, use_dictionary=dictionary), None, SIZE)
    assert pa.concat_tables(parts).equals(rows)
    assert max(part.num_rows for part in parts) <= 64
    assert max(part.num_rows for part in parts[1:]) <= 20


def test_columns_that_are_not_read_do_not_count() -> None:
    rows = pa.table({"k": range(1000), "t": [str(n) * (WIDE // 3) for n in range(1000)]})
    parts = batches(stored(rows, use_dictionary=False), ["k", "absent"], SIZE)
    assert [part.num_rows for part in parts] == [1000]
    assert parts[0].column_names == ["k"]


def test_row_groups_can_be_chosen() -> None:
    rows = pa.table({"k": range(100)})
    file = open_streamed(stored(rows, row_group_size=10), None, SIZE)
    parts = list(file.batches(SIZE, [3, 4]))
    assert [key for part in parts for key in part.column("k").to_pylist()] == list(range(30, 50))


def test_parts_of_a_row_group_may_go_on_as_large_as_those_before_it() -> None:
    rows = pa.table({"k": range(20_000)})
    file = open_streamed(stored(rows, row_group_size=10_000), None, BatchSize(1 << 20))
    first, last = list(file.batches(BatchSize(1 << 20), [0]))
    assert next_count(BatchSize(1 << 20), first) == 8 * first.num_rows
    count = next_count(BatchSize(1 << 20), last)
    assert [batch.num_rows for batch in file.batches(BatchSize(1 << 20), [1], count)] == [10_000]
    # Never more than the group's own rows allow.
    small = BatchSize(8_000)
    assert max(batch.num_rows for batch in file.batches(small, [1], 10_000)) <= 1000
    assert next_count(small, pa.table({"t": ["a" * 4000] * 9})) == 1


def test_a_file_without_rows_has_no_parts() -> None:
    assert batches(stored(pa.table({"t": pa.array([], pa.string())})), None, SIZE) == []


@pytest.mark.parametrize(
    ("reads", "threads"),
    [
        ("list(format.read_batches(io, path, None, size))", 0),
        ("format.read_file(io, path, None)", 1),  # which reads ahead
    ],
)
def test_with_one_thread_for_all_the_library_decodes_on_that_of_the_caller(
    tmp_path: Path, reads: str, threads: int
) -> None:
    # What a thread of the library's allocates and another frees is hardly ever given back.
    pq.write_table(pa.table({"k": range(1000), "t": ["a"] * 1000}), tmp_path / "f.parquet")
    program = f"""
import os
import pyarrow as pa
from ingestd.paimon.format import parquet as format
from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.io.local import LocalFileIO
pa.set_cpu_count(1)
count = lambda: len(os.listdir("/proc/self/task"))
io, path, size, before = LocalFileIO(), {str(tmp_path / "f.parquet")!r}, BatchSize(4000), count()
{reads}
print(count() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True, timeout=180
    )
    assert int(done.stdout) == threads
