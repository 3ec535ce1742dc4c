import dataclasses

from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS, DataFileMeta
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.table.compact.sorted_runs import Levels
from ingestd.paimon.table.compact.universal_compaction import RunSize

INT = [parse_type("INT")]


def file(name: str, level: int, keys: tuple[int, int], sequence: tuple[int, int]) -> DataFileMeta:
    return DataFileMeta(
        file_name=name,
        file_size=10,
        row_count=1,
        min_key=serialize_row(INT, [keys[0]]),
        max_key=serialize_row(INT, [keys[1]]),
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=sequence[0],
        max_sequence_number=sequence[1],
        schema_id=0,
        level=level,
        creation_time_ms=7,
    )


FILES = [
    file("top-b", 5, (50, 99), (0, 9)),
    file("old", 0, (0, 9), (10, 19)),
    file("top-a", 5, (0, 49), (0, 8)),
    file("new", 0, (0, 9), (20, 29)),
    file("two", 2, (0, 9), (5, 9)),
]


def names(levels: Levels) -> list[list[str]]:
    return [[file.file_name for file in run.files] for run in levels.runs]


def test_each_file_of_level_0_is_a_run_and_each_other_level_is_one() -> None:
    levels = Levels.of(INT, FILES, 6)
    assert names(levels) == [["new"], ["old"], ["two"], ["top-a", "top-b"]]
    assert levels.sizes == [RunSize(0, 10), RunSize(0, 10), RunSize(2, 10), RunSize(5, 20)]
    assert (levels.highest, levels.max_level) == (5, 5)


def test_a_level_that_is_in_use_counts_whatever_the_options_say() -> None:
    assert Levels.of(INT, FILES, 3).max_level == 5
    assert Levels.of(INT, FILES, 9).max_level == 8
    empty = Levels.of(INT, [], 6)
    assert (empty.runs, empty.highest, empty.max_level) == ((), -1, 5)


def test_files_of_several_writers_with_equal_numbers_are_all_kept() -> None:
    twins = [dataclasses.replace(FILES[1], file_name=name) for name in ("b", "a", "c")]
    assert names(Levels.of(INT, twins, 6)) == [["a"], ["b"], ["c"]]
    later = dataclasses.replace(FILES[1], file_name="a", creation_time_ms=8)
    assert names(Levels.of(INT, [later, twins[0]], 6)) == [["b"], ["a"]]


def test_the_top_level_shows_when_it_was_last_written() -> None:
    assert Levels.of(INT, FILES, 6).last_full_ms == 7
    assert Levels.of(INT, FILES, 7).last_full_ms is None
