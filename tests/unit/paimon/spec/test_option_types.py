from collections.abc import Callable

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.spec.option_types import (
    Access,
    Support,
    TableOption,
    parse_bool,
    parse_float,
    parse_int,
    parse_millis,
    parse_names,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7", 7), ("500 B", 500), ("1kb", 1024), ("128 mb", 128 << 20), ("8 MB", 8 << 20),
     ("2 gibibytes", 2 << 30), (" 1 t ", 1 << 40)],
)  # fmt: skip
def test_sizes(text: str, expected: int) -> None:
    assert parse_size("x", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10", 10), ("10 ms", 10), ("10s", 10_000), ("1 min", 60_000), ("2 h", 7_200_000),
     ("1 day", 86_400_000)],
)  # fmt: skip
def test_durations(text: str, expected: int) -> None:
    assert parse_millis("x", text) == expected


def test_numbers_flags_and_names() -> None:
    assert parse_int("x", "-1") == -1
    assert parse_float("x", "0.5") == 0.5
    assert parse_bool("x", "TRUE") is True
    assert parse_bool("x", "false") is False
    assert parse_names("x", " a,b , ") == ("a", "b")


@pytest.mark.parametrize(
    ("parse", "text"),
    [(parse_size, "1 furlong"), (parse_size, ""), (parse_size, "-1 b"), (parse_millis, "soon"),
     (parse_int, "1.5"), (parse_float, "x"), (parse_bool, "yes")],
)  # fmt: skip
def test_what_cannot_be_read_is_named(parse: Callable[[str, str], object], text: str) -> None:
    with pytest.raises(ConfigError, match=r"option 'some\.option'"):
        parse("some.option", text)


def test_an_option_is_read_by_its_name_or_an_older_one() -> None:
    option = TableOption("x.new", parse_int, 7, Support.HONOURED, "", aliases=("x.old",))
    assert option.of({}) == 7
    assert option.of({"x.old": "3"}) == 3
    assert option.of({"x.old": "3", "x.new": "4"}) == 4
    with pytest.raises(ConfigError, match=r"option 'x\.old'"):
        option.of({"x.old": "many"})


def test_placeholders_of_a_name_stand_for_columns() -> None:
    option = TableOption("fields.<column>.limit", parse_int, 1, Support.HONOURED, "")
    assert option.of({"fields.a.b.limit": "2"}, "a.b") == 2
    assert option.pattern == r"fields\..+\.limit"
    assert option.of({"fields.a.b.limit": "2"}, "a") == 1
    assert option.name_for("a") == "fields.a.limit"


def test_values_are_refused_from_an_access_on() -> None:
    option = TableOption(
        "x", parse_bool, False, Support.IGNORED, "", frozenset({"false"}), Access.WRITE
    )
    assert not option.refuses(" False ", Access.CREATE)
    assert [option.refuses("true", access) for access in Access] == [False, True, True]
