"""Spans as plain values, independent of the exporter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

Attribute = str | int | float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpanError:
    """The error that ended a span: its class and its redacted message."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Span:
    """A finished span with its children; `begun` and `ended` are nanoseconds since 1970."""

    name: str
    begun: int
    ended: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    children: tuple["Span", ...] = ()
    error: SpanError | None = None


class SpanSink(Protocol):
    """A receiver of spans; it must not block or raise, and must be thread-safe."""

    def take(self, span: Span) -> None:
        """Receive a finished span with its children."""

    def close(self) -> None:
        """Send pending spans for a few seconds at most, then stop; spans that remain are lost."""
