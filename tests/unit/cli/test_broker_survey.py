"""What is proposed for what was seen."""

import pytest

from ingestd.cdc.format_guess import Guess
from ingestd.cli.broker_survey import BrokerSurvey, proposed_sources, resolved_properties
from ingestd.cli.sampled_dry_run import TopicLogs
from ingestd.errors import ConfigError
from ingestd.log import redact

DEBEZIUM, CANAL = Guess("debezium-json", 4, 5), Guess("canal-json", 3, 3)
SILENT = Guess(None, 0, 0)


def seen(**guesses: Guess) -> BrokerSurvey:
    return BrokerSurvey(
        TopicLogs({}, {}), {name.replace("_", "."): one for name, one in guesses.items()}
    )


def test_topics_of_one_format_are_one_source_with_a_pattern() -> None:
    (one,) = proposed_sources("shop", seen(s_a=DEBEZIUM, s_b=DEBEZIUM, s_c=SILENT), None, None)
    assert (one.name, one.pattern, one.data_format) == ("shop", r"s\..*", "debezium-json")
    assert one.topics == ("s.a", "s.b", "s.c")
    assert (one.guess.agreeing, one.guess.telling) == (8, 10)


def test_each_format_is_a_source_of_its_own_with_its_topics_by_name() -> None:
    found = proposed_sources("shop", seen(s_a=CANAL, s_b=DEBEZIUM, s_c=DEBEZIUM), None, r"s\..*")
    assert [(one.name, one.topics, one.pattern) for one in found] == [
        ("shop-canal-json", ("s.a",), None),
        ("shop-debezium-json", ("s.b", "s.c"), None),
    ]


def test_what_is_said_goes_before_what_is_guessed() -> None:
    (one,) = proposed_sources("shop", seen(s_a=DEBEZIUM, s_b=SILENT), "json", ".*")
    assert (one.data_format, one.pattern, one.guess.agreeing) == ("json", ".*", 0)


def test_topics_without_messages_have_a_format_that_is_only_assumed() -> None:
    (one,) = proposed_sources("shop", seen(s_a=SILENT), None, None)
    assert (one.data_format, one.guess.telling) == ("debezium-json", 0)


def test_references_are_resolved_and_kept_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_PASSWORD", "planted-in-the-environment")
    found = resolved_properties({"sasl.password": "${env:A_PASSWORD}", "client.id": "me"})
    assert found == {"sasl.password": "planted-in-the-environment", "client.id": "me"}
    assert "planted" not in redact(found["sasl.password"])
    with pytest.raises(ConfigError, match="NOWHERE is not set"):
        resolved_properties({"sasl.password": "${env:NOWHERE}"})
