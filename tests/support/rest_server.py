"""Paimon's own REST catalog server, the one of its tests, as a process.

    with RestServer(folder) as server:
        catalog = load_catalog("rest", server.warehouse, {"uri": server.uri, "token": server.token})

It keeps what it knows of databases and tables in memory, and their files below ``folder``; each
token is refused but its own; paths have a prefix.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.support.java import JavaProcess, compiled_classes, fetched, judge_command

SOURCES = Path(__file__).resolve().parent / "rest_java"
_ARCHIVES = ("paimon-core", "mockwebserver", "okhttp", "okio", "junit")


class RestServer(JavaProcess):
    """One running server."""

    warehouse = "lake of tests"
    token = "a token of tests"

    def __init__(self, folder: Path) -> None:
        more = [fetched(name) for name in _ARCHIVES]
        classes = compiled_classes(SOURCES, more)
        arguments = (str(folder), self.token, self.warehouse)
        super().__init__(judge_command("RestServer", classes, *arguments, more=more))
        self.uri = self.first_line

    @property
    def options(self) -> Mapping[str, str]:
        """What a catalog needs to reach it."""
        return {"uri": self.uri, "token": self.token}
