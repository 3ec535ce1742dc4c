"""Plugin of pytest for mutation runs: records the functions a test calls, or runs chosen tests.

INGESTD_CALLS_TO names a file that gets one JSON line per test: id, outcome, seconds and the
functions of `ingestd` that it called (`path:qualified name`), fixtures included.
INGESTD_CHOSEN_TESTS names a JSON object of test ids and seconds: only these tests run, in this
order. A test that takes far longer than these seconds fails.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

PACKAGE = str(Path(__file__).resolve().parents[2] / "ingestd") + os.sep
RECORDS = os.environ.get("INGESTD_CALLS_TO")
CHOSEN = os.environ.get("INGESTD_CHOSEN_TESTS")
SLOWER, GRACE = 10, 20
_called: set[CodeType] = set()
_failed: list[str] = []


def _trace(frame: FrameType, _event: str, _argument: Any) -> None:
    _called.add(frame.f_code)


def _functions() -> list[str]:
    root = len(PACKAGE) - len("ingestd/")
    return sorted(
        {
            f"{code.co_filename[root:]}:{code.co_qualname}"
            for code in tuple(_called)
            if code.co_filename.startswith(PACKAGE)
        }
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record the functions that a test calls."""
    if RECORDS is None:
        return (yield)
    _called.clear()
    _failed.clear()
    begin = time.monotonic()
    threading.settrace(_trace)
    sys.settrace(_trace)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]  # None ends it
        line = {
            "test": item.nodeid,
            "passed": not _failed,
            "seconds": round(time.monotonic() - begin, 3),
            "calls": _functions(),
        }
        with open(RECORDS, "a") as file:
            file.write(json.dumps(line) + "\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember that a phase of the running test did not pass."""
    if not report.passed:
        _failed.append(report.nodeid)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Keep the chosen tests, in their order, each with its limit of time."""
    yield
    if CHOSEN is None:
        return
    seconds: dict[str, float] = json.loads(Path(CHOSEN).read_text())
    place = {test: number for number, test in enumerate(seconds)}
    items[:] = sorted(
        (item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid]
    )
    for item in items:
        item.add_marker(pytest.mark.timeout(GRACE + SLOWER * seconds[item.nodeid]))
