"""Paimon's own REST catalog server, the one of its tests, as a process.

    with RestServer(folder) as server:
        catalog = load_catalog("rest", server.warehouse, {"uri": server.uri, "token": server.token})

It keeps what it knows of databases and tables in memory, and their files below ``folder``; each
token is refused but its own; paths have a prefix. With ``data_tokens`` it hands out the credentials
of the tables' store that ``give_token`` was called with.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ingestd.paimon.catalog.base import Identifier
from tests.support.java import JavaProcess, compiled_classes, fetched, judge_command

SOURCES = Path(__file__).resolve().parent / "rest_java"
_ARCHIVES = ("paimon-core", "mockwebserver", "okhttp", "okio", "junit")


def s3_files() -> Sequence[Path]:
    """What a Java client needs to find objects of an S3 server among the files of this machine."""
    return compiled_classes(SOURCES, [fetched(name) for name in _ARCHIVES]), SOURCES


class RestServer(JavaProcess):
    """One running server."""

    warehouse = "lake of tests"
    token = "a token of tests"

    def __init__(self, folder: Path | str, *, data_tokens: bool = False) -> None:
        more = [fetched(name) for name in _ARCHIVES]
        classes = compiled_classes(SOURCES, more)
        arguments = (str(folder), self.token, self.warehouse, str(data_tokens).lower())
        super().__init__(judge_command("RestServer", classes, *arguments, more=more))
        self.uri = self.first_line

    @property
    def options(self) -> Mapping[str, str]:
        """What a catalog needs to reach it."""
        return {"uri": self.uri, "token": self.token}

    def give_token(self, table: Identifier, key: str, secret: str, expires_at_ms: int) -> None:
        """Hand out these credentials of S3 for a table from now on."""
        assert self._process.stdin
        assert self._process.stdout
        words = (table.database, table.table, str(expires_at_ms), key, secret)
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "given\n"
