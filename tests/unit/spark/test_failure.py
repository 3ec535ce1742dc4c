"""Errors that come back from other processes as text."""

from ingestd.errors import OffsetLostError
from ingestd.spark.failure import last_cause, raised_error


def test_the_error_behind_a_traceback_is_found() -> None:
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


def test_the_cause_is_the_last_error_a_traceback_names() -> None:
    text = "Traceback:\n  File x, line 1\nKeyError: 'a'\n\nValueError: no such thing\n\tat java.X.y"
    assert last_cause(text) == "ValueError: no such thing"
    assert last_cause("nothing that names\nan end") == "an end"


def test_the_cause_of_a_query_is_not_looked_for_in_the_plan_behind_it() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: it is so SQLSTATE: X\n"
        "=== Streaming Query ===\n+- ~StreamingDataSourceV2ScanRelation[source#0] ranges"
    )
    assert last_cause(text) == "it is so SQLSTATE: X"
