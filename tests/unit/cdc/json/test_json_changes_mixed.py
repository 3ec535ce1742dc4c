"""Which records of a chunk that mixes tables are looked at one by one, and that no one can tell."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from bench.format_messages import MIXED, changes, messages, mixed
from ingestd.cdc.base import RecordChunk
from ingestd.cdc.json import json_changes
from ingestd.cdc.native_module import native_module
from tests.support.decoded import both_decoders, outcome

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)
LOOKED_AT = [name for name in MIXED if name != "debezium-flat-json"]
"""Messages of the other one are taken in their order: a tombstone is of the table before it."""


class Watched:
    """A decoder with the extension and one without; tells which records were opened in Python."""

    def __init__(self, name: str, patch: pytest.MonkeyPatch) -> None:
        self.native, self.pure = both_decoders(name)
        self.opened: list[list[int]] = []
        sort_records = json_changes.sort_records

        def records(dialect: Any, chunk: RecordChunk, indices: Iterable[int]) -> Any:
            self.opened.append([*indices])
            return sort_records(dialect, chunk, self.opened[-1])

        patch.setattr(json_changes, "sort_records", records)

    def same(self, *chunks: RecordChunk) -> list[list[int]]:
        """The records that were opened."""
        expected = outcome(self.pure, chunks)
        self.opened.clear()
        assert outcome(self.native, chunks) == expected
        return self.opened


def values_of(name: str, count: int = 40) -> list[bytes | None]:
    return [value for _, value in mixed(messages(name, changes(count)))]


def chunk(values: list[bytes | None]) -> RecordChunk:
    offsets = np.arange(len(values), dtype=np.int64)
    keys = [b'{"id":%d}' % number for number in range(len(values))]
    return RecordChunk("shop.inv.item", 0, offsets, offsets, [*keys], values, None)


@pytest.mark.parametrize("name", LOOKED_AT)
def test_rows_of_several_tables_are_not_opened(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = chunk(values_of(name))
    assert Watched(name, monkeypatch).same(rows, rows) == [[*range(40)], []]


@pytest.mark.parametrize("name", LOOKED_AT)
def test_only_what_is_no_row_is_opened(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, irregular = values_of(name), values_of(name)
    irregular[0], irregular[7], irregular[20], irregular[39] = None, b"{", b"null", b'{"op":"m"}'
    assert Watched(name, monkeypatch).same(chunk(rows), chunk(irregular))[1] == [0, 7, 20, 39]


@pytest.mark.parametrize("name", LOOKED_AT)
def test_one_odd_row_is_opened_with_all_rows_of_its_table_and_no_others(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, irregular = values_of(name), values_of(name)
    of_table = [place for place, value in enumerate(rows) if value and b"item2" in value.lower()]
    first = rows[of_table[0]]
    assert first is not None
    irregular[of_table[0]] = first.replace(b'"city":"', b'"city":5,"town":"')
    assert irregular != rows
    assert Watched(name, monkeypatch).same(chunk(rows), chunk(irregular))[1] == of_table


@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_table_that_is_named_in_two_ways_stays_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, irregular = values_of(name), values_of(name)
    place = next(n for n, value in enumerate(rows) if value and b"item1" in value.lower())
    value = rows[place]
    assert value is not None
    irregular[place] = value.replace(b"item1", b"item\\u0031").replace(b"ITEM1", b"ITEM\\u0031")
    of_table = [n for n, row in enumerate(rows) if row and b"item1" in row.lower()]
    # To DataWorks' decoder a schema in other bytes is another one.
    expected = [place] if name == "aliyun-json" else of_table
    assert Watched(name, monkeypatch).same(chunk(rows), chunk(irregular))[-1] == expected


def test_tables_without_a_plan_are_learnt_and_the_others_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = values_of("maxwell-json")
    new = [value and value.replace(b"item3", b"fresh") for value in rows]
    opened = Watched("maxwell-json", monkeypatch).same(chunk(rows), chunk(new))
    assert opened[1] == [place for place, value in enumerate(new) if value and b"fresh" in value]
