"""What runs as long as its block does."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """A context manager that is itself: its block begins with `start` and ends with `close`."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.tell(error)
        self.close()

    def start(self) -> None:  # noqa: B027  (many are there as soon as they are made)
        """Begin it."""

    def tell(self, error: BaseException) -> None:  # noqa: B027  (most have nothing to say)
        """Say to the error that ends the block what it should show."""

    @abstractmethod
    def close(self) -> None:
        """End it, however far its start came."""
