"""Messages for an interrupt (Ctrl-C): the state in which work is left, and how to continue."""

from collections.abc import Iterator
from contextlib import contextmanager

from ingestd.log import printable

EXIT_CODE = 130
"""Exit code of an interrupted process, as in shells: 128 plus the number of SIGINT."""
COMMITTED = (
    "What was committed stays, the table is consistent. Run the same command again for the rest."
)
"""Describes the state that an interrupt leaves if the work is done by atomic commits."""
UNCHANGED = "It changes nothing. Run the same command again."
_ANYWHERE = (
    "it has stopped before its end. What was committed stays, the table is consistent. "
    "Run the same command again."
)


class InterruptedWorkError(KeyboardInterrupt):
    """An interrupt with a message on the state in which the work is left."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@contextmanager
def interruptible(what: str, name: str, left: str) -> Iterator[None]:
    """Convert an interrupt (Ctrl-C) of the block to InterruptedWorkError.

    The message is "WHAT NAME has stopped. LEFT": `what` is the work, `name` its object, and `left`
    a sentence on the state in which it is left.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise InterruptedWorkError(f"{what} {printable(name)} has stopped. {left}") from interrupt


def interrupt_message(end: BaseException) -> str:
    """Return the message of the InterruptedWorkError that caused `end`, or a general message."""
    error: BaseException | None = end
    while error is not None:
        if isinstance(error, InterruptedWorkError):
            return error.message
        error = error.__cause__ or error.__context__
    return _ANYWHERE
