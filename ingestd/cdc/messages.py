"""Messages of one source table on their way to a change batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ingestd.cdc.debezium_envelope import BARE, Shape
from ingestd.cdc.record_errors import refuse


@dataclass(frozen=True, slots=True)
class Messages:
    """Values and keys (None: no key) of messages, parallel to `offsets`, and their wrappers."""

    values: Sequence[bytes]
    keys: Sequence[bytes] | None
    offsets: npt.NDArray[np.int64]
    value_shape: Shape = BARE
    key_shape: Shape = BARE

    def part(self, start: int, stop: int) -> "Messages":
        """The messages from one place to before another."""
        keys = None if self.keys is None else self.keys[start:stop]
        return replace(
            self,
            values=self.values[start:stop],
            keys=keys,
            offsets=self.offsets[start:stop],
        )

    def payloads(self) -> "Messages":
        """The messages with their wrappers taken off; RecordError if one is wrapped otherwise."""
        values = self.value_shape.cut(self.values)
        keys = None if self.keys is None else self.key_shape.cut(self.keys)
        if values is None or (keys is None and self.keys is not None):
            raise refuse("decode", "invalid-envelope", "a message has a wrapper of its own")
        return Messages(values, keys, self.offsets)
