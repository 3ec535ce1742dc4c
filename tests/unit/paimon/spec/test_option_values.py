from collections.abc import Callable

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.spec.option_values import (
    bool_option,
    int_option,
    millis_option,
    optional_int_option,
    size_option,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7", 7), ("500 B", 500), ("1kb", 1024), ("128 mb", 128 << 20), ("8 MB", 8 << 20),
     ("2 gibibytes", 2 << 30), (" 1 t ", 1 << 40)],
)  # fmt: skip
def test_sizes(text: str, expected: int) -> None:
    assert size_option({"x": text}, "x", 0) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10", 10), ("10 ms", 10), ("10s", 10_000), ("1 min", 60_000), ("2 h", 7_200_000),
     ("1 day", 86_400_000)],
)  # fmt: skip
def test_durations(text: str, expected: int) -> None:
    assert millis_option({"x": text}, "x", 0) == expected


def test_defaults_stand_in_for_what_is_not_given() -> None:
    assert size_option({}, "x", 5) == 5
    assert millis_option({}, "x", 6) == 6
    assert int_option({}, "x", 7) == 7
    assert optional_int_option({}, "x") is None
    assert bool_option({}, "x", True) is True


def test_numbers_and_flags() -> None:
    assert int_option({"x": "-1"}, "x", 0) == -1
    assert optional_int_option({"x": "3"}, "x") == 3
    assert bool_option({"x": "TRUE"}, "x", False) is True
    assert bool_option({"x": "false"}, "x", True) is False


@pytest.mark.parametrize(
    ("read", "text"),
    [(size_option, "1 furlong"), (size_option, ""), (size_option, "-1 b"),
     (millis_option, "soon"), (int_option, "1.5"), (optional_int_option, "x"),
     (bool_option, "yes")],
)  # fmt: skip
def test_what_cannot_be_read_is_named(read: Callable[..., object], text: str) -> None:
    arguments = ({"some.option": text}, "some.option", 0)
    with pytest.raises(ConfigError, match=r"option 'some\.option'"):
        read(*arguments[: 2 if read is optional_int_option else 3])
