"""`ingestd init` before it asks a broker; with one it is in tests/integration."""

from pathlib import Path

import pytest

from ingestd.cli.init import _chosen_topics, _name_of
from ingestd.errors import ConfigError
from tests.support.command_line import run_command

Capture = pytest.CaptureFixture[str]


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    done = run_command(capsys, "init", file, "--bootstrap", "nowhere:1")
    assert (done.code, file.read_text()) == (2, "mine")
    assert "--force" in done.err


def test_without_a_terminal_the_missing_option_is_named(tmp_path: Path, capsys: Capture) -> None:
    done = run_command(capsys, "init", tmp_path / "new.yaml")
    assert (done.code, "--bootstrap" in done.err) == (2, True)


def test_a_property_without_a_value_is_refused_and_not_repeated(capsys: Capture) -> None:
    done = run_command(capsys, "init", "-", "--bootstrap", "x:1", "--kafka", "password")
    assert done.code == 2
    assert "NAME=VALUE" in done.err


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
    assert _chosen_topics(["_x", "s.a", "s.b"], named, pattern) == wanted


@pytest.mark.parametrize("pattern", ["nope", "("])
def test_a_pattern_for_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        _chosen_topics(["a"], None, pattern)
    with pytest.raises(ConfigError, match="no topic yet"):
        _chosen_topics(["_schemas"], None, None)


def test_a_pipeline_is_called_as_its_topics_begin() -> None:
    assert _name_of(["shop.public.orders"]) == "shop"
    assert _name_of(["1.x"]) == _name_of([]) == "ingestd"
