"""Threads that change a database until they are stopped."""

import threading
from collections.abc import Callable


class Workers:
    """Threads that run `work` from `start` to `stop`, each with a seed of its own.

    `work` returns soon after `stopped` is set.
    """

    def __init__(self, work: Callable[[str], None], seed: int, count: int) -> None:
        self.stopped = threading.Event()
        self._threads = [
            threading.Thread(target=work, args=(f"{seed}/{number}",)) for number in range(count)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let every worker end what it does."""
        self.stopped.set()
        for thread in self._threads:
            thread.join()
