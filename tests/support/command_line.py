"""Command lines run inside the test's process: quick, with their output and exit code."""

import logging
from typing import Any, NamedTuple

import pytest

from ingestd.cli.main import execute


class Done(NamedTuple):
    """How a command line ended."""

    code: int
    out: str
    err: str


def run_command(capsys: pytest.CaptureFixture[str], *arguments: Any) -> Done:
    """Run one command line; the logging of the test session stays as it is."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    capsys.readouterr()
    try:
        code = execute([str(argument) for argument in arguments])
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        logging.captureWarnings(capture=False)
    out, err = capsys.readouterr()
    return Done(code, out, err)
