"""Commands that get a SIGINT at a step: before or after a call to storage, or at a crash point."""

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ingestd.cli import table_arguments
from ingestd.crash_points import watch
from ingestd.paimon.catalog.base import Catalog, load_catalog
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import FileIO, LocalFileIO
from tests.support.command_line import Done, run_command
from tests.support.watched_file_io import WatchedFileIO


@dataclass
class Steps:
    """Counts the steps of a command and sends the signal at one of them (None: never)."""

    at: int | None = None
    passed: int = 0
    names: list[str] = field(default_factory=list)

    def __call__(self, name: object) -> None:
        """One more step; every one is in the process, not perhaps in its main thread."""
        self.passed += 1
        self.names.append(str(name))
        if self.passed == self.at:
            os.kill(os.getpid(), signal.SIGINT)


@dataclass
class StepwiseIO(WatchedFileIO):
    """A FileIO whose calls are two steps each."""

    inner: FileIO
    steps: Steps

    @contextlib.contextmanager
    def _call(self, operation: str, path: str) -> Iterator[None]:
        self.steps(f"before {operation} {Path(path).name}")
        yield
        self.steps(f"after {operation} {Path(path).name}")


def run_stepwise(capsys: pytest.CaptureFixture[str], steps: Steps, *words: Any) -> Done:
    """Run a command line, whose tables are on the local file system, step by step."""

    def stepwise(metastore: str, warehouse: str, *rest: Any) -> Catalog:
        load_catalog(metastore, warehouse, *rest)
        return FilesystemCatalog(warehouse, StepwiseIO(LocalFileIO(sync=False), steps))

    watch(steps)
    try:
        with mock.patch.object(table_arguments, "load_catalog", stepwise):
            return run_command(capsys, *words)
    finally:
        watch(None)
