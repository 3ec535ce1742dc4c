"""A progress file belongs to one comparison, and no damage of it is read as progress."""

from pathlib import Path

import pytest

from ingestd.compare.progress_file import ProgressFile, TablePages
from ingestd.compare.source_table import KeyRange, Page
from ingestd.errors import ConfigError

IDENTITY = {"source": "one"}
PAGES = [
    Page(KeyRange(None, ("a", "1")), {"": (3, 2**61)}),
    Page(KeyRange(("a", "1"), None), {"0f3": (1, 5), "abc": (2, 7)}),
]


def written(path: Path) -> ProgressFile:
    file = ProgressFile(path, IDENTITY)
    pages = TablePages(file, "ods.orders", "print")
    for page in PAGES:
        pages.add(page)
    file.add_result("ods.items", {"rows": 3})
    return ProgressFile(path, IDENTITY)


def test_pages_and_results_are_read_again(tmp_path: Path) -> None:
    file = written(tmp_path / "progress")
    assert TablePages(file, "ods.orders", "print").known() == PAGES
    assert TablePages(file, "ods.orders", "other columns").known() == []
    assert file.result_of("ods.items") == {"rows": 3}
    assert file.result_of("ods.orders") is None


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    written(path)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        ProgressFile(path, IDENTITY)
        assert path.read_bytes()[: len(data)] == data[: data.rfind(b"\n", 0, length) + 1] or (
            length <= data.index(b"\n")
        )


def test_any_other_damage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    written(path)
    data = path.read_bytes()
    for index in range(0, len(data) - 1, 7):
        path.write_bytes(data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :])
        with pytest.raises(ConfigError, match=r"damaged|another comparison"):
            ProgressFile(path, IDENTITY)


def test_the_progress_of_another_comparison_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "progress")
    with pytest.raises(ConfigError, match="another comparison"):
        ProgressFile(tmp_path / "progress", {"source": "two"})


def test_pages_are_known_to_the_run_that_hashed_them(tmp_path: Path) -> None:
    for path in (None, tmp_path / "progress"):
        file = ProgressFile(path, IDENTITY)
        file.add_page("ods.orders", "print", PAGES[0])
        assert file.pages_of("ods.orders", "print") == [PAGES[0]]
