"""Questions on a terminal; where there is none, defaults, or the option that would have said it."""

import sys
from collections.abc import Callable

import typer

from ingestd.cli.output import say
from ingestd.errors import ConfigError
from ingestd.log import printable

Check = Callable[[str], object]
"""Raises ConfigError for an answer that will not do."""


def is_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask(what: str, default: str | None, option: str, check: Check = str) -> str:
    """An answer from the terminal, asked for again until it will do.

    Without a terminal the default; ConfigError names the option if there is none, or says why the
    default will not do. KeyboardInterrupt if there are no more answers.
    """
    if not is_terminal():
        if default is None:
            raise ConfigError(f"say {option}: there is no terminal to ask on")
        check(default)
        return default
    while True:
        answer = _answer(what, default)
        try:
            check(answer)
        except ConfigError as error:
            say(printable(error.message), err=True)
        else:
            return answer


def confirm(what: str, option: str, *, given: bool) -> None:
    """Ask whether to go on, unless the option that says so is `given`.

    ConfigError if the answer is no, or if there is no terminal to ask on.
    """
    if given:
        return
    if not is_terminal():
        raise ConfigError(f"{what} There is no terminal to ask on: say {option}")
    if _answer(f"{printable(what)} [y/N]", "n").lower() not in ("y", "yes"):
        raise ConfigError("nothing is done")


def _answer(what: str, default: str | None) -> str:
    try:
        return str(typer.prompt(printable(what), default=default)).strip()
    except typer.Abort as end:
        say("", err=True)
        raise KeyboardInterrupt from end


def tell_on_terminal(text: str) -> None:
    """What somebody wants to know before the next question; nothing where nobody is asked."""
    if is_terminal():
        say(printable(text))
