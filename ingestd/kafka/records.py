"""Records as columns, errors and events: the results of a reader of topic partitions.

There are two readers, one by the native extension and one by the Python client. Both use the same
client library and return the same results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ingestd.cdc.texts import Texts

Numbers = npt.NDArray[np.int64]
Header = tuple[str, bytes | None]
Place = tuple[str, int]
"""Topic and partition."""
NOWHERE: Place = ("", -1)
"""The place of errors that concern no topic partition."""


class Problem(NamedTuple):
    """An error of the client library: its code (as in `KafkaError`) and its text."""

    code: int
    text: str


class LogEvent(NamedTuple):
    """An event that the client returned instead of a record; `offset` is its position then."""

    problem: Problem
    offset: int


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one topic partition with ascending offsets, as parallel columns.

    `sizes` are bytes of key and value; `headers` is None if they were not requested.
    """

    offsets: Numbers
    timestamps: Numbers
    sizes: Numbers
    keys: Texts
    values: Texts
    headers: list[list[Header] | None] | None
    events: Sequence[LogEvent] = ()

    def __len__(self) -> int:
        return len(self.keys)

    def first(self, count: int) -> "Records":
        """Return the first `count` records, without the events."""
        return self if count >= len(self) and not self.events else self._part(0, count)

    def _part(self, start: int, stop: int) -> "Records":
        return Records(
            offsets=self.offsets[start:stop],
            timestamps=self.timestamps[start:stop],
            sizes=self.sizes[start:stop],
            keys=self.keys[start:stop],
            values=self.values[start:stop],
            headers=None if self.headers is None else self.headers[start:stop],
        )


class Reader(Protocol):
    """Reads assigned topic partitions; raises SourceError if the brokers reject the client."""

    def assign(self, offsets: Mapping[Place, int]) -> None:
        """Read only these topic partitions, each from its offset."""

    def unassign(self) -> None:
        """Read no topic partition."""

    def read(self, count: int, seconds: float) -> Sequence[tuple[Place, Records]]:
        """Return at most `count` records that arrive within `seconds`, by topic partition."""

    def problems(self) -> list[Problem]:
        """Return the errors of the client as a whole since the last call."""

    def close(self) -> None:
        """Close the connections."""
