"""Messages of one source table, before they are decoded to a change batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ingestd.cdc.debezium_envelope import BARE, Shape
from ingestd.cdc.record_errors import refuse


@dataclass(frozen=True, slots=True)
class Messages:
    """Values and keys (None: no key) of messages, parallel to `offsets`, and their envelopes."""

    values: Sequence[bytes]
    keys: Sequence[bytes] | None
    offsets: npt.NDArray[np.int64]
    value_shape: Shape = BARE
    key_shape: Shape = BARE

    def part(self, start: int, stop: int) -> "Messages":
        """Return the messages in `[start, stop)`."""
        keys = None if self.keys is None else self.keys[start:stop]
        return replace(
            self,
            values=self.values[start:stop],
            keys=keys,
            offsets=self.offsets[start:stop],
        )

    def payloads(self) -> "Messages":
        """Return the messages without envelopes. Raises RecordError if one has another envelope."""
        values = self.value_shape.cut(self.values)
        keys = None if self.keys is None else self.key_shape.cut(self.keys)
        if values is None or (keys is None and self.keys is not None):
            raise refuse("decode", "invalid-envelope", "a message has a wrapper of its own")
        return Messages(values, keys, self.offsets)
