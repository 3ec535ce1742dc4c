"""How far a running daemon got with a source, by what it says of itself, and a pause of it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.daemon import Daemon
from tests.support.processes import stopped


@dataclass(frozen=True)
class Watched:
    """One source of a daemon."""

    daemon: Daemon
    name: str

    def source(self) -> dict[str, Any]:
        """What the daemon says of the source; nothing while it says nothing."""
        code, text = self.daemon.get("/status")
        sources = json.loads(text)["sources"] if code == 200 else {}
        found: dict[str, Any] = sources.get(self.name, {})
        return found

    def reached(self) -> int:
        """Offsets that are in the tables."""
        topics = self.source().get("topics", {})
        places = [one for by_number in topics.values() for one in by_number.values()]
        return sum(one["position"] or 0 for one in places)

    def await_offsets(self, wanted: int) -> None:
        """Return when this many offsets are in the tables.

        The lag is not asked for, since the daemon learns the ends of logs every few seconds only.
        """
        self.daemon.wait_until(lambda: self.reached() >= wanted)

    def await_silence(self, address: str) -> None:
        """Return when the daemon says that the brokers at an address are silent: everywhere."""
        self.daemon.wait_until(lambda: self.source().get("reachable") is False)
        source = self.source()
        assert address in (source["error"] or ""), source
        shown = f'ingestd_source_reachable{{source="{self.name}"}} 0.0'
        assert shown in self.daemon.get("/metrics")[1]
        assert self.daemon.get("/livez")[0] == 200


@contextmanager
def python_stopped(daemon: Daemon) -> Iterator[None]:
    """In the block no Python process of Spark goes on, that which plans among them."""
    with ExitStack() as stack:
        for pid, command in daemon.family().items():
            if command.startswith("ingestd-"):
                stack.enter_context(stopped(pid))
        yield
