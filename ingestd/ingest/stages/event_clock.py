"""Notes when the changes of a decode task were made.

Reads the times of the first and the last record of what it is given, and no others: a chunk is a
short piece of a log, and one number of a message is found without decoding the rest.
"""

from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import RecordChunk
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import TopicPartition

_LATEST = 1 << 53
_FRAMED = b"\x00"


class _Source(msgspec.Struct):
    ts_ms: int | None = None


class _Body(msgspec.Struct):
    source: _Source | None = None


class _Debezium(_Body):
    payload: _Body | None = None

    @property
    def time(self) -> int | None:
        body = self if self.payload is None else self.payload
        return None if body.source is None else body.source.ts_ms


class _Flat(msgspec.Struct):
    time: int | None = msgspec.field(default=None, name="__source_ts_ms")


class _Canal(msgspec.Struct):
    time: int | None = msgspec.field(default=None, name="es")


class _Maxwell(msgspec.Struct):
    seconds: int | None = msgspec.field(default=None, name="ts")

    @property
    def time(self) -> int | None:
        return None if self.seconds is None else self.seconds * 1000


_Message = _Debezium | _Flat | _Canal | _Maxwell
_READERS: Mapping[str, msgspec.json.Decoder[_Message]] = {
    "debezium-json": msgspec.json.Decoder(_Debezium),
    "debezium-bson": msgspec.json.Decoder(_Debezium),
    "debezium-flat-json": msgspec.json.Decoder(_Flat),
    "canal-json": msgspec.json.Decoder(_Canal),
    "maxwell-json": msgspec.json.Decoder(_Maxwell),
}
"""By data format: finds the one number in a message, as `event_times` does in many."""


class EventClock:
    """Notes times of the records of one task."""

    def __init__(self, sources: Mapping[str, SourceSettings], times: BatchTimes) -> None:
        self._sources = sources
        self._times = times

    def note_chunk(self, source: str, chunk: RecordChunk) -> None:
        """Note how far a topic partition is read, by the last record of a chunk."""
        if len(chunk.offsets) and (time := self._time(source, chunk, -1)) is not None:
            where = TopicPartition(source, chunk.topic, chunk.partition)
            self._times.note_reached(where, int(chunk.offsets[-1]), time)

    def note_rows(
        self, table: str, source: str, chunk: RecordChunk, offsets: npt.NDArray[np.int64]
    ) -> None:
        """Note the first and the last of a table's rows, told by the offsets of their records.

        A chunk without records tells nothing: its rows were noted when they were decoded.
        """
        if not len(chunk.offsets) or not len(offsets):
            return
        ends = np.searchsorted(chunk.offsets, (offsets[0], offsets[-1]))
        for index in {int(one) for one in ends}:
            if (time := self._time(source, chunk, index)) is not None:
                self._times.note_event(table, time)

    def _time(self, source: str, chunk: RecordChunk, index: int) -> int | None:
        """When a record's change was made, else the time of the record; None without either."""
        settings = self._sources[source]
        value = chunk.values[index]
        if value is not None and value.startswith(_FRAMED):
            value = value[1 + settings.format_settings.framing.id_bytes :]
        made = change_time(settings.data_format, value)
        if made is not None:
            return made
        stamp = int(chunk.timestamps[index])
        return stamp if stamp > 0 else None


def change_time(data_format: str, message: bytes | None) -> int | None:
    """Milliseconds since 1970 when the source made a change; None if its message does not tell."""
    reader = _READERS.get(data_format)
    if reader is None or message is None:
        return None
    try:
        time = reader.decode(message).time
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return time if time is not None and 0 < time < _LATEST else None
