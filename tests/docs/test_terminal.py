"""What people see in a terminal is what was reviewed: tests/golden/terminal.

To renew: `python -m tests.support.terminal --write`, and read the diff.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.screen import Screen
from tests.support.terminal import (
    COLUMNS,
    GOLDEN,
    SCENES,
    Scene,
    command,
    environment,
    in_terminal,
    look,
    set_stage,
)

RENEW = "renew by `python -m tests.support.terminal --write`, and read the diff"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stage")
    set_stage(folder)
    return folder


def kept(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", SCENES)
def test_a_terminal_shows_what_was_reviewed(name: str, stage: Path) -> None:
    assert look(SCENES[name], stage) == kept(name), RENEW


def test_nothing_is_kept_that_no_scene_shows() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == SCENES.keys()


def test_colours_are_on_a_terminal_that_has_them_and_nowhere_else() -> None:
    assert "red" in kept("fault-of-configuration")
    assert "red" not in kept("fault-without-colour")
    assert "\x1b" not in "".join(kept(name) for name in SCENES)


def test_progress_is_shown_on_a_terminal_and_not_in_a_pipe() -> None:
    assert "N files read" in kept("verify")
    piped = kept("verify-in-a-pipe")
    assert "files read" not in piped
    assert "the table is sound" in piped


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_tmux_shows_the_same_screen(stage: Path, tmp_path: Path) -> None:
    """The judge of our own reading of control sequences."""
    scene = Scene(("verify", "lake", "shop.orders"))
    words = ["tmux", "-f", "/dev/null", "-S", str(tmp_path / "socket")]
    size = ["-x", str(COLUMNS), "-y", "24", "-c", str(stage)]
    settings = [f"{name}={value}" for name, value in environment(()).items()]
    script = '"$@"; tmux wait-for -S done; sleep 60'
    inside = ["env", *settings, "sh", "-c", script, "sh", *command(scene.words)]
    try:
        subprocess.run([*words, "new-session", "-d", *size, *inside], check=True, timeout=60)
        subprocess.run([*words, "wait-for", "done"], check=True, timeout=60)
        shown = subprocess.run(
            [*words, "capture-pane", "-p"], check=True, timeout=60, capture_output=True, text=True
        ).stdout
    finally:
        subprocess.run([*words, "kill-server"], check=False, timeout=60)
    screen, code = in_terminal(scene, stage)
    assert code == 0
    assert shown.rstrip() == screen.plain()


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
