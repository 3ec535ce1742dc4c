"""Spans are values."""

import pytest

from ingestd.telemetry.spans import Span, SpanError


def test_a_span_stands_for_itself_and_stays_as_it_is() -> None:
    one = Span("batch", 1, 2, {"a": 1}, (Span("stages", 1, 2),), SpanError("SourceError", "x"))
    assert one == Span(
        "batch", 1, 2, {"a": 1}, (Span("stages", 1, 2),), SpanError("SourceError", "x")
    )
    with pytest.raises(AttributeError):
        one.name = "other"  # type: ignore[misc]
