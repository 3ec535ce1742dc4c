"""Spans as plain values: what is told of a batch, before anybody knows who wants to hear it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

Attribute = str | int | float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpanError:
    """What ended a span: the class of the error and its message, without secrets."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time, and the parts of it; times are nanoseconds since 1970."""

    name: str
    begun: int
    ended: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    children: tuple["Span", ...] = ()
    error: SpanError | None = None


class SpanSink(Protocol):
    """Takes spans; must be quick, must not raise, and may be told by any thread."""

    def take(self, span: Span) -> None:
        """A span is over, and with it its children."""

    def close(self) -> None:
        """No more will come; return within seconds, whoever listens."""
