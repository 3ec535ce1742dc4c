"""Read ranges in a separate process with a memory limit.

`python -m ingestd.kafka.try_range` reads a JSON document from standard input and prints its
progress as lines of JSON. Its exit code is 0 if all that was requested could be read, or if a topic
partition has changed so that only a restart can handle it.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

from ingestd.errors import LogChangedError, SourceError
from ingestd.kafka.fetch import fetch_all
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.kafka.properties import KafkaSource

STALL_SECONDS = 10.0
"""Seconds without a record before ranges count as stalled."""
_CHUNK_RECORDS, _CHUNK_BYTES = 500, 1 << 20
_UNREADABLE = 3
_REASON = "reason"
# The client requests one record batch at a time, and the next one after it was consumed: all
# records before a batch that cannot be decompressed are returned.
_BATCH_BY_BATCH = {"fetch.message.max.bytes": "1", "queued.min.messages": "1"}
_OTHER_NAME = "max.partition.fetch.bytes"


def start_try(
    source: KafkaSource, ranges: Sequence[OffsetRange], memory: int, *, first_only: bool = False
) -> subprocess.Popen[bytes]:
    """Start a process that tries to read ranges, which are of one source.

    Its exit code is 0 if it could read them, or if a topic partition has changed so that only a
    restart helps. Its standard output has a JSON array per line: source, topic, partition and next
    offset after each chunk, or the reason of a failure. With `first_only`, it reads only the first
    chunk. A single range is fetched one record batch at a time, and its chunk is one record.
    `memory` is the memory limit of the process in bytes.
    """
    if len(ranges) == 1:
        other_properties = {
            name: value for name, value in source.properties.items() if name != _OTHER_NAME
        }
        source = replace(source, properties={**other_properties, **_BATCH_BY_BATCH})
    document = {
        "source": source.to_document(),
        "ranges": [[*range_.source_partition, range_.start, range_.until] for range_ in ranges],
        "memory": memory,
        "first_only": first_only,
    }
    process = subprocess.Popen(  # noqa: S603  (this interpreter, and no shell)
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    if process.stdin is not None:
        process.stdin.write(json.dumps(document).encode())
        process.stdin.close()
    return process


def read_apart(
    source: KafkaSource, ranges: Sequence[OffsetRange], memory: int
) -> tuple[list[OffsetRange], str]:
    """Read ranges in a separate process; return the parts that it did not read, and the reason.

    `memory` is the memory limit of the process in bytes. Both results are empty if the process
    ended with exit code 0.
    """
    with start_try(source, ranges, memory) as process:
        printed = [] if process.stdout is None else process.stdout.read().splitlines()
        code = process.wait()
    if code == 0:
        return [], ""
    left = {range_.source_partition: range_ for range_ in ranges}
    reason = out_of_memory(memory)
    for line in map(json.loads, printed):
        if line[0] == _REASON:
            reason = str(line[1])
            continue
        partition = SourcePartition(*line[:3])
        left[partition] = replace(left[partition], start=line[3])
    return [offset_range for offset_range in left.values() if offset_range.rows], reason


def out_of_memory(memory: int) -> str:
    """Return the reason that is assumed if a reading process ended without reporting one.

    The text states the memory limit of the process; `memory` is in bytes.
    """
    return (
        f"reading it takes more than {memory >> 20} MB of memory, half of processing.worker-memory"
    )


def main() -> int:
    """Read the ranges that the JSON document at standard input states, and return the exit code.

    `start_try` writes the document and explains exit code 0. Any other code means that the ranges
    could not be read. Limits the memory of this process.
    """
    document = json.load(sys.stdin)
    memory = int(document["memory"])
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    source = KafkaSource.from_document(document["source"])
    ranges = [OffsetRange(*fields) for fields in document["ranges"]]
    try:
        _read(source, ranges, first_only=document["first_only"])
    except LogChangedError:
        return 0
    except SourceError as error:
        _report(_REASON, error.message)
        return _UNREADABLE
    except MemoryError:
        return _UNREADABLE
    return 0


def _read(source: KafkaSource, ranges: Sequence[OffsetRange], *, first_only: bool) -> None:
    bounds = (1, 1) if len(ranges) == 1 else (_CHUNK_RECORDS, _CHUNK_BYTES)
    chunks = fetch_all(
        source, ranges, max_records=bounds[0], max_bytes=bounds[1], stall_seconds=STALL_SECONDS
    )
    for chunk in chunks:
        _report(source.name, chunk.topic, chunk.partition, int(chunk.offsets[-1]) + 1)
        if first_only:
            return


def _report(*values: str | int) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
