# ruff: noqa: DTZ001  (tags and partitions name times without a zone)
from datetime import datetime

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.table.retention.expire_partitions import partition_time


def of(values: dict[str, str | None], pattern: str = "", formatter: str = "") -> datetime | None:
    options = {"partition.timestamp-pattern": pattern} if pattern else {}
    options |= {"partition.timestamp-formatter": formatter} if formatter else {}
    return partition_time(list(values), list(values.values()), options)


def test_without_options_the_first_column_has_the_time() -> None:
    assert of({"dt": "2024-01-31", "hr": "5"}) == datetime(2024, 1, 31)
    assert of({"dt": "2024-1-3 4:05:06"}) == datetime(2024, 1, 3, 4, 5, 6)
    assert of({"dt": "2024-01-31 04:05:06.25"}) == datetime(2024, 1, 31, 4, 5, 6, 250_000)


def test_by_default_numbers_that_are_too_large_carry_over() -> None:
    assert of({"dt": "2023-14-01"}) == datetime(2024, 2, 1)
    assert of({"dt": "2024-02-30 25:00:00"}) == datetime(2024, 3, 2, 1)


def test_a_pattern_puts_columns_together() -> None:
    values: dict[str, str | None] = {"dt": "20240131", "hr": "07", "dt1": "x"}
    found = of(values, "$dt $hr:00:00", "yyyyMMdd HH:mm:ss")
    assert found == datetime(2024, 1, 31, 7)
    values = {"y": "2024", "m": "1", "d": "9"}
    assert of(values, "$y-$m-$d") == datetime(2024, 1, 9)


def test_the_longer_name_is_meant() -> None:
    assert of({"dt": "no", "dt1": "2024-01-31"}, "$dt1") == datetime(2024, 1, 31)


@pytest.mark.parametrize(
    ("formatter", "text", "time"),
    [
        ("yyyyMMdd", "20240131", datetime(2024, 1, 31)),
        ("yyyy/M/d", "2024/1/3", datetime(2024, 1, 3)),
        ("uuuu-MM-dd'T'HH", "2024-01-31T23", datetime(2024, 1, 31, 23)),
        ("yyyyMMddHHmmss", "20240131010203", datetime(2024, 1, 31, 1, 2, 3)),
        (
            "yyyy-MM-dd HH:mm:ss.SSS",
            "2024-01-31 01:02:03.004",
            datetime(2024, 1, 31, 1, 2, 3, 4000),
        ),
        ("yy''MM''dd", "24'01'31", datetime(2024, 1, 31)),
        ("yyyy-MM-dd", "2023-02-30", datetime(2023, 2, 28)),
    ],
)
def test_formats_are_read_as_java_reads_them(formatter: str, text: str, time: datetime) -> None:
    assert of({"dt": text}, formatter=formatter) == time


@pytest.mark.parametrize(
    ("formatter", "text"),
    [("", "19857"), ("", "2024-01-31T00:00"), ("yyyyMMdd", "2024-01-31"), ("yyyyMMdd", "20241301"),
     ("yyyyMMddHH", "2024013124"), ("", "0000-01-01")],
)  # fmt: skip
def test_values_that_are_no_times_show_nothing(formatter: str, text: str) -> None:
    assert of({"dt": text}, formatter=formatter) is None


def test_null_shows_nothing() -> None:
    assert of({"dt": None}) is None
    assert of({"dt": "2024-01-01", "hr": None}, "$dt $hr:00:00") is None


@pytest.mark.parametrize(
    "formatter", ["yyyy-MMM-dd", "yyyy-MM", "yyyy-MM-dd a", "yyyy-DDD", "y-MM-dd"]
)
def test_letters_that_are_not_known_are_named(formatter: str) -> None:
    with pytest.raises(UnsupportedError, match=r"partition\.timestamp-formatter"):
        of({"dt": "x"}, formatter=formatter)
