"""What people see in a terminal is what was reviewed: tests/golden/terminal.

To renew: `python -m tests.support.terminal --write`, and read the diff.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.screen import Screen
from tests.support.terminal import (
    GOLDEN,
    SCENES,
    command,
    daemon,
    environment,
    look,
    set_stage,
)
from tests.support.tmux import COLUMNS, Tmux, has_tmux

pytestmark = pytest.mark.skipif(not has_tmux(), reason="tmux is not installed")

RENEW = "renew by `python -m tests.support.terminal --write`, and read the diff"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stage")
    set_stage(folder)
    return folder


@pytest.fixture(scope="module")
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    with Tmux(tmp_path_factory.mktemp("tmux")) as tmux:
        yield tmux


def kept(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text("utf-8")


@pytest.fixture(scope="module")
def places() -> Iterator[Mapping[str, str]]:
    with daemon() as places:
        yield places


@pytest.mark.parametrize("name", SCENES)
def test_a_terminal_shows_what_was_reviewed(
    name: str, stage: Path, tmux: Tmux, places: Mapping[str, str]
) -> None:
    assert look(SCENES[name], stage, tmux, places) == kept(name), RENEW


def test_nothing_is_kept_that_no_scene_shows() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == SCENES.keys() | {"init"}


def test_colours_are_on_a_terminal_that_has_them_and_nowhere_else() -> None:
    assert "red" in kept("fault-of-configuration")
    assert "red" not in kept("fault-without-colour")
    assert "\x1b" not in "".join(kept(name) for name in SCENES)


def test_progress_is_shown_on_a_terminal_and_not_in_a_pipe() -> None:
    assert "N/3 files" in kept("verify")
    piped = kept("verify-in-a-pipe")
    assert "3 files" not in piped
    assert "the table is sound" in piped


def test_our_reading_of_what_a_program_writes_is_that_of_tmux(stage: Path, tmux: Tmux) -> None:
    """The lines that were shown and taken back rest on it."""
    words = command(("verify", "lake", "shop.orders"))
    window = tmux.run(words, cwd=stage, env=environment(()))
    assert window.code() == 0
    shown = window.screen().plain()
    (raw,) = [path for path in tmux.folder.glob("*.raw") if path.stem == window.name]
    ours = Screen(COLUMNS)
    ours.feed(raw.read_bytes().decode())
    assert ours.plain() == shown


def test_a_screen_wraps_takes_lines_back_and_names_styles() -> None:
    screen = Screen(4)
    screen.feed("abcdef\r\n\x1b[1;31mred\x1b[0m \r\nspin\r\x1b[2K\x1b[1A\x1b[?25hx\r\n")
    assert screen.plain() == "abcd\nef\nxed"
    assert screen.marked() == "abcd\nef\nx[bold red]ed[/]"
    assert screen.taken_back == ["spin"]
    assert screen.colours() == {"red"}


@pytest.mark.parametrize(
    "unknown", ["\x1b[3J", "\x1b]0;title\x07", "\x07", "\x1b[38;5;9m", "a\x1b"]
)
def test_a_screen_passes_nothing_over(unknown: str) -> None:
    with pytest.raises(ValueError, match=r"terminal|name|end"):
        Screen(80).feed(unknown)
