"""The ranges are found that end the process that reads them, and the offsets at which they do."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ingestd.kafka import unreadable_ranges
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.try_range import out_of_memory
from ingestd.kafka.unreadable_ranges import by_source, find_unreadable

SOURCE = KafkaSource("src", ("t",))
MEMORY = 1 << 30


class Log:
    """Partitions with an offset that ends the process that meets it."""

    def __init__(self, bombs: dict[int, int], lost: int = 0) -> None:
        self._bombs = bombs
        self._lost = lost
        self.reads = 0

    def read(
        self, source: KafkaSource, ranges: Sequence[OffsetRange], memory: int
    ) -> tuple[list[OffsetRange], str]:
        self.reads += 1
        for place, range_ in enumerate(ranges):
            bomb = self._bombs.get(range_.partition, range_.until)
            if range_.start <= bomb < range_.until:
                self._lost -= 1
                reached = range_.start if len(ranges) > 1 or self._lost >= 0 else bomb
                return [replace(range_, start=reached), *ranges[place + 1 :]], out_of_memory(memory)
        return [], ""


@pytest.fixture(autouse=True)
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreadable_ranges, "is_reachable", lambda source, ranges: True)


def test_only_culprits_are_found_at_their_offsets() -> None:
    log = Log({3: 17, 60: 5, 61: 0})
    ranges = [OffsetRange("src", "t", partition, 0, 20) for partition in range(64)]
    found = find_unreadable(SOURCE, ranges, MEMORY, log.read)
    places = {(one.range.partition, one.range.start, one.range.until) for one in found}
    assert places == {(3, 17, 20), (60, 5, 20), (61, 0, 20)}
    assert {one.reason for one in found} == {out_of_memory(MEMORY)}
    assert log.reads < 50


def test_what_a_process_lost_of_what_it_had_read_is_not_blamed() -> None:
    log = Log({0: 10}, lost=2)
    (found,) = find_unreadable(SOURCE, [OffsetRange("src", "t", 0, 0, 20)], MEMORY, log.read)
    assert found.range.start == 10


def test_nothing_is_blamed_where_all_can_be_read_or_nobody_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranges = [OffsetRange("src", "t", partition, 0, 20) for partition in range(4)]
    assert find_unreadable(SOURCE, ranges, MEMORY, Log({}).read) == []
    monkeypatch.setattr(unreadable_ranges, "is_reachable", lambda source, ranges: False)
    assert find_unreadable(SOURCE, ranges, MEMORY, Log({1: 1}).read) == []


def test_ranges_are_distinguished_by_source() -> None:
    one, two = OffsetRange("a", "t", 0, 0, 1), OffsetRange("b", "t", 0, 0, 1)
    assert by_source([two, one, replace(one, partition=1)]) == [
        [one, replace(one, partition=1)],
        [two],
    ]
