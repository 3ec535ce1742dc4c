"""Record when the changes of a decode task were made.

Only the first and the last record of a chunk are read: a chunk is a short section of a log, and one
number of a message is found without decoding the rest.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import RecordChunk, describe_format
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import TopicPartition


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
        if value is not None:
            value = settings.format_settings.framing.json_body(value)
        made = change_time(settings.data_format, value)
        if made is not None:
            return made
        stamp = int(chunk.timestamps[index])
        return stamp if stamp > 0 else None


def change_time(data_format: str, message: bytes | None) -> int | None:
    """Return when the source made a change, in milliseconds since 1970; None if not stated."""
    event_time = describe_format(data_format).event_time
    return None if event_time is None or message is None else event_time.of_message(message)
