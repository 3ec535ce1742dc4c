import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.cli.rows_output import sorted_lines
from ingestd.paimon.casts.rows_json import sort_lines

LINE = st.text(st.characters(exclude_characters="\n"), max_size=8)


@given(st.lists(LINE, max_size=40), st.integers(1, 60))
def test_lines_come_in_their_order_however_small_the_runs(lines: list[str], run: int) -> None:
    assert list(sorted_lines(lines, run)) == sort_lines(lines)


def test_few_lines_need_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a file")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert list(sorted_lines(["b", "a"])) == ["a", "b"]
    with pytest.raises(AssertionError, match="a file"):
        list(sorted_lines(["b", "a"], 1))


def test_only_a_run_is_held() -> None:
    seen = 0

    def lines() -> Any:
        nonlocal seen
        for number in range(1000, 0, -1):
            seen += 1
            yield f"{number:05}"

    found = sorted_lines(lines(), 50)
    assert next(found) == "00001"
    assert seen == 1000
    assert next(found) == "00002"
