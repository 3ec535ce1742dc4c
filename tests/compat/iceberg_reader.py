"""Iceberg's own reader in Java as a judge, out of its runtime for Spark, which contains all of it.

The runtime is that of the Spark that is asked as well (`tests.compat.engines`).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingestd.dev.jars import cache_folder, fetch
from tests.support.java import JavaProcess, compiled_classes, judge_command

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0"
DIGEST = "8dd8c90e54ed1a20f2461309d047a255ee56382eb7c0a46162b27a4936fd86dc"
SOURCES = Path(__file__).resolve().parent / "iceberg_java"


def runtime() -> list[Path]:
    """The archive of Iceberg's runtime."""
    return fetch([RUNTIME], cache_folder() / "judges" / "iceberg", pins={RUNTIME: DIGEST})


class IcebergReader(JavaProcess):
    """One running reader."""

    def __init__(self, more: Sequence[Path] = ()) -> None:
        jars = runtime()
        classes = compiled_classes(SOURCES, jars)
        super().__init__(judge_command("IcebergReader", classes, more=[*jars, *more]))
        assert self.first_line == "ready", "the reader did not start"

    def read(self, folder: Path | str, tag: str | None = None) -> list[dict[str, Any]]:
        """All rows of a table; times are microseconds, dates and decimals texts."""
        return self._rows({"folder": str(folder), "tag": tag})

    def read_in_hive(self, metastore: str, name: str) -> list[dict[str, Any]]:
        """All rows of a table that Iceberg's HiveCatalog opens, as `read` returns them."""
        return self._rows({"metastore": metastore, "name": name})

    def read_in_catalog(self, server: "IcebergRestServer", name: str) -> list[dict[str, Any]]:
        """All rows of a table that Iceberg's RESTCatalog opens, as `read` returns them."""
        return self._rows({"rest": server.uri, "token": server.token, "name": name})

    def _rows(self, request: dict[str, str | None]) -> list[dict[str, Any]]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        assert "error" not in reply, reply["error"]
        rows: list[dict[str, Any]] = reply["rows"]
        return rows


class IcebergRestServer(JavaProcess):
    """A REST catalog of Iceberg's own request handlers, with its own documents below a folder."""

    token = "a token of tests"

    def __init__(self, folder: Path) -> None:
        jars = runtime()
        classes = compiled_classes(SOURCES, jars)
        arguments = (str(folder), self.token)
        super().__init__(judge_command("IcebergRestServer", classes, *arguments, more=jars))
        self.uri = self.first_line
