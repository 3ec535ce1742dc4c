"""A ledger that comes in little by little, as long as a block runs."""

import threading

from ingestd.dev.broker import DevBroker
from tests.support.closing import Closing
from tests.support.ledger import Ledger

_PAUSE_SECONDS = 0.5


class Trickle(Closing):
    """Puts `step` changes of a ledger into their topics twice a second; `finish` puts the rest."""

    def __init__(self, ledger: Ledger, broker: DevBroker, step: int) -> None:
        self._ledger = ledger
        self._broker = broker
        self._step = step
        self._reached = 0
        self.others = 0  # records that another process puts into the same topics
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trickle", daemon=True)

    def start(self) -> None:
        """The first step, and then the others."""
        self.more(self._step)
        self._thread.start()

    def close(self) -> None:
        """The step under way ends."""
        self._ended.set()
        if self._thread.is_alive():
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
