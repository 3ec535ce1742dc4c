# ruff: noqa: DTZ001  (tags and partitions name times without a zone)
from datetime import UTC, datetime
from typing import Any

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec.snapshot import CommitKind, Snapshot
from ingestd.paimon.table.retention.auto_tags import TagPeriods, tag_periods

CLOCK = {"tag.automatic-creation": "process-time", "sink.process-time-zone": "UTC"}


def periods(**options: str) -> TagPeriods:
    named = {"tag." + name.replace("_", "-"): value for name, value in options.items()}
    found = tag_periods({**CLOCK, **named})
    assert found is not None
    return found


def snapshot(time: datetime, watermark: int | None = None) -> Snapshot:
    return Snapshot(
        id=1, schema_id=0, base_manifest_list="b", delta_manifest_list="d", commit_user="u",
        commit_identifier=1, commit_kind=CommitKind.APPEND, watermark=watermark,
        time_millis=int(time.replace(tzinfo=UTC).timestamp() * 1000),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "time", "tag"),
    [
        ({}, datetime(2024, 3, 2, 5), "2024-03-01"),
        ({"period_formatter": "without_dashes"}, datetime(2024, 3, 2), "20240301"),
        ({"creation_period": "hourly"}, datetime(2024, 3, 2, 5, 59), "2024-03-02 04"),
        ({"creation_period": "hourly", "period_formatter": "without_dashes"},
         datetime(2024, 3, 2, 0, 1), "20240301 23"),
        ({"creation_period": "hourly", "period_formatter": "without_dashes_and_spaces"},
         datetime(2024, 3, 2, 1), "2024030200"),
        ({"creation_period": "two-hours"}, datetime(2024, 3, 2, 5), "2024-03-02 02"),
        ({"creation_period_duration": "15 min"}, datetime(2024, 3, 2, 5, 31), "202403020515"),
    ],
)  # fmt: skip
def test_a_snapshot_is_tagged_with_the_last_period_that_is_over(
    options: dict[str, str], time: datetime, tag: str
) -> None:
    rules = periods(**options)
    begin = rules.tag_at(time, None)
    assert begin is not None
    assert begin.strftime(rules.period.name) == tag
    assert rules.begin_of(tag) == begin


def test_a_period_has_one_tag_and_a_late_one_waits() -> None:
    due = datetime(2024, 3, 2)
    assert periods().tag_at(datetime(2024, 3, 2, 23, 59), due) is None
    assert periods().tag_at(datetime(2024, 3, 3), due) == due
    late = periods(creation_delay="1 h")
    assert late.tag_at(datetime(2024, 3, 3, 0, 59), due) is None
    assert late.tag_at(datetime(2024, 3, 3, 1), due) == due


def test_missed_periods_are_left_out_unless_they_are_to_be_completed() -> None:
    due, time = datetime(2024, 3, 2), datetime(2024, 3, 9, 1)
    assert periods().tag_at(time, due) == datetime(2024, 3, 8)
    assert periods(automatic_completion="true").tag_at(time, due) == due


def test_other_names_are_no_such_tags() -> None:
    for name in ("release", "2024-3-1", "20240301", "2024-03-32"):
        assert periods().begin_of(name) is None
    assert periods(creation_period_duration="15 min").begin_of("202403020515 copy") is None


def test_the_time_is_that_of_the_commit_or_the_watermark() -> None:
    one = snapshot(datetime(2024, 3, 2, 5), watermark=0)
    assert periods().time_of(one) == datetime(2024, 3, 2, 5)
    assert periods(automatic_creation="watermark").time_of(one) == datetime(1970, 1, 1)
    none = snapshot(datetime(2024, 3, 2, 5))
    assert periods(automatic_creation="watermark").time_of(none) is None


def test_zones_of_the_options_hold() -> None:
    rules = tag_periods({**CLOCK, "sink.process-time-zone": "Asia/Tokyo"})
    assert rules is not None
    assert rules.time_of(snapshot(datetime(2024, 3, 2, 20))) == datetime(2024, 3, 3, 5)


def test_nothing_is_made_without_the_option() -> None:
    assert tag_periods({}) is None
    assert tag_periods({"tag.automatic-creation": "none", "tag.callbacks": "x"}) is None


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("tag.automatic-creation", "batch", UnsupportedError),
        ("tag.callbacks", "com.example.Callback", UnsupportedError),
        ("tag.creation-period", "weekly", UnsupportedError),
        ("tag.period-formatter", "roman", UnsupportedError),
        ("sink.process-time-zone", "Mars/Olympus", UnsupportedError),
        ("tag.creation-delay", "1 d", ConfigError),
        ("tag.creation-period-duration", "0 ms", ConfigError),
    ],
)
def test_options_that_cannot_be_followed_are_named(option: str, value: str, error: Any) -> None:
    with pytest.raises(error, match=option):
        tag_periods({**CLOCK, option: value})
