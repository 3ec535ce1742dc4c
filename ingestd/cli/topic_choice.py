"""Chooses the topics of a proposed pipeline, and its name."""

import re
from collections.abc import Sequence
from functools import partial

from ingestd.cli.proposal import own_topics, proposed_pattern
from ingestd.cli.questions import ask, tell_on_terminal
from ingestd.errors import ConfigError

SHOWN_TOPICS = 10
"""Names of topics that are shown at once; the others are counted."""


def chosen_topics(
    there: Sequence[str], named: Sequence[str] | None, pattern: str | None
) -> tuple[list[str], str | None]:
    """Return the topics to read, and the regular expression that selects them, if any."""
    if named:
        return sorted(named), None
    mine = own_topics(there)
    if not mine:
        raise ConfigError("the brokers have no topic yet: name the ones to come with --topic")
    alike = proposed_pattern(mine)
    if pattern is None:
        tell_on_terminal(f"There is: {_some_of(mine)}")
    wanted = pattern or ask(
        "Topics (a regular expression)", alike or ".*", "--topic-pattern", partial(_meant, mine)
    )
    chosen = _meant(mine, wanted)
    explicit = pattern is not None or wanted not in (".*", alike)
    return chosen, wanted if explicit else proposed_pattern(chosen)


def _meant(topics: Sequence[str], pattern: str) -> list[str]:
    """Return the topics that match a regular expression. Raises ConfigError if none does."""
    try:
        chosen = [topic for topic in topics if re.fullmatch(pattern, topic)]
    except re.error as error:
        raise ConfigError(f"'{pattern}' is no regular expression: {error}") from error
    if not chosen:
        raise ConfigError(f"no topic is like '{pattern}'; there is: {_some_of(topics)}")
    return chosen


def _some_of(topics: Sequence[str]) -> str:
    left = len(topics) - SHOWN_TOPICS
    return ", ".join(topics[:SHOWN_TOPICS]) + (f" and {left} more" if left > 0 else "")


def pipeline_name(topics: Sequence[str]) -> str:
    """Return a name for the pipeline: the common beginning of its topics' names."""
    word = re.split(r"[^A-Za-z0-9]", topics[0])[0].lower() if topics else ""
    return word if re.fullmatch(r"[a-z][a-z0-9]*", word) else "ingestd"
