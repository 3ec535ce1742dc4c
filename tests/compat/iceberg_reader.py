"""Iceberg's own reader in Java as a judge, out of its runtime for Spark, which contains all of it.

The newest runtime is one for Spark 4.1, so Spark itself, which is newer here, is not asked.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from ingestd.dev.jars import cache_folder, fetch
from tests.support.closing import Closing
from tests.support.java import compiled_classes, judge_command

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
DIGEST = "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
SOURCES = Path(__file__).resolve().parent / "iceberg_java"


class IcebergReader(Closing):
    """One running reader."""

    def __init__(self) -> None:
        jars = fetch([RUNTIME], cache_folder() / "judges" / "iceberg", pins={RUNTIME: DIGEST})
        self._process = subprocess.Popen(
            judge_command("IcebergReader", compiled_classes(SOURCES, jars), more=jars),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout
        assert self._process.stdout.readline() == "ready\n", "the reader did not start"

    def close(self) -> None:
        """End the JVM."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait(30)

    def read(self, folder: Path | str, tag: str | None = None) -> list[dict[str, Any]]:
        """All rows of a table; times are microseconds, dates and decimals texts."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"folder": str(folder), "tag": tag}) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        assert "error" not in reply, reply["error"]
        rows: list[dict[str, Any]] = reply["rows"]
        return rows
