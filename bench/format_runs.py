"""Each data format end to end: the same changes in a topic, read by the daemon into a table.

python -m bench.format_runs [--records N] [--rounds N] [FORMAT ...]

FORMAT_schemas, FORMAT_mixed and FORMAT_tombstones are the further messages of `bench.formats`.
CPU is that of the daemon with all its processes for each record, without its start. Ratios are of
the rate and the CPU of debezium-json in the same round: above 1 is faster, or less CPU.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.figures import Figures, Moments, figures, snapshot_files
from bench.format_messages import FORMATS, TABLES, changes, messages, variants
from bench.ingestd_run import TABLE, begin, configuration, finished_batches, start
from bench.peer_runs import Task
from bench.process import BenchError
from bench.registered_formats import registered_messages, registered_schema
from bench.topics import FLUSH_SECONDS, KEEP_ALL, producer
from ingestd.dev.broker import DevBroker

BASE = "debezium-json"
REGISTERED = ("debezium-avro", "avro", "protobuf")
_PARTITIONS = 4
_TIMEOUT = 600.0


class _Registry(BaseHTTPRequestHandler):
    """A schema registry with the schemas of `bench.registered_formats`."""

    def do_GET(self) -> None:
        schema = registered_schema(int(self.path.partition("?")[0].rpartition("/")[2]))
        body = json.dumps({"schema": schema.text, "schemaType": schema.kind}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no line for each request."""


@contextmanager
def _registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def _fill(
    broker: DevBroker, topic: str, texts: Sequence[tuple[bytes | None, bytes | None]]
) -> None:
    broker.create_topic(topic, _PARTITIONS, KEEP_ALL)
    client = producer(broker.bootstrap)
    for number, (key, value) in enumerate(texts):
        client.produce(topic, value, key, number % _PARTITIONS)
        if number % 1000 == 0:
            client.poll(0)
    if client.flush(FLUSH_SECONDS):
        raise BenchError(f"the broker did not take the messages into {topic}")


def _texts(name: str, records: int) -> Sequence[tuple[bytes | None, bytes | None]]:
    if name in REGISTERED:
        keys, values = registered_messages(name, records)
        own: Sequence[bytes | None] = [None] * records if name == "protobuf" else keys
        return list(zip(own, values, strict=True))
    name, _, variant = name.partition("_")
    texts = messages(name, changes(records))
    return variants(name, texts)[variant] if variant else texts


def run_format(broker: DevBroker, registry: str, name: str, records: int, folder: Path) -> Figures:
    """Read the topic of a format into a new table; BenchError if records were rejected."""
    task = Task(broker.bootstrap, name, folder / "warehouse", folder, {}, _TIMEOUT, records // 4)
    document = configuration(task)
    source = document["sources"]["shop"]
    source["format"] = name.partition("_")[0]
    if name in REGISTERED:
        source["schema-registry"] = {"url": registry}
    document["tables"] = {}
    mapping = dict.fromkeys(("item", "ITEM", name), TABLE)
    mapping |= {f"item{number}": f"{TABLE}{number}" for number in range(TABLES)}
    document["routing"] = {"table-mapping": mapping}
    with start(task, document, "--until-latest") as process:
        process.finish(_TIMEOUT)
    batches = finished_batches(process)
    if sum(batch["records"] for batch in batches) != records:
        raise BenchError(f"{name}: not all records were read:\n{process.tail()}")
    if sum(batch["rejected"] for batch in batches):
        raise BenchError(f"{name}: records were rejected:\n{process.tail()}")
    files = snapshot_files(task.warehouse)
    moments = Moments(begin(batches[1]), files[-1].stat().st_mtime)
    warm = sum(batch["records"] for batch in batches[1:])
    return figures(process, moments, warm, task.warehouse)


def main(arguments: list[str]) -> None:
    """Print a line for each format."""
    known = (*FORMATS, *REGISTERED)
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("formats", nargs="*", metavar="FORMAT")
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=1)
    wanted = parser.parse_args(arguments)
    names = dict.fromkeys((BASE, *(wanted.formats or known)))
    runs: dict[str, list[Figures]] = {name: [] for name in names}
    with _registry() as registry, DevBroker() as broker:
        for name in names:
            _fill(broker, name, _texts(name, wanted.records))
        for _ in range(wanted.rounds):
            for name in names:
                with tempfile.TemporaryDirectory() as folder:
                    run = run_format(broker, registry, name, wanted.records, Path(folder))
                runs[name].append(run)
                sys.stdout.write(_line(name, run, runs[BASE][-1]))
                sys.stdout.flush()
    if wanted.rounds > 1:
        for name in names:
            sys.stdout.write(_summary(name, runs[name], runs[BASE]))


def _line(name: str, run: Figures, base: Figures) -> str:
    return (
        f"{name:20}{run.per_s:10,.0f}/s {run.us_cpu_running:6.2f} us  rate "
        f"{run.per_s / base.per_s:5.2f}  CPU {base.us_cpu_running / run.us_cpu_running:5.2f}\n"
    )


def _summary(name: str, runs: Sequence[Figures], base: Sequence[Figures]) -> str:
    ratios = [own.per_s / other.per_s for own, other in zip(runs, base, strict=True)]
    return (
        f"{name:20}n = {len(runs)}, rate {statistics.median(ratios):.2f} "
        f"[{min(ratios):.2f}-{max(ratios):.2f}]\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
