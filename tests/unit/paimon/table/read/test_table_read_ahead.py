import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.table.read import table_read
from ingestd.paimon.table.read.scan_plan import BucketFiles, ReadUnit
from ingestd.paimon.table.read.table_read import read_in_order


class File:
    row_count = 10
    file_size = 1024


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_read.os, "sched_getaffinity", lambda _: {0, 1})


def units(count: int) -> list[ReadUnit]:
    file: Any = File()
    return [ReadUnit(BucketFiles(b"", n, (file,)), verbatim=True) for n in range(count)]


def part(unit: ReadUnit) -> pa.Table:
    return pa.table({"unit": [unit.files.bucket]})


def numbers(parts: Iterator[pa.Table]) -> list[int]:
    return [one.column("unit")[0].as_py() for one in parts]


def test_parts_come_in_the_order_of_their_units() -> None:
    first, second = threading.Event(), threading.Event()

    def read(unit: ReadUnit) -> Iterator[pa.Table]:
        if unit.files.bucket == 0:
            assert second.wait(60)  # the next unit is under way, or this ends in an error
            first.set()
        if unit.files.bucket == 1:
            second.set()
            assert first.wait(60)
        yield part(unit)
        yield part(unit)

    found = read_in_order(units(5), read, small_rows=0)
    assert numbers(found) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_an_error_comes_in_its_place() -> None:
    def read(unit: ReadUnit) -> Iterator[pa.Table]:
        if unit.files.bucket == 2:
            raise FormatError("damaged")
        yield part(unit)

    found = read_in_order(units(5), read, small_rows=0)
    assert numbers(part for part in (next(found), next(found))) == [0, 1]
    with pytest.raises(FormatError, match="damaged"):
        next(found)


def test_few_units_are_read_ahead_of_a_caller_who_stops() -> None:
    seen: list[int] = []

    def read(unit: ReadUnit) -> Iterator[pa.Table]:
        seen.append(unit.files.bucket)
        yield part(unit)

    found = read_in_order(units(100), read, small_rows=0)
    next(found)
    found.close()
    assert len(seen) <= 4


def test_large_units_are_not_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_read, "PREFETCH_BYTES", 1000)
    going = 0

    def read(unit: ReadUnit) -> Iterator[pa.Table]:
        nonlocal going
        going += 1
        assert going == 1
        yield part(unit)
        going -= 1

    assert numbers(read_in_order(units(6), read, small_rows=0)) == list(range(6))


def test_small_reads_stay_in_their_thread() -> None:
    threads = set()

    def read(unit: ReadUnit) -> Iterator[pa.Table]:
        threads.add(threading.current_thread().name)
        yield part(unit)

    assert numbers(read_in_order(units(5), read)) == list(range(5))
    assert threads == {threading.current_thread().name}
