"""Captured streams as chunks, the way the fetch stage would hand them on."""

import base64
import json
import lzma
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ingestd.cdc.base import RecordChunk
from tests.support import corpus

MARIADB = Path(__file__).resolve().parents[1] / "golden" / "cdc" / "mariadb"

Record = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key and value."""


def shop(mode: corpus.Mode, size: int) -> list[RecordChunk]:
    """The PostgreSQL capture in chunks of consecutive records of one topic partition."""
    logs: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for one in corpus.captured(mode):
        logs[one.topic, one.partition].append((one.offset, one.timestamp_ms, one.key, one.value))
    return [*_chunks(logs, size)]


def mariadb(size: int = 10**6) -> list[RecordChunk]:
    """The MariaDB capture, likewise."""
    logs: dict[tuple[str, int], list[Record]] = defaultdict(list)
    with lzma.open(MARIADB / "json-schema.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            key, value = _bytes(raw["key_b64"]), _bytes(raw["value_b64"])
            record = (raw["offset"], raw["timestamp"], key, value)
            logs[raw["topic"], raw["partition"]].append(record)
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


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
