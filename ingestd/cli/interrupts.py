"""Messages for an interrupt (Ctrl-C): what state is left, and how to continue."""

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
    """An interrupt with a message on the state that is left."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@contextmanager
def interruptible(what: str, name: str, left: str) -> Iterator[None]:
    """Convert an interrupt (Ctrl-C) of the block to InterruptedWorkError.

    The message names the work, `what`, and its object, `name`, and ends with `left`, which
    describes the state that is left.
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
