"""A ledger that comes in little by little, as long as a block runs."""

import threading
from types import TracebackType
from typing import Self

from ingestd.dev.broker import DevBroker
from tests.support.ledger import Ledger

_PAUSE_SECONDS = 0.5


class Trickle:
    """Puts `step` changes of a ledger into their topics twice a second; `finish` puts the rest."""

    def __init__(self, ledger: Ledger, broker: DevBroker, step: int) -> None:
        self._ledger = ledger
        self._broker = broker
        self._step = step
        self._reached = 0
        self.others = 0  # records that somebody else puts into the same topics
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trickle", daemon=True)

    def __enter__(self) -> Self:
        self.more(self._step)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def more(self, changes: int) -> None:
        """At once."""
        with self._turn:
            until = min(self._reached + changes, self._ledger.events)
            if until > self._reached:
                self._ledger.produce(self._broker, self._reached, until)
                self._reached = until

    def finish(self) -> None:
        """Nothing comes after this."""
        self._ended.set()
        self.more(self._ledger.events)

    def _run(self) -> None:
        while not self._ended.wait(_PAUSE_SECONDS):
            self.more(self._step)
