"""Keys pressed on the terminal, without waiting for the end of a line."""

import os
import re
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

Keys: TypeAlias = list[str]
"""Names of pressed keys: a character, or `up`, `down`, `enter`, `escape`."""
_NAMES = {"\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down"} | {
    "\r": "enter",
    "\n": "enter",
    "\x1b": "escape",
}
_KEY = re.compile(r"\x1b(?:[\[O][0-9;]*[A-Za-z~])?|.", re.DOTALL)
_READ_BYTES = 1024


def parse_keys(text: str) -> Keys:
    """Split input from a terminal into keys: a character, or a name such as "up" or "enter".

    The names are "up", "down", "enter" and "escape". Other escape sequences are left out.
    """
    names = [_NAMES.get(sequence, sequence) for sequence in _KEY.findall(text)]
    return [name for name in names if not name.startswith("\x1b")]


def read_keys(seconds: float) -> Keys:
    """Wait up to `seconds` for input; return the names of the pressed keys, or [] without input."""
    readable, _, _ = select.select([sys.stdin], [], [], max(0.0, seconds))
    if not readable:
        return []
    return parse_keys(os.read(sys.stdin.fileno(), _READ_BYTES).decode("utf-8", "replace"))


@contextmanager
def single_keys() -> Iterator[None]:
    """Put the terminal into a mode that delivers each key at once; Ctrl-C still interrupts."""
    settings = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)
