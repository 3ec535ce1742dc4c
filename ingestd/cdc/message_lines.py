"""Convert the content of a file to a chunk of records: a record per line, or a single record.

Since there is no topic partition, the line number is used as the offset.
"""

from collections.abc import Sequence

import numpy as np

from ingestd.cdc.base import RecordChunk
from ingestd.errors import ConfigError

_NO_TIME = -1
_SHOWN = 60


def lines_chunk(
    data: bytes, topic: str, *, separator: bytes | None = None, limit: int | None = None
) -> RecordChunk:
    """Return a chunk with a record for each line that is not blank, up to `limit` records.

    Offsets are line numbers, starting at 1. If a `separator` is given, a line consists of a key,
    the separator and a value, as Kafka's console tools print them. An empty key is a missing key,
    and an empty value is a tombstone. Raises ConfigError if a line does not contain the separator.
    """
    numbers: list[int] = []
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip() or (limit is not None and len(numbers) == limit):
            continue
        key, value = _split(line, separator, number)
        numbers.append(number)
        keys.append(key or None)
        values.append(value or None)
    return _chunk(topic, numbers, keys, values)


def whole_chunk(data: bytes, topic: str) -> RecordChunk:
    """Return a chunk with one record at offset 1, whose value is all the data; it has no key."""
    return _chunk(topic, [1], [None], [data])


def _split(line: bytes, separator: bytes | None, number: int) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, separated, value = line.partition(separator)
    if not separated:
        sought, shown = separator.decode(errors="replace"), line[:_SHOWN].decode(errors="replace")
        raise ConfigError(f"line {number} has no key separator {sought!r}: {shown!r}")
    return key, value


def _chunk(
    topic: str,
    numbers: Sequence[int],
    keys: list[bytes | None],
    values: list[bytes | None],
) -> RecordChunk:
    times = np.full(len(numbers), _NO_TIME, np.int64)
    headers = [None] * len(numbers)
    return RecordChunk(topic, 0, np.array(numbers, np.int64), times, keys, values, list(headers))
