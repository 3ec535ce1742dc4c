"""Captured streams as chunks, the way the fetch stage would hand them on."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ingestd.cdc.base import RecordChunk
from tests.support import corpus

Record = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key and value."""


def shop(mode: corpus.Mode, size: int) -> list[RecordChunk]:
    """The PostgreSQL capture in chunks of consecutive records of one topic partition."""
    return captured(mode, size, corpus.SHOP)


def mariadb(size: int = 10**6) -> list[RecordChunk]:
    """The MariaDB capture, likewise."""
    return captured("json-schema", size, corpus.MART)


def captured(mode: corpus.Mode, size: int, home: Path) -> list[RecordChunk]:
    """A capture in chunks of consecutive records of one topic partition."""
    logs: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for one in corpus.captured(mode, home):
        logs[one.topic, one.partition].append((one.offset, one.timestamp_ms, one.key, one.value))
    return [*_chunks(logs, size)]


def _chunks(logs: dict[tuple[str, int], list[Record]], size: int) -> Iterator[RecordChunk]:
    for (topic, partition), log in logs.items():
        for start in range(0, len(log), size):
            offsets, timestamps, keys, values = zip(*log[start : start + size], strict=True)
            yield RecordChunk(
                topic,
                partition,
                np.array(offsets, np.int64),
                np.array(timestamps, np.int64),
                [*keys],
                [*values],
                None,
            )
