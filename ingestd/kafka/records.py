"""What a reader of topic partitions gives: records as columns, and what the client had to say.

There are two readers, one by the native extension and one by the Python client. Both use the same
client library and say the same.
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
"""A topic and a partition of it."""
NOWHERE: Place = ("", -1)
"""The place of what the client says of no topic partition."""


class Problem(NamedTuple):
    """An error of the client library: its code (as in `KafkaError`) and its text."""

    code: int
    text: str


class LogEvent(NamedTuple):
    """What the client said in the place of a record; `offset` is where it stood then."""

    problem: Problem
    offset: int


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one topic partition with rising offsets, as parallel columns.

    `sizes` are bytes of key and value; `headers` is None when no one asked for them.
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
        """The first `count` records, without the events."""
        return self if count >= len(self) and not self.events else self._part(0, count)

    def behind(self, count: int) -> "Records":
        """The records after the first `count`, without the events."""
        return self._part(count, len(self))

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
    """Reads the topic partitions that it is told; a SourceError says what the client refuses."""

    def assign(self, offsets: Mapping[Place, int]) -> None:
        """Read these topic partitions, each from its offset on, and nothing else."""

    def unassign(self) -> None:
        """Read nothing."""

    def read(self, count: int, seconds: float) -> Sequence[tuple[Place, Records]]:
        """At most `count` records, those that come within some time, by where they are from."""

    def problems(self) -> list[Problem]:
        """What went wrong with the client as a whole since the last call."""

    def close(self) -> None:
        """Let go of the brokers."""
