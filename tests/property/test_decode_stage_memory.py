"""A decode task's memory follows the bound of its chunks, not its input."""

import subprocess
import sys
from pathlib import Path

import pytest

CHUNK_BYTES = 8 << 20
CHUNKS = 10

SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from bench.one_process import OneProcess
from ingestd.cdc.base import RecordChunk
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.kafka.offset_ranges import OffsetRange

folder, width, chunk_bytes, chunks = sys.argv[1], *map(int, sys.argv[2:])

def value(offset):
    row = '"after":{"k":%d,"v":"%s"}' % (offset, ("%x" % offset * width)[:width])
    source = '"connector":"mysql","name":"b","snapshot":"false","db":"shop","table":"t"'
    place = '"file":"binlog.000001","pos":%d,"row":0' % (4 + offset)
    text = '{"before":null,%s,"source":{%s,%s},"op":"c","ts_ms":1}' % (row, source, place)
    return text.encode()

def chunk(first, count):
    offsets = np.arange(first, first + count)
    keys, values = [b'{"k":%d}' % offset for offset in offsets], list(map(value, offsets))
    return RecordChunk("t", 0, offsets, offsets, keys, values, None)

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

pipeline = OneProcess(Path(folder), {"bucket": "1"}, [])
pipeline.open()
pipeline.produce("t", [{"k": 1, "v": "a"}], ["k"])
pipeline.run()
context = replace(pipeline.context(), max_chunk_bytes=chunk_bytes)
count = max(1, chunk_bytes // (width + 250))
fetched = (lambda n: lambda *_: (chunk(10 + i * count, count) for i in range(n)))
ranges = [OffsetRange("bench", "t", 0, 10, 10 + count * chunks)]
list(decode_ranges(context, ranges, fetch=lambda *_: [chunk(10, 5)]))
Path("/proc/self/clear_refs").write_text("5")
before, handed_on = status("VmRSS"), 0
for _, blob in decode_ranges(context, ranges, fetch=fetched(chunks)):
    handed_on += len(blob)
assert handed_on > chunks * count * width * 0.9, (handed_on, count)
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is asked of Linux")
@pytest.mark.parametrize("width", [300, 1 << 20, 8 << 20], ids=["small", "1 MB", "8 MB"])
def test_ten_chunks_take_no_more_than_eight_times_the_bytes_of_one(
    width: int, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), *map(str, (width, CHUNK_BYTES, CHUNKS))],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout)
    assert CHUNK_BYTES / 2 < peak < 8 * CHUNK_BYTES + (16 << 20), f"{peak / CHUNK_BYTES:.1f} times"
