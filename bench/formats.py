"""How fast each JSON format is decoded, beside a bare parse of the same bytes by orjson.

python -m bench.formats [--records N] [--rounds N] [FORMAT ...]

Further lines are of the same messages with the schemas of Kafka Connect, of four tables in one
topic (mixed), and with tombstones.

Processor time of one thread, the best of the rounds. orjson runs in the environment of the peers,
which the first run fetches.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.format_messages import FORMATS, changes, messages, variants
from bench.peer_runs import pypaimon_python
from ingestd.cdc.base import RecordChunk, load_data_format

_CHUNK = 5000
_PARSE = """
import json, sys, time, orjson
texts = open(sys.argv[1], "rb").read().splitlines()
best = float("inf")
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    for text in texts:
        orjson.loads(text)
    best = min(best, time.process_time() - start)
print(json.dumps(best))
"""


Texts = Sequence[tuple[bytes, bytes | None]]
"""Keys and values of messages."""


def decode_seconds(name: str, texts: Texts, rounds: int) -> float:
    """Processor seconds that decoding takes; ValueError if a record was rejected."""
    offsets = np.arange(len(texts), dtype=np.int64)
    chunks = []
    for start in range(0, len(texts), _CHUNK):
        part, where = texts[start : start + _CHUNK], offsets[start : start + _CHUNK]
        keys, values = [key for key, _ in part], [value for _, value in part]
        chunks.append(RecordChunk("shop.inv.item", 0, where, where, [*keys], [*values], None))
    data_format, best = load_data_format(name), float("inf")
    for _ in range(rounds):
        start_seconds = time.process_time()
        decoded = [data_format.decode(chunk, {}, {}) for chunk in chunks]
        best = min(best, time.process_time() - start_seconds)
        if any(one.rejected for one in decoded):
            raise ValueError(f"{name}: {decoded[0].rejected[:1]}")
    return best


def parse_seconds(values: list[bytes], rounds: int) -> float:
    """Processor seconds that orjson takes to parse the values, one by one."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.jsonl"
        file.write_bytes(b"\n".join(values))
        program = [str(pypaimon_python()), "-P", "-c", _PARSE, str(file), str(rounds)]
        done = subprocess.run(program, check=True, capture_output=True, env={"PYTHONPATH": ""})
    return float(json.loads(done.stdout))


def main(arguments: list[str]) -> None:
    """Print a line for each format."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("formats", nargs="*", default=FORMATS, metavar="FORMAT")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args(arguments)
    found = changes(wanted.records)
    sys.stdout.write("format               records/s   orjson/s  ratio  bytes/record\n")
    for name in wanted.formats:
        texts = messages(name, found)
        sys.stdout.write(_line(name, texts, name, wanted.rounds))
        for title, others in variants(name, texts).items():
            sys.stdout.write(_line(name, others, f"  {title}", wanted.rounds))


def _line(name: str, texts: Texts, title: str, rounds: int) -> str:
    values = [value for _, value in texts if value is not None]
    decoding, parsing = decode_seconds(name, texts, rounds), parse_seconds(values, rounds)
    size = sum(map(len, values)) / len(values)
    rate, bare = len(texts) / decoding, len(values) / parsing
    return f"{title:20}{rate:10,.0f} {bare:10,.0f} {rate / bare:6.2f} {size:13.0f}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
