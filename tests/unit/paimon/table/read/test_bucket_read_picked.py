"""Sections read by columns: what decides first, then the rest in groups."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.read import bucket_read
from ingestd.paimon.table.read.bucket_read import PickedSection, column_groups
from ingestd.paimon.table.read.table_read import read_table
from tests.support.metadata_tables import data_file
from tests.support.native_tables import alter, native_table, put

KEY = DataField(0, "id", parse_type("INT"))
OTHERS = [DataField(n, f"c{n}", parse_type("INT")) for n in range(1, 7)]


def _files(size: int, count: int = 1) -> list[Any]:
    return [replace(data_file(f"f{n}"), file_size=size) for n in range(count)]


@pytest.fixture
def tiny_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_read, "GROUP_BYTES", 1)
    monkeypatch.setattr(bucket_read, "FILE_BYTES", 0)


def test_columns_of_small_files_are_not_grouped() -> None:
    assert column_groups(_files(bucket_read.GROUP_BYTES), [KEY], OTHERS) == []


def test_groups_hold_about_so_many_bytes_of_the_files() -> None:
    groups = column_groups(_files(7 * bucket_read.GROUP_BYTES // 2), [KEY], OTHERS)
    assert groups == [OTHERS[:2], OTHERS[2:4], OTHERS[4:]]


def test_texts_count_for_more_than_numbers() -> None:
    text = DataField(9, "text", parse_type("STRING"))
    files = _files(2 * bucket_read.GROUP_BYTES)
    assert column_groups(files, [KEY], [*OTHERS[:3], text]) == [OTHERS[:3], [text]]


def test_many_files_are_not_opened_for_little() -> None:
    size = bucket_read.FILE_BYTES
    assert column_groups(_files(size // 2, 100), [KEY], OTHERS) == []
    assert len(column_groups(_files(size * 7 // 2, 100), [KEY], OTHERS)) == 3


def test_without_other_columns_there_are_no_groups() -> None:
    assert column_groups(_files(10**12), [KEY], []) == []


def _read(fields: Sequence[DataField]) -> pa.Table:
    cells = {"id": [3, 1, 2], **{field.name: [30, 10, 20] for field in OTHERS}}
    return pa.table({field.name: cells[field.name] for field in fields})


class Section(PickedSection):
    """A section with rows and picks of a test."""

    def __init__(
        self,
        read: Callable[[Sequence[DataField]], pa.Table],
        pick: Callable[[pa.Table], Any],
        at_once: bool = False,
    ) -> None:
        self.read, self.pick, self.at_once = read, pick, at_once  # type: ignore[method-assign]
        self.files, self.deciding, self.others = tuple(_files(100)), (KEY,), OTHERS


def test_rows_stand_as_they_were_picked(tiny_groups: None) -> None:
    pick = lambda _: np.array([1, 0])  # noqa: E731
    rows = Section(_read, pick).rows()
    assert rows.column_names == ["id", *(field.name for field in OTHERS)]
    assert rows.select(["id", "c1", "c6"]).to_pylist() == [
        {"id": 1, "c1": 10, "c6": 10}, {"id": 3, "c1": 30, "c6": 30},
    ]  # fmt: skip
    assert rows.equals(Section(_read, pick, at_once=True).rows())


def test_two_groups_are_in_memory_at_most(tiny_groups: None) -> None:
    going, most, lock = 0, 0, threading.Lock()

    def read(fields: Sequence[DataField]) -> pa.Table:
        nonlocal going, most
        with lock:
            going += 1
            most = max(most, going)
        time.sleep(0.01)
        found = _read(fields)
        with lock:
            going -= 1
        return found

    Section(read, lambda _: np.array([0])).rows()
    assert most <= 2


def test_an_error_of_picking_comes_out(tiny_groups: None) -> None:
    def pick(rows: pa.Table) -> Any:
        raise FormatError("no order")

    with pytest.raises(FormatError, match="no order"):
        Section(_read, pick).rows()


def test_an_error_of_a_group_comes_out(tiny_groups: None) -> None:
    def read(fields: Sequence[DataField]) -> pa.Table:
        if OTHERS[3] in fields:
            raise FormatError("damaged")
        return _read(fields)

    with pytest.raises(FormatError, match="damaged"):
        Section(read, lambda _: np.array([0])).rows()


TAGS = {"type": "ARRAY", "element": "INT"}
COLUMNS: list[tuple[str, Any]] = [
    ("id", "INT"),
    ("day", "INT"),
    ("v", "STRING"),
    ("s", "INT"),
    ("tags", TAGS),
]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sequence.field": "s"},
        {"sequence.field": "s", "sequence.field.sort-order": "descending"},
        {"ignore-delete": "true"},
    ],
)
def test_tables_read_the_same_in_groups(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    table = native_table(
        tmp_path, COLUMNS, keys=["id", "day"], partitions=["day"], options={"bucket": "1"} | options
    )
    rows: list[dict[str, Any]] = [
        {"id": n, "day": n % 2, "v": f"a{n}", "s": n, "tags": [n]} for n in range(20)
    ]
    put(table, rows)
    again = [{**row, "v": None, "s": 9} for row in rows]
    put(table, [{**row, "_kind": 3 if row["id"] % 4 == 0 else 0} for row in again])
    table = alter(table, AddColumn(("w",), parse_type("BIGINT")))
    put(table, [{"id": 5, "day": 1, "v": "z", "s": 7, "w": 6}, {"id": 50, "day": 1, "s": 1}])
    at_once = read_table(table)
    monkeypatch.setattr(bucket_read, "GROUP_BYTES", 1)
    monkeypatch.setattr(bucket_read, "FILE_BYTES", 0)
    assert at_once.num_rows > 10
    assert read_table(table).equals(at_once)
    for columns in (["w"], ["day"], ["tags", "day"], ["s"], ["v", "w"]):
        assert read_table(table, columns=columns).equals(at_once.select(columns))
