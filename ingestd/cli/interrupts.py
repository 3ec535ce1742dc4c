"""What people are told when they interrupt a command (Ctrl-C): what is left of it, how to go on."""

from collections.abc import Iterator
from contextlib import contextmanager

from ingestd.log import printable

EXIT_CODE = 130
"""Of a process that was interrupted, as shells have it: 128 and the number of SIGINT."""
COMMITTED = (
    "What was committed stays, nothing is half-done. Run the same command again for the rest."
)
"""What is true of work that lands by commits, each of them whole or not at all."""
UNCHANGED = "It changes nothing. Run the same command again."
_ANYWHERE = (
    "it has stopped before its end. What was committed stays, nothing is half-done. "
    "Run the same command again."
)


class InterruptedWorkError(KeyboardInterrupt):
    """An interrupt of work that knows what is left of it; the message is for people."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@contextmanager
def interruptible(what: str, name: str, left: str) -> Iterator[None]:
    """Have an interrupt of the block say what was interrupted, and what is left of it."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise InterruptedWorkError(f"{what} {printable(name)} has stopped. {left}") from interrupt


def interrupt_message(end: BaseException) -> str:
    """What the interrupt said that led to this end; words for any command if it said nothing."""
    seen: BaseException | None = end
    while seen is not None:
        if isinstance(seen, InterruptedWorkError):
            return seen.message
        seen = seen.__cause__ or seen.__context__
    return _ANYWHERE
