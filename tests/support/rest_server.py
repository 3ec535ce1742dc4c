"""Paimon's own REST catalog server, the one of its tests, as a process.

    with RestServer(folder) as server:
        catalog = load_catalog("rest", server.warehouse, {"uri": server.uri, "token": server.token})

It keeps what it knows of databases and tables in memory, and their files below ``folder``; each
token is refused but its own; paths have a prefix.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.closing import Closing
from tests.support.java import compiled_classes, fetched, judge_command

SOURCES = Path(__file__).resolve().parent / "rest_java"
_ARCHIVES = ("paimon-core", "mockwebserver", "okhttp", "okio", "junit")


class RestServer(Closing):
    """One running server."""

    warehouse = "lake of tests"
    token = "a token of tests"

    def __init__(self, folder: Path) -> None:
        more = [fetched(name) for name in _ARCHIVES]
        classes = compiled_classes(SOURCES, more)
        arguments = (str(folder), self.token, self.warehouse)
        self._process = subprocess.Popen(
            judge_command("RestServer", classes, *arguments, more=more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.uri = self._process.stdout.readline().strip() if self._process.stdout else ""
        assert self.uri, "the server did not start"

    @property
    def options(self) -> Mapping[str, str]:
        """What a catalog needs to reach it."""
        return {"uri": self.uri, "token": self.token}

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait(timeout=120)
