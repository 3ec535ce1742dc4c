import pytest

from ingestd.cli.init import SHOWN_TOPICS, chosen_topics, pipeline_name
from ingestd.errors import ConfigError


@pytest.mark.parametrize(
    ("named", "pattern", "wanted"),
    [
        (["b", "a"], None, (["a", "b"], None)),
        (None, r"s\.a.*", (["s.a"], r"s\.a.*")),
        (None, None, (["s.a", "s.b"], r"s\..*")),
    ],
)
def test_topics_are_those_named_or_alike(
    named: list[str] | None, pattern: str | None, wanted: object
) -> None:
    assert chosen_topics(["_x", "s.a", "s.b"], named, pattern) == wanted


@pytest.mark.parametrize("pattern", ["nope", "("])
def test_a_pattern_for_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        chosen_topics(["a"], None, pattern)
    with pytest.raises(ConfigError, match="no topic yet"):
        chosen_topics(["_schemas"], None, None)


def test_a_pipeline_is_called_as_its_topics_begin() -> None:
    assert pipeline_name(["shop.public.orders"]) == "shop"
    assert pipeline_name(["1.x"]) == pipeline_name([]) == "ingestd"


def test_only_so_many_topics_are_named() -> None:
    many = [f"t{number:03}" for number in range(SHOWN_TOPICS + 7)]
    with pytest.raises(ConfigError, match="t009 and 7 more"):
        chosen_topics(many, None, "nope")
