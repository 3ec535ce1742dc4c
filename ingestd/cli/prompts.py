"""Ask questions on a terminal; without one, use defaults or name the missing option."""

import sys
from collections.abc import Callable

import typer

from ingestd.cli.output import say
from ingestd.errors import ConfigError, IngestdError
from ingestd.log import printable

Check = Callable[[str], object]
"""A function that raises an IngestdError for an answer that cannot be used."""


def is_terminal() -> bool:
    """Return whether both standard input and standard output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask(what: str, default: str | None, option: str, check: Check = str) -> str:
    """Ask on the terminal until the answer is valid, and return it.

    `check` raises an IngestdError for an answer that is not valid. Without a terminal, return the
    default; if there is none, raise ConfigError, which names `option`. Raises the error of `check`
    if the default cannot be used without a terminal, and KeyboardInterrupt at the end of the input.
    """
    if not is_terminal():
        if default is None:
            raise ConfigError(f"specify {option}: there is no terminal to ask on")
        check(default)
        return default
    while True:
        answer = _answer(what, default)
        try:
            check(answer)
        except IngestdError as error:
            say(printable(error.message), err=True)
        else:
            return answer


def confirm(what: str, option: str, *, given: bool) -> None:
    """Ask the question `what` on the terminal, and return only if the answer is yes.

    `given` is whether the user has set `option`, which confirms; then nothing is asked. Raises
    ConfigError if the answer is no, or if there is no terminal.
    """
    if given:
        return
    if not is_terminal():
        raise ConfigError(f"{what} There is no terminal to ask on: specify {option}")
    question = f"{printable(what)} [y/N]"
    if _answer(question, "n", show_default=False).lower() not in ("y", "yes"):
        raise ConfigError("nothing is done")


def _answer(what: str, default: str | None, *, show_default: bool = True) -> str:
    try:
        answer = typer.prompt(printable(what), default=default, show_default=show_default)
        return str(answer).strip()
    except typer.Abort as end:
        say("", err=True)
        raise KeyboardInterrupt from end


def print_on_terminal(text: str) -> None:
    """Print a line of information before a question, if there is a terminal."""
    if is_terminal():
        say(printable(text))
