"""Try to read one record in a process of its own, whose memory has a limit.

`python -m ingestd.kafka.try_range` reads a document from standard input; its exit code is 0 if the
topic partition gives a record, or has changed so that only a new start can judge it.
"""

import json
import resource
import subprocess
import sys

from ingestd.errors import LogChangedError, SourceError
from ingestd.kafka.fetch import fetch
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange

MEMORY_BYTES = 4 << 30
"""Most address space of the process."""
_UNREADABLE = 3


def start_try(source: KafkaSource, wanted: OffsetRange) -> subprocess.Popen[bytes]:
    """Start to read the first record of a range; the exit code is 0 if that can be done."""
    place = [wanted.source, wanted.topic, wanted.partition, wanted.start, wanted.until]
    document = {"source": source.to_document(), "range": place, "memory": MEMORY_BYTES}
    process = subprocess.Popen(  # noqa: S603  (this interpreter, and no shell)
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if process.stdin is not None:
        process.stdin.write(json.dumps(document).encode())
        process.stdin.close()
    return process


def main() -> int:
    """Read the document, and try; the exit code."""
    document = json.load(sys.stdin)
    memory = int(document["memory"])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    source, wanted = KafkaSource.from_document(document["source"]), OffsetRange(*document["range"])
    try:
        next(fetch(source, wanted, max_records=1, max_bytes=1), None)
    except LogChangedError:
        return 0
    except (SourceError, MemoryError):
        return _UNREADABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
