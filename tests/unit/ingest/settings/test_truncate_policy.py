from ingestd.ingest.settings.truncate_policy import TruncatePolicy


def test_a_policy_is_silent_where_it_says_nothing() -> None:
    defaults = TruncatePolicy("ignore", "dead-letter")
    assert TruncatePolicy().over(defaults) == defaults
    assert TruncatePolicy("apply").over(defaults) == TruncatePolicy("apply", "dead-letter")
    assert not defaults.applies
    assert not defaults.fails


def test_a_table_is_emptied_and_a_doubt_stops_only_if_that_is_asked_for() -> None:
    assert TruncatePolicy().applies
    assert not TruncatePolicy().fails
    assert TruncatePolicy(on_refused="fail").fails
