import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.table.retention.expire_plan import Retention, expire_settings

HOUR = 3_600_000


def test_without_options_the_defaults_of_the_specification_hold() -> None:
    settings = expire_settings({})
    assert settings.snapshots == Retention(10, 2**31 - 1, HOUR, 50)
    assert settings.changelogs == settings.snapshots
    assert not settings.is_changelog_decoupled
    assert not settings.has_producer
    assert not settings.clean_empty_directories
    assert settings.consumer_ms is None


def test_what_is_set_for_snapshots_holds_for_changelogs_too() -> None:
    settings = expire_settings({"snapshot.num-retained.min": "3", "snapshot.time-retained": "2 h"})
    assert settings.changelogs == Retention(3, 2**31 - 1, 2 * HOUR, 50)


@pytest.mark.parametrize(
    ("options", "decoupled"),
    [
        ({"changelog.num-retained.min": "11"}, True),
        ({"changelog.time-retained": "61 min"}, True),
        ({"changelog.time-retained": "59 min"}, False),
        ({"snapshot.num-retained.max": "20", "changelog.num-retained.max": "21"}, True),
        ({"snapshot.num-retained.max": "20", "changelog.num-retained.max": "20"}, False),
    ],
)
def test_changelogs_that_may_live_longer_are_decoupled(
    options: dict[str, str], decoupled: bool
) -> None:
    assert expire_settings(options).is_changelog_decoupled is decoupled


def test_consumers_of_changes_alone_hold_no_snapshots() -> None:
    options = {"consumer.changelog-only": "true"}
    assert expire_settings(options).consumers_hold_snapshots
    options["changelog.time-retained"] = "1 d"
    assert not expire_settings(options).consumers_hold_snapshots


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"snapshot.num-retained.min": "0"}, "snapshot.num-retained.min"),
        ({"snapshot.num-retained.max": "9"}, "snapshot.num-retained.max"),
        ({"changelog.num-retained.max": "2"}, "changelog.num-retained.max"),
        ({"snapshot.expire.limit": "0"}, "snapshot.expire.limit"),
        ({"snapshot.time-retained": "soon"}, "snapshot.time-retained"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_named(options: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        expire_settings(options)
