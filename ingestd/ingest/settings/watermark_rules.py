"""How the watermark of a table is derived from event times (`watermark`)."""

from dataclasses import dataclass
from typing import Literal

EventTime = Literal["none", "source", "column"]


@dataclass(frozen=True, slots=True)
class WatermarkRules:
    """How watermarks of a table are derived: event time, allowed delay and idle timeout.

    `event_time` is the time of a change in its source ("source") or the value of `column`
    ("column"); with "none", the table gets no watermarks. The event time of a row may be up to
    `delay_ms` before the largest event time of its topic partition. A topic partition is idle after
    `idle_seconds` without records.
    """

    event_time: EventTime = "none"
    column: str | None = None
    delay_ms: int = 0
    idle_seconds: float = 60.0
