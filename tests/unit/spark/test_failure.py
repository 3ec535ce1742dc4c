"""Errors that come back from other processes as text."""

import pytest

from ingestd.errors import DiskFullError, OffsetLostError, RetryableError, WorkerLostError
from ingestd.spark.failure import last_cause, raised_error, task_error


def test_the_error_of_a_traceback_is_found() -> None:
    text = (
        '[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed:\n  File "x.py", line 3\n'
        "ingestd.errors.SourceError: first\nDuring handling:\n"
        "ingestd.errors.OffsetLostError: source s: t/0 is gone; take it out\n at Java.method"
    )
    found = raised_error(text)
    assert isinstance(found, OffsetLostError)
    assert found.message == "source s: t/0 is gone; take it out"
    assert raised_error("java.lang.NullPointerException") is None
    assert raised_error("ingestd.errors.NoSuchError: x") is None


def test_a_full_disk_is_reported_whoever_met_it() -> None:
    """In the words of this system, which Java and Arrow repeat."""
    with pytest.raises(OSError, match="No space left") as met, open("/dev/full", "wb", 0) as full:
        full.write(b"x")
    assert str(met.value.strerror) in f"java.io.IOException: {met.value.strerror}"
    found = raised_error(f"Job aborted\njava.io.IOException: {met.value.strerror}\n\tat x.Y")
    assert isinstance(found, DiskFullError)
    assert found.message == "java.io.IOException: No space left on device"
    told = raised_error("ingestd.errors.DiskFullError: /w: No space left on device")
    assert isinstance(told, DiskFullError)


def test_the_cause_is_the_last_error_a_traceback_names() -> None:
    text = "Traceback:\n  File x, line 1\nKeyError: 'a'\n\nValueError: no such thing\n\tat java.X.y"
    assert last_cause(text) == "ValueError: no such thing"
    assert last_cause("nothing that names\nan end") == "an end"


def test_the_cause_of_a_query_is_not_searched_in_the_plan_after_it() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: it is so SQLSTATE: X\n"
        "=== Streaming Query ===\n+- ~StreamingDataSourceV2ScanRelation[source#0] ranges"
    )
    assert last_cause(text) == "it is so SQLSTATE: X"


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat x.Y",
        "File x, line 3\npyarrow.lib.ArrowMemoryError: malloc of size 64 failed\n\tat x.Y",
        "File x, line 3\nMemoryError\n\tat x.Y",
    ],
)
def test_a_worker_that_was_killed_or_had_no_more_memory_is_lost(text: str) -> None:
    assert isinstance(task_error(text), WorkerLostError)


def test_other_failures_of_tasks_are_what_they_say() -> None:
    assert type(task_error("KeyError: 'a'\n\tat x.Y")) is RetryableError
    assert isinstance(task_error("ingestd.errors.OffsetLostError: gone"), OffsetLostError)
